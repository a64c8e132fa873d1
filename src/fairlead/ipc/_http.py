"""The daemon's HTTP/1.1 as bytes: requests, responses and event streams. Does no I/O, and is shared by both clients.

`http.client` is not used: its import would delay every command that asks the daemon by 20 ms.
"""

from __future__ import annotations

from typing import NamedTuple

OK = range(200, 300)
"""The status codes that count as a success."""

_MAX_HEADERS = 64 * 1024
_PROTOCOL = b"HTTP/1."


class Response(NamedTuple):
    """A complete response of the daemon."""

    status: int
    headers: dict[str, str]
    """Name → value. The names are in lower case."""
    body: bytes


class ServerSentEvent(NamedTuple):
    """One event of a stream. The kind and the data of a heartbeat are empty."""

    kind: str
    data: bytes
    id: str


def encode_request(method: str, path: str, body: bytes = b"") -> bytes:
    """Return the bytes of a request. The daemon closes the connection after its response."""
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: fairlead\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class ResponseParser:
    """Parses one response from its bytes as they arrive."""

    def __init__(self) -> None:
        self.status = 0
        """0 until the headers are complete."""
        self.headers: dict[str, str] = {}
        self.is_complete = False
        self.is_endless = False
        """Whether the body is a stream of events, which may end with the connection at any point."""
        self._buffer = bytearray()
        self._is_chunked = False
        self._remaining: int | None = None
        """Bytes of the body, or of the current chunk, still to come; `None` if the end of the connection ends it."""

    def feed(self, data: bytes) -> bytes:
        """Parse the next bytes, and return the bytes of the body that are complete.

        Empty `data` means that the connection has ended.

        Raises `ValueError` if the response is not HTTP, or ends too early.
        """
        if not data:
            self._end()
            return b""
        self._buffer += data
        if not self.status and not self._parse_headers():
            return b""
        return self._take_chunks() if self._is_chunked else self._take_body()

    def _parse_headers(self) -> bool:
        prefix = bytes(self._buffer[: len(_PROTOCOL)])
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not _PROTOCOL.startswith(prefix) or len(head) > _MAX_HEADERS:
            raise ValueError(f"not an HTTP response: {bytes(self._buffer[:60])!r}")
        if not separator:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        status = first.partition(" ")[2][:3]
        if not status.isdecimal():
            raise ValueError(f"not an HTTP response: {first[:60]!r}")
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._is_chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        length = self.headers.get("content-length")
        self._remaining = 0 if self._is_chunked else None if length is None else int(length)
        self.status, self._buffer = int(status), rest
        return True

    def _take_body(self) -> bytes:
        body = bytes(self._buffer[: self._remaining])
        self._buffer.clear()
        if self._remaining is not None:
            self._remaining -= len(body)
            self.is_complete = self._remaining == 0
        return body

    def _take_chunks(self) -> bytes:
        body = bytearray()
        while not self.is_complete:
            if not self._remaining:
                end = self._buffer.find(b"\r\n")
                if end < 0:
                    break
                self._remaining = int(self._buffer[:end].partition(b";")[0], 16)
                self.is_complete = self._remaining == 0
                del self._buffer[: end + 2]
            elif len(self._buffer) < self._remaining + 2:
                break
            else:
                body += self._buffer[: self._remaining]
                del self._buffer[: self._remaining + 2]  # with the line break after the chunk
                self._remaining = 0
        return bytes(body)

    def _end(self) -> None:
        if self.status and (self.is_endless or self._remaining is None):
            self.is_complete = True
        elif not self.is_complete:
            when = "in the middle of" if self.status or self._buffer else "without"
            raise ValueError(f"it closed the connection {when} a response")


class EventStreamParser:
    """Parses server-sent events from the pieces of a response's body."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Parse the next bytes, and return the events that are complete with them."""
        start = max(0, len(self._buffer) - 1)  # search only the new piece: a long event arrives in many
        self._buffer += data.replace(b"\r", b"")
        if self._buffer.find(b"\n\n", start) < 0:
            return []
        *blocks, self._buffer = self._buffer.split(b"\n\n")
        return [_parse_event(bytes(block)) for block in blocks]


def _parse_event(block: bytes) -> ServerSentEvent:
    fields = {b"event": b"", b"data": b"", b"id": b""}
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        fields[name] = value.removeprefix(b" ")
    return ServerSentEvent(fields[b"event"].decode(errors="replace"), fields[b"data"], fields[b"id"].decode("latin-1"))
