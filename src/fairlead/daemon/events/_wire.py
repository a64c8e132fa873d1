"""The bytes between launcher and daemon: requests in the one form that launchers write, and replies in HTTP.

A request in any other form is left to uvicorn, which comes to the same reply.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from fairlead.daemon.events._messages import SILENCE, read_request, read_target

if TYPE_CHECKING:
    from fairlead.daemon.events._messages import HookReply, HookRequest

_EVENT = b"POST /v1/events/"
_REPORT = b"POST /v1/plans/"
_REQUEST_LINE = re.compile(rb"POST /v1/(?:events|(plans))/([A-Za-z]+)(?:\?([^ #\r]*))? HTTP/1\.1")
_SHARED_HEADERS = re.compile(rb"(?:\r\n[a-z-]+: [^\r\n]*)+")
"""Headers that are the same each time the same process calls from the same folder."""
_OWN_HEADERS = re.compile(rb"\r\nfairlead-id: ([^\r\n]+)\r\ncontent-length: ([0-9]{1,9})")
"""Headers of one call, which stand behind them."""
_WAIT = re.compile(rb"GET /v1/waits/([A-Za-z0-9_-]{1,64}) HTTP/1\.1\r\n((?:[A-Za-z-]+: *[^\r\n]*\r\n)*)\r\n")
_ACKS = (b"fairlead-acks: 2\r\n", b"fairlead-acks: 1\r\n")
_MAX_HEAD = 64 * 1024
_MAX_PAYLOAD = 256 * 1024
"""Bytes of a payload that arrives in few pieces."""
_UNEXPECTED = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-length", b"fairlead-id"})
_MAX_CALLERS = 4096
_MAX_LINES = 256


class NotHookRequest(Exception):
    """A request that uvicorn must read."""


class RequestReader:
    """Parses the requests of launchers. Of a caller that is known, only the id and the payload are new."""

    def __init__(self) -> None:
        self._lines: dict[bytes, tuple[str, str, bool]] = {}
        self._callers: dict[tuple[str, bytes], HookRequest] = {}

    def read(self, data: bytes) -> tuple[HookRequest, bytes] | None:
        """Return the request and its payload; `None` while there is more to come. Raises `NotHookRequest`."""
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > _MAX_HEAD or not any(
                data.startswith(start) or start.startswith(data) for start in (_EVENT, _REPORT)
            ):
                raise NotHookRequest
            return None
        line, own = data.find(b"\r\n"), data.rfind(b"\r\nfairlead-id: ", 0, end)
        match = _OWN_HEADERS.fullmatch(data, own, end) if own > line else None
        if match is None:
            raise NotHookRequest
        event, client, is_report = self._lines.get(data[:line]) or self._parse_line(data[:line])
        request = self._callers.get((client, data[line:own])) or self._parse_caller(client, data[line:own])
        end += 4
        missing = int(match[2]) - (len(data) - end)
        if missing < 0 or len(data) + missing - end > _MAX_PAYLOAD:
            raise NotHookRequest
        if missing:
            return None
        event_id = match[1].decode("latin-1")
        request = msgspec.structs.replace(request, event=event, client=client, id=event_id, is_report=is_report)
        return request, data[end:]

    def _parse_line(self, line: bytes) -> tuple[str, str, bool]:
        match = _REQUEST_LINE.fullmatch(line)
        if match is None:
            raise NotHookRequest
        if len(self._lines) >= _MAX_LINES:
            self._lines.clear()
        target = self._lines[line] = *read_target(match[2].decode(), match[3] or b""), match[1] is not None
        return target

    def _parse_caller(self, client: str, shared: bytes) -> HookRequest:
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in shared.split(b"\r\n")[1:])]
        if not _SHARED_HEADERS.fullmatch(shared) or not _UNEXPECTED.isdisjoint(name for name, _ in headers):
            raise NotHookRequest
        if len(self._callers) >= _MAX_CALLERS:
            self._callers.clear()
        query = b"client=%b" % client.encode("latin-1")
        request = self._callers[client, shared] = read_request("", query, headers)
        return request


def parse_wait_request(data: bytes) -> tuple[str, bool] | None:
    """Parse the request of a launcher that waits: the token, and whether it acknowledges the reply."""
    match = _WAIT.fullmatch(data)
    return None if match is None else (match[1].decode(), any(line in match[2] for line in _ACKS))


def encode_reply(reply: HookReply, *, acks: bool = False) -> bytes:
    """Return a reply in HTTP. With `acks`, the launcher is asked to acknowledge it."""
    if reply is SILENCE:
        return _SILENT_REPLY
    return _encode(reply, acks=acks)


def _encode(reply: HookReply, *, acks: bool) -> bytes:
    head = b"".join(b"%b: %b\r\n" % header for header in reply.headers())
    more = b"fairlead-ack: 1\r\n" if acks and not reply.receipt else b""
    return b"%b%b%bconnection: close\r\n\r\n%b%b" % (STATUS_LINE[reply.status], head, more, reply.stdout, reply.stderr)


_SILENT_REPLY = _encode(SILENCE, acks=False)
