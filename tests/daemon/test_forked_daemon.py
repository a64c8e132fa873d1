"""A daemon that the tests fork is a process like one that a new interpreter runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import PATIENCE, until
from daemon.forked_daemon import ForkedDaemon, can_fork
from team.small_disk import own_mounts

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome, Done

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="daemons are forked on Linux only")


def words(pid: int, file: str) -> list[str]:
    """What the process table shows, without the room behind it."""
    text = Path(f"/proc/{pid}/{file}").read_bytes().rstrip(b"\0").decode()
    return text.split("\0")


def status(home: DaemonHome) -> dict[str, Any]:
    document: dict[str, Any] = home.ask("GET", "/v1/status")
    return document


def status_lines(pid: int, *names: str) -> list[str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return [line for line in lines if line.startswith(names)]


def shown(pid: int) -> dict[str, Any]:
    """How a process looks from outside."""
    process = Path(f"/proc/{pid}")
    environ = dict(word.partition("=")[::2] for word in words(pid, "environ"))
    return {
        "command": words(pid, "cmdline"),
        "variables": environ,
        "program": (process / "exe").readlink(),
        "folder": (process / "cwd").readlink(),
        "streams": [(process / f"fd/{number}").readlink().name.partition(":")[0] for number in range(3)],
        "signals and umask": status_lines(pid, "Umask:", "SigBlk:", "SigIgn:", "SigCgt:"),
        "identity": (os.getpgid(pid), os.getsid(pid), os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid)),
    }


def look(home: DaemonHome, *, is_forked: bool) -> tuple[list[dict[str, Any]], int, list[str]]:
    """How daemon and store look, the exit code, and what was written down; of a daemon at the same place each time."""
    home.is_forked = is_forked
    with home.daemon("--idle=1000", TZ="UTC") as daemon:
        assert isinstance(daemon, ForkedDaemon) == is_forked
        assert home.hook("PreToolUse", home.edit("a")).exit_code == 0
        until(lambda: status(home)["store_pid"], "the store is started")
        store = status(home)["store_pid"]
        until(lambda: status(home)["stored"], "the event is stored")
        seen = [shown(daemon.pid), shown(store)]
        assert home.daemons() == [daemon.pid]
        assert status_lines(store, "PPid:") == [f"PPid:\t{daemon.pid}"]
    return seen, daemon.wait(), (home.folder / "daemon.err").read_text().splitlines()


def test_it_looks_and_ends_like_a_started_one(home: DaemonHome) -> None:
    started = look(home, is_forked=False)
    (home.folder / "daemon.err").unlink()
    assert look(home, is_forked=True) == started
    assert started[1:] == (0, [f"fairlead: listening at {home.socket}"])


@pytest.mark.parametrize(
    "command", [("hooks", "install"), ("trust", "--list"), ("hooks", "add", "no.py"), ("doctor", "x")]
)
def test_a_forked_command_prints_and_ends_like_a_started_one(home: DaemonHome, command: tuple[str, ...]) -> None:
    def done(*, is_forked: bool) -> tuple[Done, list[tuple[str, int, bytes]]]:
        home.is_forked = is_forked
        shutil.rmtree(home.folder / ".claude", ignore_errors=True)
        ended = home.fairlead(*command)
        files = sorted(file for file in home.folder.rglob("*") if file.is_file() and file.name != "lock")
        return ended, [(str(file), file.stat().st_mode, file.read_bytes()) for file in files if file.suffix == ".json"]

    assert done(is_forked=True) == done(is_forked=False)


def test_its_store_process_is_started_again_by_a_new_interpreter(home: DaemonHome) -> None:
    with home.daemon():
        until(lambda: status(home)["store_pid"], "the store is started")
        first = status(home)["store_pid"]
        os.kill(first, signal.SIGKILL)
        until(lambda: status(home)["store_pid"] not in {0, first}, "it is started again")
        assert words(status(home)["store_pid"], "cmdline") == [
            *(sys.executable, "-E", "-P", "-m", "fairlead.daemon.store")
        ]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_its_processes_end_together(home: DaemonHome, number: signal.Signals) -> None:
    """Also the one that waits to become the store's."""
    daemon = home.start()
    children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split()
    assert len(children) == 1
    daemon.send_signal(number)
    assert daemon.wait(PATIENCE) == daemon.poll() == daemon.returncode == (0 if number == signal.SIGTERM else -number)
    until(lambda: not Path(f"/proc/{children[0]}/cwd").is_symlink(), "the other one has ended")


def test_who_waits_too_long_is_told(home: DaemonHome) -> None:
    with home.daemon() as daemon, pytest.raises(subprocess.TimeoutExpired):
        daemon.wait(0.05)


def test_what_the_interpreter_or_another_namespace_would_change_is_not_forked(home: DaemonHome) -> None:
    assert can_fork(home.environment())
    for more in ({"PYTHONPATH": "x"}, {"LD_PRELOAD": "x"}, {"LANG": "C"}, {"LC_ALL": "C"}):
        assert not can_fork(home.environment(**more))
    with own_mounts():
        assert not can_fork(home.environment())
