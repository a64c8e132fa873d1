"""One question to the daemon over its socket, and the answer. In place of `http.client`, which takes 20 ms to load."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import NamedTuple


class Response(NamedTuple):
    """What the daemon answers."""

    status: int
    headers: dict[str, str]
    """By their names in small letters."""
    body: bytes


def exchange(place: str, method: str, path: str, body: bytes = b"", *, timeout: float) -> Response:
    """Ask the daemon at a socket. Raises `OSError`, and `ValueError` if what comes back is no whole answer."""
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: fairlead\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    got = bytearray()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
        daemon.settimeout(timeout)
        daemon.connect(place)
        with suppress(BrokenPipeError):  # it may have heard enough, and have answered
            daemon.sendall(head.encode() + body)
        with suppress(ConnectionResetError):  # likewise
            while more := daemon.recv(1 << 16):
                got += more
    return _read(bytes(got))


def _read(text: bytes) -> Response:
    if not text:
        raise ValueError("it has closed the connection without an answer")
    head, _, body = text.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    protocol, _, status = first.partition(" ")
    if not (protocol.startswith("HTTP/1.") and status[:3].isdigit()):
        raise ValueError(f"what it says is no HTTP: {first[:60]!r}")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("content-length") != str(len(body)):
        raise ValueError(f"it has broken off after {len(body)} bytes of the answer")
    return Response(int(status[:3]), headers, body)
