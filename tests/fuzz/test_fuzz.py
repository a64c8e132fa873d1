"""What was found once is tried again, and some new inputs with it. For longer: `make fuzz`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home
from fuzz.__main__ import CORPUS, fuzz
from fuzz.servers import Launchers, Sockets
from fuzz.targets import Commands, Finding, Journals, Payloads, Policies

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz.targets import Target

INSIDE: dict[str, Callable[[], Target]] = {target.name: target for target in (Payloads, Commands, Policies, Journals)}


@pytest.mark.parametrize("name", INSIDE)
def test_no_input_breaks_a_parser(name: str) -> None:
    target = INSIDE[name]()
    for file in sorted((CORPUS / name).glob("*")):
        target.run(file.read_bytes())
    tried, found = fuzz([target], 0.8, seed=1, keep=None)[name]
    assert found == 0
    assert tried > 0


def test_no_input_breaks_the_daemon_or_the_launcher() -> None:
    with scratch_home() as home, home.daemon():
        sockets, launchers = Sockets(home), Launchers(home)
        for target in (sockets, launchers):
            for file in sorted((CORPUS / target.name).glob("*")):
                target.run(file.read_bytes())
        counts = fuzz([sockets, launchers], 2.0, seed=1, keep=None)
        sockets.check()

    assert [found for _, found in counts.values()] == [0, 0]
    assert all(tried for tried, _ in counts.values())


def test_a_daemon_that_is_gone_is_one_finding_and_is_replaced() -> None:
    with scratch_home() as home, home.daemon() as daemon:
        sockets = Sockets(home)
        daemon.kill()
        daemon.wait()
        with pytest.raises(Finding, match="the daemon is gone: started"):
            sockets.run(b"GET /v1/status HTTP/1.1\r\n\r\n")
        sockets.run(b"GET /v1/status HTTP/1.1\r\n\r\n")
        sockets.check()
        assert sockets.replacement is not None
        sockets.replacement.kill()
        sockets.replacement.wait()
