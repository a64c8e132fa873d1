"""The client of the daemon's socket: responses in any pieces, streams, errors that say what to do, light imports."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unprivileged import without_permission

from fairlead.ipc import (
    ConnectionLost,
    DaemonNotResponding,
    DaemonUnavailable,
    RequestRefused,
    daemon_pid,
    exchange,
    open_stream,
    request,
    stream_events,
)
from fairlead.ipc._http import EventStreamParser, ResponseParser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 8\r\n\r\n[1, 2,3]"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n[1,\r\n5\r\n 2,3]\r\n0\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.0 200 OK\r\n\r\n[1, 2,3]"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
EVENTS = b": heartbeat\n\nid: 7\nevent: session\ndata: [1]\n\nevent: gone\r\ndata: {}\r\n\r\nevent: cut"
TIMEOUT = 20.0


def pieces(text: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


@given(st.sampled_from([PLAIN, CHUNKED, UNTIL_CLOSED]), st.lists(st.integers(0, 200), max_size=12))
def test_a_response_may_arrive_in_any_pieces(response: bytes, cuts: list[int]) -> None:
    parser = ResponseParser()

    body = b"".join([parser.feed(piece) for piece in pieces(response, cuts)])
    if not parser.is_complete:
        parser.feed(b"")

    assert (parser.is_complete, parser.status, body.replace(b" ", b"")) == (True, 200, b"[1,2,3]")


@given(st.lists(st.integers(0, 200), max_size=12))
def test_events_may_arrive_in_any_pieces(cuts: list[int]) -> None:
    parser = EventStreamParser()

    events = [tuple(event) for piece in pieces(EVENTS, cuts) for event in parser.feed(piece)]

    assert events == [("", b"", ""), ("session", b"[1]", "7"), ("gone", b"{}", "")]


@contextmanager
def server(answer: bytes | Callable[[socket.socket], object]) -> Iterator[str]:
    """Serve one connection at a socket."""
    with tempfile.TemporaryDirectory(prefix="flipc", dir="/tmp") as folder:  # a socket's path must be short
        path = f"{folder}/daemon.sock"
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(path)
            listener.listen()

            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    if callable(answer):
                        answer(connection)
                    else:
                        connection.recv(65536)
                        connection.sendall(answer)

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            yield path
            thread.join(TIMEOUT)


def test_a_request_and_its_response() -> None:
    with server(PLAIN) as path:
        assert request("POST", "/v1/x", {"a": 1}, at=path) == [1, 2, 3]
    with server(CHUNKED) as path:
        response = exchange("GET", "/v1/x", timeout=TIMEOUT, at=path)
    assert response.body == b"[1, 2,3]"
    assert response.headers == {"transfer-encoding": "chunked"}


def test_a_refusal_that_comes_before_the_request_was_read_is_heard() -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 413 No\r\ncontent-length: 7\r\n\r\ntoo big")
        connection.shutdown(socket.SHUT_RDWR)

    with server(refuse) as path, pytest.raises(RequestRefused, match="the daemon answers 413: too big"):
        request("POST", "/v1/x", b"x" * 10_000_000, at=path)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "it closed the connection without a response"),
        (PLAIN[:-1], "it closed the connection in the middle of a response"),
        (CHUNKED[:-5], "it closed the connection in the middle of a response"),
        (PLAIN[:20], "it closed the connection in the middle of a response"),
        (b"220 smtp.example.com ESMTP", r"not an HTTP response: b'220 smtp"),
        (b"HTTP/1.1 OK\r\n\r\n", "not an HTTP response: 'HTTP/1.1 OK'"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000, "not an HTTP response"),
    ],
)
def test_what_is_no_whole_response_is_an_error(answer: bytes, problem: str) -> None:
    with server(answer) as path, pytest.raises(ConnectionLost, match=problem) as caught:
        request("GET", "/v1/x", at=path)
    assert str(caught.value).startswith(f"cannot talk to the daemon at {path}: ")


def test_a_socket_that_may_not_be_reached_is_named_with_a_remedy() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        run = Path(folder, "run")
        run.mkdir()
        with without_permission(run), pytest.raises(ConnectionLost) as caught:
            request("GET", "/v1/x", at=f"{run}/daemon.sock")

    advice = "make its folders yours, or set FAIRLEAD_HOME"
    assert str(caught.value) == f"{run}/daemon.sock: Permission denied; {advice}"


def test_each_error_says_what_to_do(tmp_path: Path) -> None:
    missing = tmp_path / "daemon.sock"
    with pytest.raises(DaemonUnavailable) as none:
        request("GET", "/v1/x", at=str(missing))
    assert str(none.value) == f"no daemon is running (no socket at {missing}); start one: fairlead daemon start"

    with server(lambda _: None) as path, closing(socket.socket(socket.AF_UNIX)) as abandoned:
        abandoned.bind(f"{path}.old")
        with pytest.raises(DaemonUnavailable) as gone:
            request("GET", "/v1/x", at=f"{path}.old")
        assert str(gone.value) == f"the daemon at {path}.old is gone; start another: fairlead daemon start"
        exchange_or_none(path)


def exchange_or_none(path: str) -> None:
    with pytest.raises(ConnectionLost):
        exchange("GET", "/", timeout=TIMEOUT, at=path)


def test_a_daemon_that_does_not_answer_is_named_by_its_pid() -> None:
    done = threading.Event()
    with server(lambda _: done.wait(TIMEOUT)) as path:
        with (Path(path).parent / "daemon.lock").open("w+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write("4711\n")
            lock.flush()
            with pytest.raises(DaemonNotResponding) as caught:
                request("GET", "/v1/x", timeout=0.05, at=path)
            assert daemon_pid(str(Path(path).parent)) == 4711
        done.set()
        assert daemon_pid(str(Path(path).parent)) is None
    assert str(caught.value) == "the daemon does not answer within 0.05 s (pid 4711); if it hangs, end it: kill -9 4711"


def test_a_stream_ends_with_the_daemon_and_refusals_are_raised() -> None:
    chunk = b"%x\r\n%s\r\n" % (len(EVENTS), EVENTS)
    with server(STREAM + chunk + b"5\r\nhal") as path:
        assert list(stream_events("/s", timeout=TIMEOUT, at=path)) == [("", None), ("session", [1]), ("gone", {})]
    with (
        server(b"HTTP/1.1 404 No\r\ncontent-length: 4\r\n\r\nnone") as path,
        pytest.raises(RequestRefused, match="none"),
    ):
        list(stream_events("/s", timeout=TIMEOUT, at=path))
    with pytest.raises(DaemonUnavailable, match="no daemon is running"):
        list(stream_events("/s", timeout=TIMEOUT, at=f"/tmp/{os.getpid()}-none.sock"))


def test_a_stream_ends_at_its_deadline_although_events_arrive_all_the_time() -> None:
    chunk = b"%x\r\n%s\r\n" % (len(EVENTS), EVENTS)

    def send_events(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(STREAM)
        with suppress(OSError):  # until the reader is gone
            while True:
                connection.sendall(chunk)

    with server(send_events) as path, pytest.raises(DaemonNotResponding):
        for _ in stream_events("/s", timeout=TIMEOUT, deadline=monotonic() + 0.2, at=path):
            pass


async def test_an_event_loop_reads_the_same_responses() -> None:
    with server(CHUNKED) as path:
        async with open_stream(path, "/v1/x") as response:
            assert await response.read() == b"[1, 2,3]"
    with server(STREAM + b"%x\r\n%s\r\n" % (len(EVENTS), EVENTS)) as path:
        async with open_stream(path, "/s") as response:
            assert [event.kind async for event in response.events(TIMEOUT)] == ["", "session", "gone"]


async def test_an_event_loop_gets_the_same_errors() -> None:
    error = b"HTTP/1.1 500 No\r\ncontent-length: 4\r\n\r\noops"
    with server(error) as path, pytest.raises(RequestRefused, match="the daemon answers 500: oops"):
        async with open_stream(path, "/v1/x"):
            pass
    with server(PLAIN[:-1]) as path, pytest.raises(ConnectionLost, match="in the middle of a response"):
        async with open_stream(path, "/v1/x") as response:
            await response.read()
    with pytest.raises(DaemonUnavailable, match="no daemon is running"):
        async with open_stream(f"/tmp/{os.getpid()}-none.sock", "/v1/x"):
            pass


IMPORTS = """
import sys
from fairlead.ipc import DaemonUnavailable, exchange
try:
    exchange("GET", "/", timeout=1, at="/none")
except DaemonUnavailable:
    print(sorted({"json", "asyncio", "http", "email", "urllib", "ssl"} & set(sys.modules)))
"""


def test_a_request_imports_little() -> None:
    assert subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True).stdout == "[]\n"
