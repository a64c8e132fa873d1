"""A daemon may want to hear that its answer is printed: a launcher that did not get so far has said nothing."""

from __future__ import annotations

import queue
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from launcher.stage import answer_200, answer_202, headers

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from launcher.stage import Daemon, Launcher

FULL = Path("/dev/full")
GOOD = answer_200(b"out\n", b"err\n", 2).replace(b"OK\r\n", b"OK\r\nfairlead-ack: 1\r\n")
BAD = {
    "twice": GOOD.replace(b"fairlead-ack", b"fairlead-ack: 1\r\nfairlead-ack"),
    "another number": GOOD.replace(b"ack: 1", b"ack: 2"),
    "nothing": GOOD.replace(b"ack: 1", b"ack:"),
    "more": GOOD.replace(b"ack: 1", b"ack: 1 1"),
}


def listening(answer: bytes, heard: queue.Queue[bytes]) -> Callable[[socket.socket], None]:
    """Answer, and keep what is said after that, to the end."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(answer)
        said = b""
        while more := connection.recv(100):
            said += more
        heard.put(said)

    return talk


@pytest.mark.parametrize(("answer", "said"), [(GOOD, b"\n"), (answer_200(b"out\n", b"err\n", 2), b"")])
def test_who_wants_to_hear_that_it_is_printed_hears_it(
    launcher: Launcher, daemon: Daemon, answer: bytes, said: bytes
) -> None:
    heard: queue.Queue[bytes] = queue.Queue()
    daemon.answer = listening(answer, heard)

    done = launcher.run("Stop")

    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 2)
    assert headers(daemon.requests[0])["fairlead-acks"] == "1"
    assert heard.get(timeout=30) == said


@pytest.mark.skipif(not FULL.exists(), reason="there is no file here that is always full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_cannot_be_printed_is_not_said_to_be(launcher: Launcher, daemon: Daemon, stream: str) -> None:
    heard: queue.Queue[bytes] = queue.Queue()
    daemon.answer = listening(GOOD, heard)
    with FULL.open("wb") as full:
        streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: full}
        launcher.run("Stop", capture_output=False, **streams)

    assert heard.get(timeout=30) == b""


@pytest.mark.parametrize("name", BAD)
def test_what_is_asked_for_otherwise_is_no_answer(launcher: Launcher, daemon: Daemon, name: str) -> None:
    daemon.answer = BAD[name]
    launcher.run("Stop")
    assert launcher.went_cold("Stop")


@pytest.mark.parametrize("says", [b"\n", b""])
def test_who_carries_out_a_plan_can_say_it_in_our_place(launcher: Launcher, daemon: Daemon, says: bytes) -> None:
    heard: queue.Queue[bytes] = queue.Queue()
    daemon.answer = listening(answer_202(b"{}").replace(b"Accepted\r\n", b"Accepted\r\nfairlead-ack: 1\r\n"), heard)
    launcher.run("Stop", env=launcher.env(DO=f"os.write(int(words[words.index('--ack-fd') + 1]), {says!r})"))
    assert heard.get(timeout=30) == says
    assert launcher.ran()["plan"] == "{}"


def test_a_plan_that_nobody_wants_to_hear_of_is_handed_no_connection(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_202(b"{}")
    launcher.run("Stop")
    assert "--ack-fd" not in launcher.ran()["argv"]
