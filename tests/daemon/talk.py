"""HTTP with the daemon by hand: as a launcher speaks it, and as nobody should."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from daemon.daemon_home import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


def connect(at: Path | int) -> socket.socket:
    """Connect to a Unix socket, or to a port of this machine."""
    if isinstance(at, int):
        return socket.create_connection(("127.0.0.1", at), PATIENCE)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE)
    try:
        connection.connect(str(at))
    except OSError:
        connection.close()
        raise
    return connection


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """Write a request, the size last as launchers do; `_` in a header's name is a dash."""
    told = {"host": "localhost", "connection": "close"}
    told |= {name.replace("_", "-"): value for name, value in {**headers, "content_length": str(len(body))}.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def read_answer(connection: socket.socket) -> Answer:
    """Read until the other side has closed. Raises `ConnectionError` if it did so without a word."""
    data = b""
    while block := connection.recv(1 << 16):
        data += block
    if not data:
        raise ConnectionError("closed without an answer")
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


def talk(at: Path | int, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    """Ask once."""
    with connect(at) as connection:
        connection.sendall(request(method, path, body, **headers))
        return read_answer(connection)
