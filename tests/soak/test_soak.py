"""A daemon under load keeps its promises: memory, descriptors, delay, sizes, nothing lost. Longer: `make soak`."""

from __future__ import annotations

from daemon.daemon_home import scratch_home
from soak.load import Soak


def test_a_daemon_under_load_keeps_its_promises() -> None:
    with scratch_home() as home, home.daemon():
        soak = Soak(home)
        soak.run(4.0, sessions=4, rate=20.0)

        assert soak.problems() == []
        assert soak.sent
