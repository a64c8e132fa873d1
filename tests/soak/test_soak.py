"""A daemon under load keeps its promises: memory, descriptors, delay, sizes, nothing lost. Longer: `make soak`."""

from __future__ import annotations

from soak.load import Soak, new_daemon


def test_a_daemon_under_load_keeps_its_promises() -> None:
    with new_daemon() as home:
        soak = Soak(home)
        soak.run(4.0, sessions=4, rate=20.0)

        assert soak.problems() == []
        assert soak.sent
