"""What the launcher does not take from whoever answers on the socket, and what it does if a plan cannot be run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from launcher.build import SOURCES, compile_sanitized, unavailable, write_twin
from launcher.fakes import Daemon, Launcher, answer_200, answer_202, answer_303, deny

from fairlead.clients.claude.settings import EVENTS

if TYPE_CHECKING:
    from pathlib import Path

PAYLOAD = b'{"session_id":"s"}'


# -- exit codes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "codes"),
    [("PreToolUse", {0, 2}), ("pre-tool-use", {0, 2}), ("Stop", {0, 1, 2}), ("StatusLine", {0})],
)
def test_an_exit_code_that_the_event_cannot_have_is_no_answer(
    launcher: Launcher, daemon: Daemon, event: str, codes: set[int]
) -> None:
    """The client takes exit code 1 of a gate for consent."""
    for code in (0, 1, 2, 3, 127, 255):
        daemon.answer = answer_200(b"out", b"", code)
        done = launcher.run(event, stdin=PAYLOAD)
        if event == "pre-tool-use":  # its name is none that a daemon is asked about
            assert launcher.evaluated_locally(event, stdin=PAYLOAD)
        elif code in codes:
            assert (done.stdout, done.returncode) == (b"out", code)
        else:
            assert launcher.evaluated_locally(event, stdin=PAYLOAD)


# -- chains of waits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sanitized", "python"])
def test_the_waits_of_an_event_end_before_the_client_ends_the_hook(
    kind: str, daemon: Daemon, home: Path, tmp_path: Path
) -> None:
    program = tmp_path / kind / "fairlead-hook"
    program.parent.mkdir()
    limits = {"MAX_STOP": 300, "MAX_SHORT": 250, "MAX_SESSION_END": 200, "MAX_OTHER": 200}
    flags = ("-DMAX_WAITS=100000", *(f"-D{name}={limit}" for name, limit in limits.items()))
    if problem := (compile_sanitized(program, *flags) if kind == "sanitized" else write_twin(program, **limits)):
        unavailable(problem)
    launcher = Launcher(program, home)
    daemon.answer = answer_303("again")
    launcher.run("Stop", stdin=PAYLOAD)
    assert launcher.evaluated_locally("Stop", "--waited", stdin=PAYLOAD)
    launcher.run("PreToolUse", stdin=PAYLOAD)
    assert launcher.evaluated_locally("PreToolUse", stdin=PAYLOAD)
    for event in ("UserPromptSubmit", "PreModelSwitch", "SessionEnd"):
        launcher.run(event, stdin=PAYLOAD)
        assert launcher.stdin() == PAYLOAD, "Python evaluates it"
        launcher.record.unlink()

    daemon.answers = [answer_303("long", 2_000_000_000), lambda _: daemon.over.wait(20)]
    launcher.run("PreToolUse", stdin=PAYLOAD)  # 200 ms and 2 s for the exchange, not 23 days
    assert launcher.evaluated_locally("PreToolUse", stdin=PAYLOAD)


def test_the_limits_are_below_the_timeouts_that_are_installed() -> None:
    head = (SOURCES / "hook.h").read_text(encoding="utf-8")
    twin = (SOURCES / "hook.py").read_text(encoding="utf-8")
    limits = {"MAX_STOP": 3_590_000, "MAX_SHORT": 20_000, "MAX_SESSION_END": 8_000, "MAX_OTHER": 40_000}
    for name, limit in limits.items():
        assert re.search(rf"^#define {name} {limit}\b", head, re.MULTILINE)
        assert f"\n{name} = {limit:_}\n" in twin
    names = {
        "Stop": "MAX_STOP",
        "UserPromptSubmit": "MAX_SHORT",
        "PreModelSwitch": "MAX_SHORT",
        "SessionEnd": "MAX_SESSION_END",
    }
    for event, setting in EVENTS.items():
        assert limits[names.get(event, "MAX_OTHER")] < setting.timeout * 1000


# -- impostors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", [None, "", "1\n", "{pid} \n", "folder", "link"], ids=repr)
def test_a_process_that_does_not_hold_the_daemons_lock_is_not_asked(
    launcher: Launcher, daemon: Daemon, lock: str | None
) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux tells the pid of a peer")
    file = daemon.path.with_suffix(".lock")
    file.unlink()
    if lock == "folder":
        file.mkdir()
    elif lock == "link":
        file.with_name("own").write_text(f"{os.getpid()}\n", encoding="ascii")
        file.symlink_to("own")
    elif lock is not None:
        file.write_text(lock.format(pid=os.getpid()), encoding="ascii")
    daemon.answer = answer_200(b"allowed", b"", 0)
    done = launcher.run("PreToolUse", stdin=PAYLOAD)
    assert (done.stdout, b"".join(daemon.requests)) == (b"", b""), "it learns nothing of the call"
    assert launcher.evaluated_locally("PreToolUse", stdin=PAYLOAD)


# -- plans that cannot be carried out ------------------------------------------------------------------

REASON = "fairlead cannot run the policy's check, so the event is blocked: {}. Reinstall Fairlead if this continues\n"


def checked(plan: bytes) -> bytes:
    """A plan with a check: if it cannot be carried out, the exit code is 2."""
    return answer_202(plan).replace(b"content-length", b"fairlead-exit: 2\r\ncontent-length")


@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "UserPromptSubmit", "TaskCompleted", "ConfigChange"])
def test_a_check_that_python_cannot_run_blocks(launcher: Launcher, daemon: Daemon, event: str) -> None:
    daemon.answer = checked(b"{}")
    for crash, how in (
        ("sys.exit(1)", "Python ended with exit code 1"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "Python was killed by signal 11"),
    ):
        done = launcher.run(event, stdin=PAYLOAD, env=launcher.env(DO=crash))
        assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", REASON.format(how), 2)
    launcher.python.unlink()
    done = launcher.run(event, stdin=PAYLOAD)
    what = f"cannot run {launcher.python}: no such file"
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", REASON.format(what), 2)
    daemon.answer = answer_202(b"{}")
    assert launcher.run(event, stdin=PAYLOAD).returncode == 1, "nothing in it would block"


def test_a_check_that_python_runs_is_answered_as_python_says(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = checked(b"{}")
    for code in (0, 2):
        does = f"print('out'); print('err', file=sys.stderr); sys.exit({code})"
        done = launcher.run("Stop", stdin=PAYLOAD, env=launcher.env(DO=does))
        assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", code)


def test_a_gate_with_a_plan_is_denied_in_the_words_of_the_gate(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = checked(b"{}")
    launcher.python.unlink()
    done = launcher.run("PreToolUse", stdin=PAYLOAD)
    reason = f"fairlead cannot check this call, so it is blocked: cannot run {launcher.python}: no such file"
    assert (done.stdout, done.returncode) == (deny(f"{reason}. Reinstall Fairlead if this continues"), 2)


def test_python_gets_the_exit_codes_of_its_children_though_the_client_ignores_sigchld(launcher: Launcher) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    does = "import subprocess; print(subprocess.call(['sh', '-c', 'exit 7']))"
    done = launcher.run("Stop", env=launcher.env(DO=does, PATH=os.environ["PATH"]), preexec_fn=ignore)
    assert (done.stdout, done.stderr) == (b"7\n", b"")


def test_the_check_costs_less_than_30_microseconds(home: Path) -> None:
    """It is an open, a read and a close. Counted, because a busy machine has no microseconds."""
    lock = home / "run/daemon.lock"
    lock.write_text("1\n", encoding="ascii")
    program = [sys.executable, "-IS", "-c", PROBE, str(lock)]
    best = min(float(subprocess.run(program, capture_output=True, check=True).stdout) for _ in range(3))
    assert best < 30e-6


PROBE = """\
import os, sys, time
def check():
    started = time.perf_counter()
    fd = os.open(sys.argv[1], os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    os.read(fd, 16)
    os.close(fd)
    return time.perf_counter() - started
print(min(check() for _ in range(1000)))
"""
