"""PreToolUse is a gate: it fails closed, wherever the failure is."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from launcher.fakes import answer_200, answer_202, closed, deny

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from launcher.fakes import Daemon, Launcher

BLOCKED = "fairlead cannot check this call, so it is blocked: {}. Reinstall Fairlead if this continues"
UNHANDLED = "fairlead cannot handle this event: {}. Reinstall Fairlead if this continues\n"
USAGE = b"Fairlead, the hook runtime for coding agents."
SPELLINGS = ("PreToolUse", "preToolUse", "pre_tool_use", "pre-tool-use", "PRETOOLUSE")


def missing(python: Path) -> str:
    python.unlink()
    return "no such file"


def not_executable(python: Path) -> str:
    python.chmod(0o644)
    return "permission denied"


def not_a_program(python: Path) -> str:
    python.write_bytes(b"\x7f\x7f\x7f\x7f")
    return "not a program"


def below_a_file(python: Path) -> str:
    python.unlink()
    python.parent.joinpath("fake-python").symlink_to("/dev/null/python")
    return "no such folder"


@pytest.mark.parametrize("spoil", [missing, not_executable, not_a_program, below_a_file])
def test_if_python_cannot_be_run_a_gate_blocks(launcher: Launcher, spoil: Callable[[Path], str]) -> None:
    what = f"cannot run {launcher.python}: {spoil(launcher.python)}"
    done = launcher.run("PostToolUse")
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", UNHANDLED.format(what), 1)
    reason = BLOCKED.format(what)
    for event in SPELLINGS:
        done = launcher.run(event)
        assert (done.stdout, done.stderr.decode(), done.returncode) == (deny(reason), reason + "\n", 2), event


CRASHES = (
    ("sys.exit(1)", "Python ended with exit code 1"),
    ("sys.exit(3)", "Python ended with exit code 3"),
    ("sys.exit(127)", "Python ended with exit code 127"),
    ("raise RuntimeError", "Python ended with exit code 1"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "Python was killed by signal 9"),
    ("os.abort()", "Python was killed by signal 6"),
)


@pytest.mark.parametrize("plan", [False, True], ids=["event", "plan"])
def test_if_python_crashes_a_gate_blocks(launcher: Launcher, daemon: Daemon, *, plan: bool) -> None:
    """It may have printed already, and two answers would be invalid: the exit code alone blocks."""
    daemon.answer = answer_202(b"{}") if plan else b""
    quiet = "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 2); "
    for does, what in CRASHES:
        done = launcher.run("PreToolUse", env=launcher.env(DO=f"print('said', flush=True); {quiet}{does}"))
        assert (done.stdout, done.stderr.decode(), done.returncode) == (b"said\n", BLOCKED.format(what) + "\n", 2)
        assert ("--plan-fd" in launcher.ran()["argv"]) == plan


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "PostToolUse"])
def test_if_python_crashes_at_another_event_somebody_says_so(launcher: Launcher, event: str) -> None:
    for does, what in CRASHES:
        done = launcher.run(event, env=launcher.env(DO=f"print('said', flush=True); {does}"))
        code = done.returncode
        if "signal" in what:
            assert (done.stdout, done.stderr.decode(), code) == (b"said\n", UNHANDLED.format(what), 1)
        else:
            assert what == f"Python ended with exit code {code}", "which has said why itself"
            assert b"fairlead cannot handle" not in done.stderr


@pytest.mark.parametrize("code", [0, 2])
@pytest.mark.parametrize("ignored", [False, True])
def test_the_decision_of_python_is_returned(launcher: Launcher, code: int, *, ignored: bool) -> None:
    """Even if the client ignores SIGCHLD, which we inherit."""

    def ignore() -> None:
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    does = f"print('out'); print('err', file=sys.stderr); sys.exit({code})"
    done = launcher.run("PreToolUse", env=launcher.env(DO=does), preexec_fn=ignore)
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", code)


@pytest.mark.parametrize("code", [0, 77])
def test_other_events_end_as_python_does(launcher: Launcher, code: int) -> None:
    done = launcher.run("PostToolUse", env=launcher.env(DO=f"print('out'); sys.exit({code})"))
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"", code)


def test_a_long_wait_becomes_python(launcher: Launcher) -> None:
    """No second process is kept for it."""
    done = launcher.run("Stop", "--wake", env=launcher.env(DO="print(os.getpid())"))
    name = launcher.ran()["argv"][-1].partition(",")[0]
    assert name.partition("-")[2] == f"{int(done.stdout):x}", "the same process"


def test_python_is_found_beside_the_launcher_even_through_a_link(launcher: Launcher) -> None:
    folder = launcher.home / "bin"
    folder.mkdir()
    program = folder / "fairlead-hook"
    program.write_bytes(launcher.program.read_bytes())
    program.chmod(0o755)
    link = launcher.home / "link"
    link.symlink_to(program)
    for name in ("python", "python3"):
        (folder / name).symlink_to(launcher.python)
        done = subprocess.run([link, "PreToolUse"], env=launcher.env(), input=b"", capture_output=True, check=False)
        assert (done.stderr, done.returncode) == (b"", 0)
        assert launcher.ran()["argv"][0] == str(folder / name)


def test_without_a_python_beside_it_the_gate_blocks(launcher: Launcher) -> None:
    """The Python launcher uses its own Python; `--help`, because the real Fairlead would start a real daemon."""
    command = [str(launcher.program), "PreToolUse", "--help"]
    done = subprocess.run(command, env=launcher.env(), input=b"", capture_output=True, check=False)
    if launcher.twin:
        assert (done.stdout.partition(b"\n")[0], done.stderr, done.returncode) == (USAGE, b"", 0)
    else:
        reason = BLOCKED.format("cannot run the Python beside fairlead-hook: no such file")
        assert (done.stdout, done.stderr.decode(), done.returncode) == (deny(reason), reason + "\n", 2)


def test_an_unusual_name_does_not_break_the_answer(launcher: Launcher) -> None:
    launcher.python = launcher.home / 'no "py\\thon\n\N{SNOWMAN}'
    done = launcher.run("PreToolUse")
    reason = BLOCKED.format(f"cannot run {launcher.home}/no ?py?thon????: no such file")
    assert (done.stdout, done.returncode) == (deny(reason), 2)


@pytest.mark.parametrize("event", ["PreToolUse", "Stop", "UserPromptSubmit", "PostToolUse"])
def test_an_answer_that_cannot_be_written_is_not_consent(launcher: Launcher, daemon: Daemon, event: str) -> None:
    daemon.answer = answer_200(b"yes" * 100_000, b"said", 0)
    line = b"fairlead: cannot write the answer: %s\n"
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = launcher.run(event, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.stderr, done.returncode) == (line % b"no space left", 2)
    done = launcher.run(event, preexec_fn=closed(1))
    assert (done.stderr, done.returncode) == (line % b"stdout is closed", 2)
    reading, writing = os.pipe()
    os.close(reading)
    done = launcher.run(event, capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.stderr, done.returncode) == (line % b"broken pipe", 2)


def test_an_empty_answer_needs_no_stdout(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"", b"said", 0)
    done = launcher.run("PreToolUse", preexec_fn=closed(1))
    assert (done.stderr, done.returncode) == (b"said", 0)
    assert launcher.run("PreToolUse", preexec_fn=closed(1, 2)).returncode == 0
    assert daemon.requests[0].endswith(b"\r\n\r\n{}")


def test_a_gate_blocks_even_if_nothing_can_be_printed(launcher: Launcher) -> None:
    launcher.python.unlink()
    reading, writing = os.pipe()
    os.close(reading)
    done = launcher.run("PreToolUse", capture_output=False, stdout=writing, stderr=writing)
    os.close(writing)
    assert done.returncode == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("group", [True, False], ids=["group", "launcher only"])
def test_a_signal_is_forwarded_to_python(launcher: Launcher, number: signal.Signals, *, group: bool) -> None:
    does = (
        "import time\n"
        "def stop(number, _):\n"
        f"    signal.signal({number:d}, signal.SIG_IGN)\n"  # the launcher forwards a group's signal again
        "    os.write(1, b'got %d\\n' % number)\n"
        "    os._exit(2)\n"
        f"signal.signal({number:d}, stop)\n"
        "os.write(1, b'ready\\n')\n"
        "while True: time.sleep(10)"
    )
    command = launcher.command("PreToolUse")
    with subprocess.Popen(
        command, env=launcher.env(DO=does), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert launcher.ran()["group"] == process.pid, "in the group of the launcher"
        (os.killpg if group else os.kill)(process.pid, number)
        assert process.stdout.read() == b"got %d\n" % number
        assert process.wait() == 2


def test_a_signal_the_client_ignores_stays_ignored(launcher: Launcher) -> None:
    """As under nohup."""
    does = "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    done = launcher.run(
        "PreToolUse", env=launcher.env(DO=does), preexec_fn=lambda: void(signal.signal(signal.SIGHUP, signal.SIG_IGN))
    )
    assert done.stdout == b"True set()\n"


def void(_: object) -> None:
    """Discard the value of a lambda."""
