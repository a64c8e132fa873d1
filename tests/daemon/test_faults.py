"""Whatever is broken: a protected edit is blocked, and any call is answered in time."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import LAUNCHER, until

from fairlead.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from daemon.daemon_home import DaemonHome

    Fault = Callable[[DaemonHome], AbstractContextManager[object]]

CONNECTIONS = Path("/proc/net/unix")
POLICY = "preToolUse: {uneditableFiles: [kept.txt]}\n"
LONGEST = 10.0
"""Seconds for one call, on a busy machine; the client waits for sixty."""


# -- faults --------------------------------------------------------------------------------------------


@contextmanager
def no_daemon(_: DaemonHome) -> Iterator[None]:
    yield


@contextmanager
def all_well(home: DaemonHome) -> Iterator[None]:
    with home.daemon():
        yield


@contextmanager
def killed_daemon(home: DaemonHome) -> Iterator[None]:
    daemon = home.start()
    daemon.kill()
    daemon.wait()
    yield


@contextmanager
def no_socket(home: DaemonHome) -> Iterator[None]:
    with home.daemon():
        home.socket.unlink()
        yield


@contextmanager
def a_file_for_a_socket(home: DaemonHome) -> Iterator[None]:
    with home.daemon():
        home.socket.unlink()
        home.socket.write_bytes(b"no socket")
        yield


@contextmanager
def a_folder_for_a_socket(home: DaemonHome) -> Iterator[None]:
    home.socket.mkdir(parents=True)
    yield


@contextmanager
def stopped_daemon(home: DaemonHome) -> Iterator[None]:
    with home.daemon() as daemon:
        daemon.send_signal(signal.SIGSTOP)
        yield


@contextmanager
def a_file_for_the_state(home: DaemonHome) -> Iterator[None]:
    home.state.rmdir()
    home.state.write_bytes(b"")
    yield
    home.state.unlink()


@contextmanager
def full_disk(home: DaemonHome) -> Iterator[None]:
    """A daemon whose files may not grow any more gets the errors that a full disk gives."""
    with home.daemon() as daemon:
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        yield
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: not home.spooled(), "what was answered meanwhile is taken in once there is room")
        assert sorted(record.exit for record in home.happened()) == [0, 2]


@contextmanager
def no_journal(home: DaemonHome) -> Iterator[None]:
    with home.daemon():
        home.hook("PreToolUse", home.edit("src/a.txt"))
        shutil.rmtree(home.state / "journal")
        yield
        assert [record.route for record in home.happened()] == ["daemon", "daemon"]


@contextmanager
def a_file_for_the_journal(home: DaemonHome) -> Iterator[None]:
    with home.daemon():
        shutil.rmtree(home.state / "journal")
        (home.state / "journal").write_bytes(b"")
        yield
        (home.state / "journal").unlink()
        until(lambda: not home.spooled(), "what was answered meanwhile is taken in")
        assert [record.route for record in home.happened()] == ["cold", "cold"]


@contextmanager
def damaged_database(home: DaemonHome) -> Iterator[None]:
    (home.state / "fairlead.db").write_bytes(b"no database at all" * 1000)
    with home.daemon():
        yield
        until(lambda: list(home.state.glob("fairlead.db.damaged-*")), "it is set aside")


@contextmanager
def newer_database(home: DaemonHome) -> Iterator[None]:
    file = home.state / "fairlead.db"
    Store.open(f"sqlite:///{file}").close()
    with closing(sqlite3.connect(file)) as database:
        (table,) = database.execute("SELECT name FROM sqlite_master WHERE name LIKE '%revision%'").fetchone()
        database.execute(f"UPDATE {table} SET version_num = '9999'")
        database.commit()
    with home.daemon():
        yield


def imposter(answer: bytes | None) -> Fault:
    """One who listens at the socket, and answers nonsense, or (`None`) nothing at all."""

    @contextmanager
    def fault(home: DaemonHome) -> Iterator[None]:
        home.socket.parent.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(home.socket))
            listener.listen()
            home.socket.with_suffix(".lock").write_text(f"{os.getpid()}\n")
            thread = Thread(target=_answer_all, args=(listener, answer))
            thread.start()
            yield
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()

    return fault


def _answer_all(listener: socket.socket, answer: bytes | None) -> None:
    held = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            if answer is None:
                held.append(connection)
                continue
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)
    for connection in held:
        connection.close()


NONSENSE = {
    "silence": None,
    "nothing": b"",
    "no-http": b"\0\xff nonsense\r\n\r\n",
    "half": b"HTTP/1.1 200 OK\r\nfairlead-exit: 0\r\nfairlead-st",
    "web-page": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "too-short": b"HTTP/1.1 200 OK\r\nfairlead-exit: 0\r\nfairlead-stdout: 9\r\ncontent-length: 9\r\n\r\nhi",
    "error": b"HTTP/1.1 500 Oh\r\nfairlead-exit: 0\r\nfairlead-stdout: 0\r\ncontent-length: 0\r\n\r\n",
}

FAULTS: dict[str, Fault] = {
    **{
        made.__name__: made
        for made in (
            *(all_well, no_daemon, killed_daemon, no_socket, a_file_for_a_socket, a_folder_for_a_socket),
            *(stopped_daemon, a_file_for_the_state, full_disk, no_journal, a_file_for_the_journal),
            *(damaged_database, newer_database),
        )
    },
    **{f"imposter-{name}": imposter(answer) for name, answer in NONSENSE.items()},
}


# -- the matrix ----------------------------------------------------------------------------------------


def calls(home: DaemonHome, *words: str) -> tuple[int, int]:
    """The exit codes of an edit that the policy forbids, and of a harmless one."""
    codes = []
    for name in ("kept.txt", "src/a.txt"):
        begun = monotonic()
        done = home.hook("PreToolUse", home.edit(name), *words, FAIRLEAD_DEADLINE_MS="500")
        codes.append(done.exit_code)
        assert monotonic() - begun < LONGEST
        assert done.exit_code == 0 or done.stderr, "who is blocked is told why"
    return codes[0], codes[1]


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_is_broken_the_protected_edit_is_blocked_and_the_harmless_one_let_through(
    home: DaemonHome, name: str
) -> None:
    home.policy(POLICY)
    with FAULTS[name](home):
        assert calls(home) == (2, 0)


@pytest.mark.parametrize("name", ["all_well", "no_daemon"])
def test_a_policy_that_was_never_right_blocks_all(home: DaemonHome, name: str) -> None:
    home.policy("preToolUse: [\n")
    with FAULTS[name](home):
        assert calls(home) == (2, 2)


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false", "/etc/passwd"])
def test_without_python_the_daemon_answers_and_without_both_all_is_blocked(home: DaemonHome, python: str) -> None:
    home.policy(POLICY)
    with home.daemon():
        assert calls(home, "--python", python) == (2, 0)
    assert calls(home, "--python", python) == (2, 2)


def test_commands_that_nobody_can_read_are_decided_again(home: DaemonHome) -> None:
    plan = b"HTTP/1.1 202 Accepted\r\nfairlead-exit: 0\r\nfairlead-stdout: 4\r\ncontent-length: 4\r\n\r\nnope"
    home.policy(POLICY)
    with imposter(plan)(home):
        assert calls(home) == (2, 0)


@pytest.mark.skipif(not CONNECTIONS.exists(), reason="looks at the system's table of sockets")
def test_a_daemon_killed_before_it_answers_is_replaced_by_the_cold_road(home: DaemonHome) -> None:
    home.policy(POLICY)
    daemon = home.start()
    daemon.send_signal(signal.SIGSTOP)
    command = [str(LAUNCHER), "PreToolUse"]
    patient = home.environment(FAIRLEAD_DEADLINE_MS="60000")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=patient) as hook:
        assert hook.stdin is not None
        hook.stdin.write(home.edit("kept.txt"))
        hook.stdin.close()
        until(lambda: CONNECTIONS.read_text().count(str(home.socket)) > 1, "the launcher has connected")

        daemon.kill()

        assert hook.wait(LONGEST) == 2
        assert hook.stderr is not None
        assert b"uneditableFiles" in hook.stderr.read()
    daemon.wait()
