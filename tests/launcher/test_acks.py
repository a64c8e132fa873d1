"""The launcher acknowledges a printed answer if the daemon asks for it, and only then."""

from __future__ import annotations

import queue
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from launcher.fakes import answer_200, answer_202, headers

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from launcher.fakes import Daemon, Launcher

FULL = Path("/dev/full")
GOOD = answer_200(b"out\n", b"err\n", 2).replace(b"OK\r\n", b"OK\r\nfairlead-ack: 1\r\n")
BAD = {
    "twice": GOOD.replace(b"fairlead-ack", b"fairlead-ack: 1\r\nfairlead-ack"),
    "a path": GOOD.replace(b"ack: 1", b"ack: ../1"),
    "too long": GOOD.replace(b"ack: 1", b"ack: " + b"1" * 65),
    "nothing": GOOD.replace(b"ack: 1", b"ack:"),
    "more": GOOD.replace(b"ack: 1", b"ack: 1 1"),
}


def replying(answer: bytes, received: queue.Queue[bytes]) -> Callable[[socket.socket], None]:
    """Return an answer that then records what is received until the connection is closed."""

    def reply(connection: socket.socket) -> None:
        connection.sendall(answer)
        data = b""
        while more := connection.recv(100):
            data += more
        received.put(data)

    return reply


@pytest.mark.parametrize(("answer", "ack"), [(GOOD, b"\n"), (answer_200(b"out\n", b"err\n", 2), b"")])
def test_a_printed_answer_is_acknowledged_if_the_daemon_asks(
    launcher: Launcher, daemon: Daemon, answer: bytes, ack: bytes
) -> None:
    received: queue.Queue[bytes] = queue.Queue()
    daemon.answer = replying(answer, received)

    done = launcher.run("Stop")

    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 2)
    assert headers(daemon.requests[0])["fairlead-acks"] == "2"
    assert received.get(timeout=30) == ack


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_an_answer_that_cannot_be_printed_is_not_acknowledged(launcher: Launcher, daemon: Daemon, stream: str) -> None:
    received: queue.Queue[bytes] = queue.Queue()
    daemon.answer = replying(GOOD, received)
    with FULL.open("wb") as full:
        streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: full}
        launcher.run("Stop", capture_output=False, **streams)

    assert received.get(timeout=30) == b""


def test_an_answer_with_an_invalid_ack_header_is_ignored(launcher: Launcher, daemon: Daemon) -> None:
    for answer in BAD.values():
        daemon.answer = answer
        launcher.run("Stop")
        assert launcher.evaluated_locally("Stop")


@pytest.mark.parametrize("ack", [b"\n", b""])
def test_the_program_that_runs_a_plan_can_acknowledge(launcher: Launcher, daemon: Daemon, ack: bytes) -> None:
    received: queue.Queue[bytes] = queue.Queue()
    daemon.answer = replying(answer_202(b"{}").replace(b"Accepted\r\n", b"Accepted\r\nfairlead-ack: 1\r\n"), received)
    launcher.run("Stop", env=launcher.env(DO=f"os.write(int(words[words.index('--ack-fd') + 1]), {ack!r})"))
    assert received.get(timeout=30) == ack
    assert launcher.ran()["plan"] == "{}"


def test_a_plan_without_ack_gets_no_connection(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_202(b"{}")
    launcher.run("Stop")
    assert "--ack-fd" not in launcher.ran()["argv"]
