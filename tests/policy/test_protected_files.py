"""Where the protected files of a policy can be, and what is done if one was changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from fairlead.policy import Layer, Policy, ProtectedFiles

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.policy import SearchRoot


def layer(folder: Path | str, *patterns: object, **settings: object) -> Layer:
    """A policy file as it is read."""
    given = {"preToolUse": {"uneditableFiles": list(patterns), **settings}}
    return Layer(f"{folder}/.fairlead.yaml", str(folder), msgspec.convert(given, Policy), given)


def roots(folder: Path, *patterns: str) -> dict[str, SearchRoot]:
    return {root.folder: root for root in ProtectedFiles([layer(folder, *patterns)]).roots}


@pytest.mark.parametrize(
    ("pattern", "searched", "left"),
    [
        (".env", ("src", "src/a"), ()),
        ("*.{lock,pem}", ("src",), ()),
        ("./.env", ("src",), ()),
        ("/docs", ("docs", "docs/a/b"), ("src", "a/docs")),
        ("docs/*.md", ("docs", "docs/a"), ("src",)),
        ("config/*/secrets/**", ("config", "config/x", "config/x/secrets"), ("src",)),
        ("**/keys/*", ("src", "src/keys"), ()),
        ("Docs/a.md", ("docs",), ("src",)),
    ],
)
def test_only_folders_that_can_hold_a_match_are_searched(
    tmp_path: Path, pattern: str, searched: tuple[str, ...], left: tuple[str, ...]
) -> None:
    root = roots(tmp_path, pattern)[str(tmp_path)]

    assert [folder for folder in searched if not root.may_contain(folder)] == []
    assert [folder for folder in left if root.may_contain(folder)] == []


def test_an_absolute_pattern_is_searched_for_in_the_folder(tmp_path: Path) -> None:
    protected = ProtectedFiles([layer(tmp_path, f"{tmp_path}/src/.env")])

    (root,) = protected.roots
    assert root.may_contain("src")
    assert protected.contains(f"{tmp_path}/src/.env")


def test_patterns_of_the_home_folder_and_of_the_disk_are_searched_for_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = roots(tmp_path / "project", "~/.ssh/**", "//etc/passwd")

    assert found[str(tmp_path / "home")].prefixes == ((".ssh",),)
    assert found["/"].prefixes == (("etc", "passwd"),)


def test_the_rule_is_named_by_its_pattern_and_only_for_its_agent(tmp_path: Path) -> None:
    protected = ProtectedFiles([layer(tmp_path, {"pattern": "a", "agent": "x"}, {"pattern": "b", "action": "warn"})])

    assert protected.rule_for(f"{tmp_path}/a", "x") == "preToolUse.uneditableFiles 'a'"
    assert protected.rule_for(f"{tmp_path}/a", "main") is None
    assert protected.rule_for(f"{tmp_path}/b") is None
    assert protected.rule_for(f"{tmp_path}/.fairlead.yaml", "main") == "preToolUse.protectOwnFiles"


def mode(*layers: Layer) -> str:
    return ProtectedFiles(layers).mode


def test_the_nearest_file_says_what_is_done() -> None:
    near, far, silent = layer("/p", integrity="restore"), layer("/c", integrity="off"), layer("/s")

    assert (mode(near, far), mode(far, near), mode(silent, far), mode(silent)) == ("restore", "off", "off", "report")


def test_a_file_that_is_not_trusted_can_only_switch_the_check_on() -> None:
    trusted_off, silent = layer("/p", integrity="off"), layer("/s")
    off, report, restore = (
        msgspec.structs.replace(layer("/u", integrity=value), trusted=False) for value in ("off", "report", "restore")
    )

    assert (mode(off, silent), mode(restore, silent)) == ("report", "report")
    assert (mode(off, trusted_off), mode(report, trusted_off), mode(restore, trusted_off)) == (
        *("off", "report"),
        "report",
    )
