"""The setting `leases`: a file that is not trusted makes it stricter, never looser."""

from __future__ import annotations

import pytest

from fairlead.policy import Layer, Policy, merge_layers, withheld_settings


def layer(leases: str | None, *, trusted: bool = True) -> Layer:
    given = {} if leases is None else {"leases": leases}
    return Layer("/p/.fairlead.yaml", "/p", Policy(**given), given, trusted=trusted)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trusted", "untrusted", "result"),
    [
        (None, None, "warn"),
        (None, "block", "block"),
        (None, "off", "warn"),
        ("off", "warn", "warn"),
        ("off", "block", "block"),
        ("block", "off", "block"),
        ("block", "warn", "block"),
    ],
)
def test_the_strictest_of_what_is_not_trusted_counts(trusted: str | None, untrusted: str | None, result: str) -> None:
    assert merge_layers([layer(untrusted, trusted=False), layer(trusted)]).leases == result


def test_the_nearest_trusted_file_decides() -> None:
    assert merge_layers([layer("off"), layer("block")]).leases == "off"
    assert merge_layers([layer(None), layer("block")]).leases == "block"


def test_only_what_would_loosen_it_is_withheld() -> None:
    assert withheld_settings(layer("off", trusted=False), [layer("block")]) == ("leases",)
    assert withheld_settings(layer("block", trusted=False), [layer(None)]) == ()
