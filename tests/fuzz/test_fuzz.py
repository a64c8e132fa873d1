"""What was found once is tried again, and some new inputs with it. For longer: `make fuzz`."""

from __future__ import annotations

import signal
from time import process_time
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home
from fuzz.__main__ import CORPUS, fuzz
from fuzz.servers import Launchers, Sockets
from fuzz.targets import Commands, Finding, Journals, Payloads, Policies, TooSlow, attempt, bounded, run_in_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from fuzz.targets import Target

INSIDE: dict[str, Callable[[], Target]] = {target.name: target for target in (Payloads, Commands, Policies, Journals)}


def kept(name: str) -> list[bytes]:
    """Return what was found once."""
    return [file.read_bytes() for file in sorted((CORPUS / name).glob("*"))]


@pytest.mark.parametrize("name", INSIDE)
def test_no_input_breaks_a_parser(name: str) -> None:
    target = INSIDE[name]()
    assert [finding for case in kept(name) if (finding := attempt(target, case))] == []
    tried, found = fuzz([target], 0.8, seed=1, keep=None)[name]
    assert found == 0
    assert tried > 0


def test_no_input_breaks_the_daemon_or_the_launcher() -> None:
    with scratch_home() as home, home.daemon():
        sockets, launchers = Sockets(home), Launchers(home)
        for target in (sockets, launchers):
            assert [finding for case in kept(target.name) if (finding := attempt(target, case))] == []
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


class Late:
    """Takes too long for some times, as any input does on a machine that has no time for it."""

    name = "late"

    def __init__(self, times: int) -> None:
        self.left = times

    def make(self, random: Random) -> bytes:
        return random.randbytes(1)

    def run(self, case: bytes) -> None:
        with bounded():
            started = process_time()
            while self.left and process_time() - started <= 0.2:
                pass
            self.left -= bool(self.left)
        assert case


def test_what_was_late_once_is_no_finding_and_what_is_late_each_time_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.targets.IDLE_WAIT", 0.1)
    monkeypatch.setattr("fuzz.targets.LIMIT", 0.1)
    assert attempt(Late(1), b"x") is None
    assert isinstance(attempt(Late(3), b"x"), TooSlow)


def test_a_launcher_that_waits_or_spins_for_ever_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.targets.ANSWER_TIME", 1.0)
    for script, used in (("exec sleep 60", r"0\.\d"), ("while :; do :; done", r"\d\.\d")):
        with pytest.raises(TooSlow, match=rf"^the launcher hangs, after {used} s of processor time$"):
            run_in_time(["/bin/sh", "-c", script], b"", tmp_path, {})


def test_a_daemon_that_does_not_answer_hangs_and_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.servers.ANSWER_TIME", 0.5)
    with scratch_home() as home, home.daemon() as daemon:
        sockets = Sockets(home)
        daemon.send_signal(signal.SIGSTOP)
        with pytest.raises(TooSlow, match=r"the daemon hangs, after 0\.0 s of processor time"):
            sockets.check()
        daemon.send_signal(signal.SIGCONT)
        sockets.check()
        assert sockets.replacement is None
