"""A status line is reported to the daemon, and then the user's own is run as if the launcher were not there."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from launcher.fakes import answer_200, answer_202, answer_303, closed, headers
from launcher.test_local_evaluation import GARBAGE

if TYPE_CHECKING:
    from launcher.fakes import Daemon, Launcher, Reply

PAYLOAD = b'{"session_id": "s1", "model": {"display_name": "Opus"}}'
ODD = {
    "empty": b"",
    "binary": bytes(range(256)) * 300,
    "no object": b"[1, 2",
    "large": b'{"x": "' + b"x" * (1 << 20) + b'"}',
}
COMMAND = """printf '%s|' "it's" "$0" $#; cat; echo; echo "to stderr" >&2; exit 7"""


ANSWERS: dict[str, Reply] = {
    "a line": answer_200(b"ours\n"),
    "text and an exit code": answer_200(b"ours\n", b"oh\n", 2),
    "a plan": answer_202(b"{}"),
    "a wait": answer_303("abc"),
    **{name: GARBAGE[name] for name in ("nothing", "503", "421", "binary", "not HTTP", "head cut off")},
}


def directly(launcher: Launcher, command: str, payload: bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command without the launcher."""
    more = {"env": launcher.env(), **more}
    return subprocess.run(["/bin/sh", "-c", command], input=payload, capture_output=True, check=False, **more)


def same(one: subprocess.CompletedProcess[bytes], other: subprocess.CompletedProcess[bytes]) -> bool:
    assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)
    return True


# -- the user's own status line -------------------------------------------------------------------------


def test_whatever_the_daemon_answers_the_users_own_is_run_unchanged(launcher: Launcher, daemon: Daemon) -> None:
    expected = directly(launcher, COMMAND, PAYLOAD)
    assert expected.returncode == 7
    for count, answer in enumerate(ANSWERS.values(), 1):
        daemon.answer = answer
        assert same(launcher.run("StatusLine", "--then", COMMAND, stdin=PAYLOAD), expected)
        assert daemon.requests[-1].endswith(b"\r\n\r\n" + PAYLOAD)
        assert len(daemon.requests) == count
    assert not launcher.record.exists()


@pytest.mark.parametrize("is_running", [True, False], ids=["daemon", "no daemon"])
def test_any_payload_is_passed_on(launcher: Launcher, daemon: Daemon, *, is_running: bool) -> None:
    daemon.answer = answer_200(b"ours\n")
    env = launcher.env() if is_running else launcher.env(FAIRLEAD_HOME=str(launcher.home / "elsewhere"))
    for payload in ODD.values():
        done = launcher.run("StatusLine", "--then", "cat", stdin=payload, env=env)
        assert (done.stdout, done.stderr, done.returncode) == (payload, b"", 0)
    assert [request.partition(b"\r\n\r\n")[2] for request in daemon.requests] == (
        list(ODD.values()) if is_running else []
    )


def test_a_payload_over_the_limit_is_passed_on_completely(launcher: Launcher, daemon: Daemon) -> None:
    payload = b"x" * (64 << 20) + b"the end" * 20_000
    done = launcher.run("StatusLine", "--then", "tail -c 14 && echo && echo done", stdin=payload)
    assert (done.stdout, done.returncode) == (b"the endthe end\ndone\n", 0)
    assert not any(daemon.requests)


def test_environment_folder_files_and_signals_are_unchanged(launcher: Launcher, daemon: Daemon, home: Any) -> None:
    daemon.answer = answer_200(b"ours\n")
    look = "env | sort; pwd; ls /dev/fd/ 2>/dev/null | sort -n | head -n 3; trap; umask"
    env = launcher.env(LANG="C", ODD="a b\nc=\xff", EMPTY="")
    done = launcher.run("StatusLine", "--then", look, stdin=PAYLOAD, env=env, cwd=home)
    assert same(done, directly(launcher, look, PAYLOAD, env=env, cwd=home))
    for number in ("PIPE", "XFSZ", "INT", "TERM", "HUP", "CHLD"):
        command = f"kill -{number} $$; echo continues"
        assert same(launcher.run("StatusLine", "--then", command), directly(launcher, command, b"{}"))


def test_it_inherits_no_file_of_ours(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"ours\n")
    look = "for fd in 3 4 5 6 7 8 9; do { true <&$fd; } 2>/dev/null && echo $fd; done; true"
    done = launcher.run("StatusLine", "--then", look)
    assert same(done, directly(launcher, look, b"{}"))


COMMANDS = (
    "",
    "true",
    "exit 3",
    "kill -9 $$",
    "no-such-program",
    "syntax ((",
    "echo 'a  b' \"c\" \\\\ `echo d` $(echo e) > /dev/stdout | cat; echo f && echo g",
    "echo one\necho two\n\n# a remark",
    "printf %s '\N{SNOWMAN} \x1b[31mred\x1b[0m'",
    "echo --python; echo --then",
    'read line; echo "$line"',
    "--client",
)


def test_any_command_is_run_as_the_client_would(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"ours\n")
    for command in COMMANDS:
        expected = directly(launcher, command, PAYLOAD)
        assert same(launcher.run("StatusLine", "--then", command, stdin=PAYLOAD), expected)
        assert same(launcher.run("StatusLine", f"--then={command}", "--client", "claude", stdin=PAYLOAD), expected)
        assert same(launcher.run("StatusLine", "--client", "of/nobody", "--then", command, stdin=PAYLOAD), expected)
    assert len(daemon.requests) == 2 * len(COMMANDS)


def test_a_daemon_that_hangs_costs_a_third_of_a_second(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = lambda connection: connection.recv(1)  # until the launcher closes the connection
    env = {name: value for name, value in launcher.env().items() if name != "FAIRLEAD_DEADLINE_MS"}
    times = []
    for _ in range(3):  # one may be slow because of the machine
        started_at = time.monotonic()
        assert launcher.run("StatusLine", "--then", "cat", stdin=PAYLOAD, env=env).stdout == PAYLOAD
        times.append(time.monotonic() - started_at)
    assert 0.3 <= min(times) < 1.9, "not the two seconds of an event"


def test_a_terminal_is_not_read(launcher: Launcher, daemon: Daemon) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"typed\n\x04")
    done = launcher.run("StatusLine", "--then", "read line; echo $line", stdin_file=theirs)
    os.close(ours)
    os.close(theirs)
    assert (done.stdout, done.returncode) == (b"typed\n", 0)
    assert not any(daemon.requests)


def test_stdin_that_is_closed_stays_closed(launcher: Launcher, daemon: Daemon) -> None:
    done = launcher.run("StatusLine", "--then", "cat 2>/dev/null; echo $?", preexec_fn=closed(0))
    assert (done.stdout, done.returncode) in {(b"1\n", 0), (b"0\n", 0)}
    assert not any(daemon.requests)


# -- our own status line --------------------------------------------------------------------------------


def test_without_a_command_the_daemons_line_is_printed(launcher: Launcher, daemon: Daemon) -> None:
    line = "Opus \N{MIDDLE DOT} 42%\n".encode()
    daemon.answer = answer_200(line)
    done = launcher.run("StatusLine", stdin=PAYLOAD)
    assert (done.stdout, done.stderr, done.returncode) == (line, b"", 0)
    assert daemon.requests[0].startswith(b"POST /v1/events/StatusLine?client=claude HTTP/1.1\r\n")
    assert headers(daemon.requests[0])["content-length"] == str(len(PAYLOAD))


def test_without_an_answer_python_prints_a_line(launcher: Launcher, daemon: Daemon) -> None:
    for name in ("nothing", "503", "binary", "head cut off"):
        daemon.answer = GARBAGE[name]
        done = launcher.run("StatusLine", stdin=PAYLOAD, env=launcher.env(DO="print('Opus')"))
        assert (done.stdout, done.stderr, done.returncode) == (b"Opus\n", b"", 0)
        assert launcher.evaluated_locally("StatusLine", stdin=PAYLOAD)


@pytest.mark.parametrize("args", [(), ("--what",), ("--client", "a/b")])
def test_without_a_daemon_python_prints_a_line(launcher: Launcher, args: tuple[str, ...]) -> None:
    launcher.run("StatusLine", *args, stdin=PAYLOAD)
    assert launcher.evaluated_locally("StatusLine", *args, stdin=PAYLOAD)


def test_no_error_is_printed_in_the_status_line(launcher: Launcher, daemon: Daemon) -> None:
    launcher.python.unlink()
    done = launcher.run("StatusLine")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)
    daemon.answer = answer_200(b"ours" * 100_000)
    done = launcher.run("StatusLine", preexec_fn=closed(1))
    assert (done.stderr, done.returncode) == (b"", 0)


def test_only_a_status_line_has_the_option_then(launcher: Launcher, daemon: Daemon) -> None:
    for event in ("Stop", "statusline", "PreToolUse"):
        launcher.run(event, "--then", "echo no")
        assert launcher.evaluated_locally(event, "--then", "echo no")
    assert not daemon.requests
