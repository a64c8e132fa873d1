"""The shortest road of an event: what a launcher writes is read off the socket, all else is read by uvicorn."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home
from daemon.talk import connect, read_answer
from hypothesis import given
from hypothesis import strategies as st

from fairlead.daemon.events._messages import (
    HookReply,
    NotHookRequest,
    RequestReader,
    encode_reply,
    read_request,
    read_target,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

HEADERS = {
    "host": "fairlead",
    "connection": "close",
    "fairlead-version": "0.1.0",
    "fairlead-pid": "4711",
    "fairlead-start": "123456",
    "fairlead-cwd": "/home/user/a%20b",
    "fairlead-env": "HOME=/home/user;TMUX_PANE=%253",
    "fairlead-id": "0000019a3c5e7f80-1f3a-1",
    "content-length": "2",
}


def written(
    headers: dict[str, str], body: bytes = b"{}", line: str = "POST /v1/events/PreToolUse?client=claude HTTP/1.1"
) -> bytes:
    head = [line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(head).encode() + body


WHOLE = written(HEADERS)


def test_it_is_read_as_the_other_road_reads_it() -> None:
    reader = RequestReader()
    events = ("PreToolUse", "PreToolUse", "pretooluse", "Stop", "PreToolUse", "MoonRise")
    for number, event in enumerate(events):  # the second time it is known, but for its id
        headers = {**HEADERS, "fairlead-id": f"0000019a3c5e7f80-1f3a-{number}"}
        as_list = [(name.encode(), value.encode()) for name, value in headers.items()]

        read = reader.read(written(headers, line=f"POST /v1/events/{event}?client=c{number % 2} HTTP/1.1"))

        assert read == (read_request(*read_target(event, b"client=c%d" % (number % 2)), as_list), b"{}")


def test_callers_are_not_taken_for_each_other() -> None:
    reader = RequestReader()
    for name in ("fairlead-pid", "fairlead-cwd", "fairlead-env", "fairlead-version"):
        first, second = (reader.read(written({**HEADERS, name: value})) for value in ("1", "2"))
        assert first
        assert second
        assert first[0] != second[0]


@given(st.integers(0, len(WHOLE) - 1))
def test_a_part_of_it_is_waited_for(size: int) -> None:
    assert RequestReader().read(WHOLE[:size]) is None


UNUSUAL = {
    "another method": written(HEADERS, line="PUT /v1/events/PreToolUse HTTP/1.1"),
    "an older protocol": written(HEADERS, line="POST /v1/events/PreToolUse HTTP/1.0"),
    "a path with more": written(HEADERS, line="POST /v1/events/Pre%20ToolUse HTTP/1.1"),
    "a name in capitals": written({**HEADERS, "Host": "x"}),
    "no size": written({name: value for name, value in HEADERS.items() if name != "content-length"}),
    "no id": written({name: value for name, value in HEADERS.items() if name != "fairlead-id"}),
    "a size that is none": written({**HEADERS, "content-length": "-2"}),
    "a size beyond all bounds": written({**HEADERS, "content-length": "9" * 5000}),
    "a large one": written({**HEADERS, "content-length": "300000"}),
    "in chunks": written({"transfer-encoding": "chunked", **HEADERS}),
    "a question first": written({"expect": "100-continue", **HEADERS}),
    "two sizes": written({"x": "y\r\ncontent-length: 1", **HEADERS}),
    "another order": written({**HEADERS, "fairlead-pid": "4711", "x": "y"}),
    "another behind it": WHOLE + WHOLE,
    "a head without end": b"POST /v1/events/PreToolUse HTTP/1.1\r\nx: " + b"y" * 70_000,
    "a line that goes on": WHOLE.replace(b"fairlead-pid: 4711", b"fairlead-pid: 4711\r\n more"),
}


@pytest.mark.parametrize("data", UNUSUAL.values(), ids=UNUSUAL)
def test_what_a_launcher_never_writes_is_for_the_other(data: bytes) -> None:
    with pytest.raises(NotHookRequest):
        RequestReader().read(data)


def test_an_answer_says_where_stdout_ends() -> None:
    assert encode_reply(HookReply(200, 2, b"out", b"error")) == (
        b"HTTP/1.1 200 OK\r\nfairlead-exit: 2\r\nfairlead-stdout: 3\r\ncontent-length: 8\r\n"
        b"connection: close\r\n\r\nouterror"
    )


# -- with the daemon -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home() -> Iterator[DaemonHome]:
    """A home with a policy and a daemon."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        made.policy("preToolUse: {uneditableFiles: [kept.txt]}\n")
        with made.daemon():
            yield made


def asked(home: DaemonHome, **headers: str) -> bytes:
    body = home.edit("kept.txt")
    size = {"content-length": str(len(body)), "fairlead-cwd": str(home.project)}
    kept = {name: value for name, value in HEADERS.items() if name != "fairlead-env"}
    return written({**kept, **size, **{name.replace("_", "-"): value for name, value in headers.items()}}, body)


@pytest.mark.parametrize("change", [{}, {"Accept": "*/*"}], ids=["usual", "unusual"])
def test_both_roads_come_to_the_same_answer(home: DaemonHome, change: dict[str, str]) -> None:
    with closing(connect(home.socket)) as connection:
        connection.sendall(asked(home, fairlead_id=f"1-{len(home.happened())}", **change))
        answer = read_answer(connection)
    assert (answer.status, answer.headers["fairlead-exit"]) == (200, "2")
    assert "kept.txt" in answer.text


def test_two_at_once_are_both_answered(home: DaemonHome) -> None:
    first, second = asked(home, fairlead_id="2-1"), asked(home, fairlead_id="2-2")
    with closing(connect(home.socket)) as connection:
        connection.sendall(first.replace(b"connection: close", b"connection: keep-alive") + second)
        answer = read_answer(connection)
    assert answer.headers["fairlead-exit"] == "2"
    assert answer.body.count(b"\r\nfairlead-exit: 2\r\n") == 1, "the second answer"
