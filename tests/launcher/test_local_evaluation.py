"""If the daemon cannot answer, Python evaluates the event: with the same arguments and the same stdin."""

from __future__ import annotations

import os
import pty
import resource
import socket
import time
from typing import TYPE_CHECKING

import pytest
from launcher.fakes import Daemon, answer_200, closed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from launcher.fakes import Launcher

GOOD = answer_200(b"yes", b"no")
HEAD = GOOD.partition(b"\r\n\r\n")[0]
GARBAGE = {
    "nothing": b"",
    "one byte": b"H",
    "not HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "binary": bytes(range(256)) * 80,
    "HTTP/1.0": GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "no status": GOOD.replace(b"200 OK", b""),
    "four digits": GOOD.replace(b"200", b"2000"),
    "204": GOOD.replace(b"200", b"204"),
    "100": b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD,
    "421": GOOD.replace(b"200", b"421"),
    "426": GOOD.replace(b"200", b"426"),
    "500": b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 5\r\n\r\nsorry",
    "503": GOOD.replace(b"200", b"503"),
    "head cut off": HEAD,
    "head cut off in its end": HEAD + b"\r\n\r",
    "no exit code": GOOD.replace(b"fairlead-exit", b"fairlead-exut"),
    "no size of stdout": GOOD.replace(b"fairlead-stdout", b"fairlead-x"),
    "no length": GOOD.replace(b"content-length", b"x-length"),
    "exit code 256": GOOD.replace(b"exit: 0", b"exit: 256"),
    "exit code -1": GOOD.replace(b"exit: 0", b"exit: -1"),
    "exit code empty": GOOD.replace(b"exit: 0", b"exit: "),
    "exit code in words": GOOD.replace(b"exit: 0", b"exit: 0 0"),
    "exit code twice": GOOD.replace(b"fairlead-exit: 0", b"fairlead-exit: 0\r\nfairlead-exit: 0"),
    "length over 64 bits": GOOD.replace(b"length: 5", b"length: 18446744073709551621"),
    "length over 80 MiB": GOOD.replace(b"length: 5", b"length: 83886081"),
    "length in hex": GOOD.replace(b"length: 5", b"length: 0x5"),
    "length of a sign": GOOD.replace(b"length: 5", b"length: +5"),
    "stdout over length": GOOD.replace(b"stdout: 3", b"stdout: 6"),
    "stdout over 64 bits": GOOD.replace(b"stdout: 3", b"stdout: 18446744073709551619"),
    "body too short": GOOD[:-1],
    "no body": HEAD + b"\r\n\r\n",
    "body too long": GOOD + b"!",
    "chunked": GOOD.replace(b"content-length", b"transfer-encoding: chunked\r\ncontent-length"),
    "line without colon": GOOD.replace(b"\r\n\r\n", b"\r\nwhat\r\n\r\n"),
    "line without name": GOOD.replace(b"\r\n\r\n", b"\r\n: what\r\n\r\n"),
    "folded line": GOOD.replace(b"exit: 0", b"exit:\r\n 0"),
    "bare line feeds": GOOD.replace(b"\r\n", b"\n"),
    "bare carriage return": GOOD.replace(b"200 OK", b"200 O\rK"),
    "NUL": GOOD.replace(b"200 OK", b"200 O\0K"),
    "head without end": HEAD + b"\r\nx: " + b"x" * 70_000,
    "plan without length": b"HTTP/1.1 202 Accepted\r\n\r\n{}",
    "plan without body": b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
    "plan cut off": b"HTTP/1.1 202 Accepted\r\ncontent-length: 3\r\n\r\n{}",
}


def test_an_answer_that_is_not_understood_is_ignored(launcher: Launcher, daemon: Daemon) -> None:
    payload = b'{"a": 1}\0\xff'
    for name, answer in GARBAGE.items():
        daemon.answer = answer
        done = launcher.run("PreToolUse", stdin=payload)
        assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0), name
        assert launcher.evaluated_locally("PreToolUse", stdin=payload), name


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
def test_stdin_is_restored_byte_for_byte(launcher: Launcher, daemon: Daemon, event: str) -> None:
    daemon.answer = GARBAGE["503"]
    for size in (0, 1, 65536, 1 << 20, 5 << 20):
        payload = (bytes(range(256)) * (20 << 10))[:size]
        launcher.run(event, stdin=payload)
        assert launcher.evaluated_locally(event, stdin=payload)


@pytest.mark.parametrize("event", ["PreToolUse", "Stop"])
def test_stdin_is_restored_by_a_pipe_if_no_file_can_be_written(launcher: Launcher, daemon: Daemon, event: str) -> None:
    payload = bytes(range(256)) * 4096
    daemon.answer = GARBAGE["503"]

    def no_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    size = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)"
    text = launcher.python.read_text(encoding="utf-8").replace("import json,", f"{size}; import json,")
    launcher.python.write_text(text.replace("-IS", "-I"), encoding="utf-8")  # `resource` is not a built-in module
    launcher.run(event, stdin=payload, preexec_fn=no_files)
    assert launcher.evaluated_locally(event, stdin=payload)


def test_a_payload_that_is_too_large_is_left_to_python(launcher: Launcher, daemon: Daemon) -> None:
    """It is restored completely: what was read of it, and the rest as it arrives."""
    payload = b"x" * (64 << 20) + b"12345" * 30_000
    daemon.answer = GOOD
    launcher.run("Stop", stdin=payload)
    assert not daemon.requests[0]
    assert launcher.evaluated_locally("Stop", stdin=payload)


def test_a_daemon_that_never_answers_is_abandoned_at_the_deadline(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = lambda _: void(daemon.over.wait())
    launcher.run("PreToolUse", env=launcher.env(FAIRLEAD_DEADLINE_MS="50"))
    assert launcher.evaluated_locally("PreToolUse")


def test_an_invalid_deadline_is_replaced_by_the_default(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = GOOD
    for deadline in ("0", "-5", "60001", "soon", "", "99999999999999999999"):
        assert launcher.run("Stop", env=launcher.env(FAIRLEAD_DEADLINE_MS=deadline)).stdout == b"yes"


def test_an_answer_that_never_ends_is_abandoned_at_the_deadline(launcher: Launcher, daemon: Daemon) -> None:
    """Each byte arrives in time, but the whole answer does not."""

    def dripping(connection: socket.socket) -> None:
        connection.sendall(HEAD)
        while not daemon.over.wait(0.01):
            connection.sendall(b"x")

    daemon.answer = dripping
    started = time.monotonic()
    launcher.run("Stop", env=launcher.env(FAIRLEAD_DEADLINE_MS="200"))
    assert 0.2 <= time.monotonic() - started < 2, "the default deadline is 2 s"
    assert launcher.evaluated_locally("Stop")


def test_a_daemon_that_does_not_read_is_abandoned_at_the_deadline(launcher: Launcher) -> None:
    payload = b"x" * (4 << 20)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(launcher.home / "run" / "daemon.sock"))
        listener.listen()
        launcher.run("Stop", stdin=payload, env=launcher.env(FAIRLEAD_DEADLINE_MS="100"))
    assert launcher.evaluated_locally("Stop", stdin=payload)


def test_a_daemon_that_closes_the_connection_at_once_is_ignored(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = lambda connection: connection.shutdown(socket.SHUT_RDWR)
    launcher.run("Stop", stdin=b"x" * (4 << 20))
    assert launcher.evaluated_locally("Stop", stdin=b"x" * (4 << 20))


def no_socket(path: Path) -> None:
    assert not path.exists()


def no_folder(path: Path) -> None:
    path.parent.rmdir()


def not_listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def plain_file(path: Path) -> None:
    path.write_text("", encoding="utf-8")


@pytest.mark.parametrize("event", ["PreToolUse", "Stop"])
@pytest.mark.parametrize("prepare", [no_socket, no_folder, not_listening, plain_file])
def test_without_a_daemon_stdin_is_not_read(launcher: Launcher, event: str, prepare: Callable[[Path], None]) -> None:
    prepare(launcher.home / "run" / "daemon.sock")
    payload = launcher.home / "payload"
    payload.write_bytes(b"0123456789")
    with payload.open("rb") as file:
        os.lseek(file.fileno(), 4, os.SEEK_SET)
        launcher.run(event, stdin_file=file)
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 10, "Python reads the file itself"
    assert launcher.evaluated_locally(event, stdin=b"456789")


def test_a_path_that_is_too_long_for_a_socket_means_no_daemon(launcher: Launcher) -> None:
    launcher.run("Stop", env=launcher.env(FAIRLEAD_HOME=f"/{'x' * 90}"))
    assert launcher.evaluated_locally("Stop")


def test_a_daemon_of_another_user_is_not_trusted(launcher: Launcher) -> None:
    """The kernel records the user at the moment of `listen`."""
    if os.geteuid() != 0:
        pytest.skip("only root can change its user")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(launcher.home / "run" / "daemon.sock"))
        os.seteuid(65534)
        try:
            listener.listen()
        finally:
            os.seteuid(0)
        launcher.run("PreToolUse")
    assert launcher.evaluated_locally("PreToolUse")


UNKNOWN_ARGUMENTS: list[tuple[str, ...]] = [
    ("PreToolUse", "--hooks", "guards.py"),
    ("PreToolUse", "--rules=a b", "--timeout", "1"),
    ("Stop", "--help"),
    ("--version",),
    ("Stop", "--client"),
    ("Stop", "--client", "a/../b"),
    ("Stop", "--client=", "x"),
    ("pre_tool_use",),
    ("Pre Tool\r\nUse: 1",),
    ("x" * 65,),
    ("",),
    ("--client", "claude", "PreToolUse"),
    ("Stop", "\N{SNOWMAN}", "", "a\nb"),
]


def test_arguments_that_the_daemon_cannot_handle_are_all_passed_on(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = GOOD
    for args in UNKNOWN_ARGUMENTS:
        launcher.run(*args)
        assert launcher.evaluated_locally(*args)
    assert not daemon.requests


def test_without_arguments_python_prints_the_usage(launcher: Launcher) -> None:
    launcher.run()
    assert launcher.ran()["argv"][5:] == []


@pytest.mark.parametrize(("size", "asked"), [(4096, 1), (4097, 0), (100_000, 0)])
def test_a_huge_value_is_not_sent(launcher: Launcher, daemon: Daemon, size: int, asked: int) -> None:
    daemon.answer = GOOD
    env = launcher.env(**dict.fromkeys(("TMUX", "CLAUDE_PROJECT_DIR"), "%" * size))
    launcher.run("Stop", env=env)
    assert len(list(filter(None, daemon.requests))) == asked
    assert asked or launcher.evaluated_locally("Stop")


def test_a_removed_working_folder_is_left_to_python(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = GOOD
    gone = launcher.home / "gone"
    gone.mkdir()
    launcher.run("Stop", cwd=gone, preexec_fn=gone.rmdir)
    assert launcher.evaluated_locally("Stop")


def test_a_terminal_is_not_read(launcher: Launcher, daemon: Daemon) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"typed\n\x04")
    launcher.run("Stop", stdin_file=theirs)
    assert launcher.evaluated_locally("Stop", stdin=b"typed\n")
    assert not any(daemon.requests)
    os.close(ours)
    os.close(theirs)


def test_stdin_that_is_closed_stays_closed(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = GOOD
    launcher.run("Stop", preexec_fn=closed(0))
    assert launcher.stdin() == b"cannot read: 9" or not launcher.stdin()
    assert not any(daemon.requests)


def void(_: object) -> None:
    """Discard the value of a lambda."""
