"""Commands that the daemon runs for a launcher: what it accepts, declines and asks for."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import scratch_home

from fairlead import __version__
from fairlead.daemon.commands._service import Terminals, parse_command_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome


@pytest.fixture(scope="module")
def home() -> Iterator[DaemonHome]:
    with scratch_home() as made, made.daemon():
        yield made


def encoded(home: DaemonHome, *words: str, stdin: Any = None, **more: Any) -> bytes:
    """Return the request that a launcher would write."""
    body = b"".join(os.fsencode(word) + b"\0" for word in words) + (stdin or b"")
    fields = {
        "fairlead-version": __version__,
        "fairlead-cwd": str(home.project),
        "fairlead-env": ";".join(f"{name}={value}" for name, value in home.environment().items() if name != "PATH"),
        "fairlead-terminals": "000,0",
        "fairlead-words": str(len(words)),
        **({} if stdin is None else {"fairlead-stdin": "1"}),
        **more,
        "fairlead-id": "17b3c0ffee000000-1",
        "content-length": str(len(body)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /v1/commands/{words[0]} HTTP/1.1\r\nhost: fairlead\r\n{head}\r\n".encode() + body


def ask(home: DaemonHome, *words: str, stdin: Any = None, **more: Any) -> tuple[int, dict[str, str], bytes]:
    """Have a command run; return the status, the headers and the body."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(home.socket))
        connection.sendall(encoded(home, *words, stdin=stdin, **more))
        got = b""
        while part := connection.recv(1 << 16):
            got += part
    head, _, body = got.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize("words", [("version",), ("inbox",), ("inbox", "--limt"), ("sessions", "--help"), ("agnts",)])
def test_a_command_prints_the_same_as_in_a_process_of_its_own(home: DaemonHome, words: tuple[str, ...]) -> None:
    own = home.run([sys.executable, "-m", "fairlead", *words], b"")
    status, headers, body = ask(home, *words)
    size = int(headers["fairlead-stdout"])
    assert (status, int(headers["fairlead-exit"])) == (200, own.exit_code)
    assert (body[:size].decode(), body[size:].decode()) == (own.stdout, own.stderr)


def test_what_needs_a_process_or_another_daemon_is_declined(home: DaemonHome) -> None:
    assert ask(home, "doctor")[0] == 404
    assert ask(home, "events", "--follow")[0] == 404
    assert ask(home, "version", **{"fairlead-version": "0.0.1"})[0] == 426
    assert ask(home, "version", **{"fairlead-env": "HOME=/nowhere"})[0] == 421
    latin = home.environment(LANG="en_US.ISO-8859-1")
    variables = ";".join(f"{name}={value}" for name, value in latin.items() if name != "PATH")
    assert ask(home, "version", **{"fairlead-env": variables})[0] == 404


def test_stdin_is_asked_for_only_by_a_command_that_reads_it(home: DaemonHome) -> None:
    assert ask(home, "send", "User", "-")[0] == 202
    status, _, body = ask(home, "send", "User", "-", stdin=b"From a pipe.")
    assert (status, body) == (200, b"sent as #1 to User (the person)\n")
    assert ask(home, "send", "User", "-", stdin=b"From a pipe.")[2] == b"was sent already, as #1\n"


@pytest.mark.parametrize(
    "wrong", ["fairlead-words: 3", "fairlead-words: x", "content-length: 900000000", "content-length: -1"]
)
def test_a_request_that_no_launcher_writes_gets_no_answer(home: DaemonHome, wrong: str) -> None:
    name = wrong.partition(":")[0]
    lines = encoded(home, "version").split(b"\r\n")
    data = b"\r\n".join(wrong.encode() if line.startswith(name.encode()) else line for line in lines)
    with pytest.raises(ValueError, match=r"launcher|words|invalid"):
        parse_command_request(data)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(home.socket))
        connection.sendall(data)
        assert connection.recv(100) == b""


def test_a_request_is_parsed_as_it_arrives(home: DaemonHome) -> None:
    data = encoded(home, "send", "bob", "a\udcff", stdin=b"x\0y", **{"fairlead-terminals": "101,120"})
    for end in (30, data.index(b"\r\n\r\n") + 2, len(data) - 1):
        assert parse_command_request(data[:end]) is None
    request = parse_command_request(data)
    assert request is not None
    assert (request.words, request.stdin) == (("send", "bob", "a\udcff"), b"x\0y")
    assert request.terminals == Terminals(stdin=True, stdout=False, stderr=True, columns=120)
    assert (request.hook.cwd, request.hook.id) == (str(home.project), "17b3c0ffee000000-1")
