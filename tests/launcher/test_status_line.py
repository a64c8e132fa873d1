"""A status line is told to the daemon, and then the person's own is run as if nobody had listened."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from launcher.stage import answer_200, answer_202, answer_303, closed, headers
from launcher.test_cold_road import GARBAGE

if TYPE_CHECKING:
    from launcher.stage import Daemon, Launcher, Say

PAYLOAD = b'{"session_id": "s1", "model": {"display_name": "Opus"}}'
ODD = {
    "empty": b"",
    "binary": bytes(range(256)) * 300,
    "no object": b"[1, 2",
    "large": b'{"x": "' + b"x" * (1 << 20) + b'"}',
}
COMMAND = """printf '%s|' "it's" "$0" $#; cat; echo; echo "to stderr" >&2; exit 7"""


ANSWERS: dict[str, Say] = {
    "a line": answer_200(b"ours\n"),
    "words and an exit code": answer_200(b"ours\n", b"oh\n", 2),
    "a plan": answer_202(b"{}"),
    "a wait": answer_303("abc"),
    **{name: GARBAGE[name] for name in ("nothing", "503", "421", "binary", "not HTTP", "head cut off")},
}


def directly(launcher: Launcher, command: str, payload: bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """How it is without us."""
    more = {"env": launcher.env(), **more}
    return subprocess.run(["/bin/sh", "-c", command], input=payload, capture_output=True, check=False, **more)


def same(one: subprocess.CompletedProcess[bytes], other: subprocess.CompletedProcess[bytes]) -> bool:
    assert (one.stdout, one.stderr, one.returncode) == (other.stdout, other.stderr, other.returncode)
    return True


# -- the person's own ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_whatever_the_daemon_does_the_persons_own_is_run_unchanged(
    launcher: Launcher, daemon: Daemon, name: str
) -> None:
    daemon.answer = ANSWERS[name]
    done = launcher.run("StatusLine", "--then", COMMAND, stdin=PAYLOAD)
    assert same(done, directly(launcher, COMMAND, PAYLOAD))
    assert done.returncode == 7
    assert daemon.requests[0].endswith(b"\r\n\r\n" + PAYLOAD)
    assert len(daemon.requests) == 1
    assert not launcher.record.exists()


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("there", [True, False], ids=["told", "no daemon"])
def test_whatever_the_payload_is_it_is_handed_on(launcher: Launcher, daemon: Daemon, kind: str, *, there: bool) -> None:
    daemon.answer = answer_200(b"ours\n")
    env = launcher.env() if there else launcher.env(FAIRLEAD_HOME=str(launcher.home / "elsewhere"))
    done = launcher.run("StatusLine", "--then", "cat", stdin=ODD[kind], env=env)
    assert (done.stdout, done.stderr, done.returncode) == (ODD[kind], b"", 0)
    assert [request.partition(b"\r\n\r\n")[2] for request in daemon.requests] == ([ODD[kind]] if there else [])


def test_a_payload_larger_than_any_is_handed_on_whole(launcher: Launcher, daemon: Daemon) -> None:
    payload = b"x" * (64 << 20) + b"the end" * 20_000
    done = launcher.run("StatusLine", "--then", "tail -c 14 && echo && echo done", stdin=payload)
    assert (done.stdout, done.returncode) == (b"the endthe end\ndone\n", 0)
    assert not any(daemon.requests)


def test_its_environment_folder_files_and_signals_are_as_they_were(
    launcher: Launcher, daemon: Daemon, home: Any
) -> None:
    daemon.answer = answer_200(b"ours\n")
    look = "env | sort; pwd; ls /dev/fd/ 2>/dev/null | sort -n | head -n 3; trap; umask"
    env = launcher.env(LANG="C", ODD="a b\nc=\xff", EMPTY="")
    done = launcher.run("StatusLine", "--then", look, stdin=PAYLOAD, env=env, cwd=home)
    assert same(done, directly(launcher, look, PAYLOAD, env=env, cwd=home))
    for number in ("PIPE", "XFSZ", "INT", "TERM", "HUP", "CHLD"):
        told = f"kill -{number} $$; echo goes on"
        assert same(launcher.run("StatusLine", "--then", told), directly(launcher, told, b"{}"))


def test_it_has_no_file_of_ours(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"ours\n")
    look = "for fd in 3 4 5 6 7 8 9; do { true <&$fd; } 2>/dev/null && echo $fd; done; true"
    done = launcher.run("StatusLine", "--then", look)
    assert same(done, directly(launcher, look, b"{}"))


@pytest.mark.parametrize(
    "command",
    [
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
    ],
)
def test_any_command_is_run_as_the_client_would(launcher: Launcher, daemon: Daemon, command: str) -> None:
    daemon.answer = answer_200(b"ours\n")
    expected = directly(launcher, command, PAYLOAD)
    assert same(launcher.run("StatusLine", "--then", command, stdin=PAYLOAD), expected)
    assert same(launcher.run("StatusLine", f"--then={command}", "--client", "claude", stdin=PAYLOAD), expected)
    assert same(launcher.run("StatusLine", "--client", "of/nobody", "--then", command, stdin=PAYLOAD), expected)
    assert len(daemon.requests) == 2


def test_a_daemon_that_hangs_costs_a_third_of_a_second(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = lambda connection: connection.recv(1)  # until it hangs up
    env = {name: value for name, value in launcher.env().items() if name != "FAIRLEAD_DEADLINE_MS"}
    times = []
    for _ in range(3):  # once may be the machine's fault
        begun = time.monotonic()
        assert launcher.run("StatusLine", "--then", "cat", stdin=PAYLOAD, env=env).stdout == PAYLOAD
        times.append(time.monotonic() - begun)
    assert 0.3 <= min(times) < 1.9, "and not the two seconds of an event"


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


# -- ours ----------------------------------------------------------------------------------------------


def test_without_one_the_line_of_the_daemon_is_shown(launcher: Launcher, daemon: Daemon) -> None:
    line = "Opus \N{MIDDLE DOT} 42%\n".encode()
    daemon.answer = answer_200(line)
    done = launcher.run("StatusLine", stdin=PAYLOAD)
    assert (done.stdout, done.stderr, done.returncode) == (line, b"", 0)
    assert daemon.requests[0].startswith(b"POST /v1/events/StatusLine?client=claude HTTP/1.1\r\n")
    assert headers(daemon.requests[0])["content-length"] == str(len(PAYLOAD))


@pytest.mark.parametrize("name", ["nothing", "503", "binary", "head cut off"])
def test_without_an_answer_python_makes_a_line(launcher: Launcher, daemon: Daemon, name: str) -> None:
    daemon.answer = GARBAGE[name]
    done = launcher.run("StatusLine", stdin=PAYLOAD, env=launcher.env(DO="print('Opus')"))
    assert (done.stdout, done.stderr, done.returncode) == (b"Opus\n", b"", 0)
    assert launcher.went_cold("StatusLine", stdin=PAYLOAD)


@pytest.mark.parametrize("words", [(), ("--what",), ("--client", "a/b")])
def test_without_a_daemon_python_makes_a_line(launcher: Launcher, words: tuple[str, ...]) -> None:
    launcher.run("StatusLine", *words, stdin=PAYLOAD)
    assert launcher.went_cold("StatusLine", *words, stdin=PAYLOAD)


def test_nothing_that_goes_wrong_is_told_in_the_persons_line(launcher: Launcher, daemon: Daemon) -> None:
    launcher.python.unlink()
    done = launcher.run("StatusLine")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)
    daemon.answer = answer_200(b"ours" * 100_000)
    done = launcher.run("StatusLine", preexec_fn=closed(1))
    assert (done.stderr, done.returncode) == (b"", 0)


def test_only_a_status_line_has_another_behind_it(launcher: Launcher, daemon: Daemon) -> None:
    for event in ("Stop", "statusline", "PreToolUse"):
        launcher.run(event, "--then", "echo no")
        assert launcher.went_cold(event, "--then", "echo no")
    assert not daemon.requests
