"""The bytes between launcher and daemon: requests in the one form that launchers write, and replies in HTTP.

A request in any other form is left to uvicorn, which gives the same reply.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from fairlead.daemon.events._messages import EMPTY_REPLY, read_request, read_target

if TYPE_CHECKING:
    from fairlead.daemon.events._messages import HookReply, HookRequest

_EVENT = b"POST /v1/events/"
_REPORT = b"POST /v1/plans/"
_REQUEST_LINE = re.compile(rb"POST /v1/(?:events|(plans))/([A-Za-z]+)(?:\?([^ #\r]*))? HTTP/1\.1")
_SHARED_HEADERS = re.compile(rb"(?:\r\n[a-z-]+: [^\r\n]*)+")
"""Headers that are the same each time the same process calls from the same folder."""
_ID = b"\r\nfairlead-id: "
_LENGTH = b"\r\ncontent-length: "
"""Headers that differ in each call, and follow the shared ones in this order."""
_MAX_LENGTH_DIGITS = 9
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


class _Target(NamedTuple):
    """The target of a request, from its first line."""

    event: str
    client: str
    is_report: bool
    callers: dict[bytes, HookRequest]
    """Requests to this client without their event and id, by the headers that are the same for all of them."""


class RequestReader:
    """Parses the requests of launchers. For a known caller, only the event, the id and the payload are parsed."""

    def __init__(self) -> None:
        self._targets: dict[bytes, _Target] = {}
        self._callers: dict[str, dict[bytes, HookRequest]] = {}
        """Client → requests by their shared headers, as in `_Target.callers`."""

    def read(self, data: bytes) -> tuple[HookRequest, bytes] | None:
        """Return the request and its payload; `None` while it is not complete. Raises `NotHookRequest`."""
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > _MAX_HEAD or not any(
                data.startswith(start) or start.startswith(data) for start in (_EVENT, _REPORT)
            ):
                raise NotHookRequest
            return None
        own, line = data.rfind(_ID, 0, end), data.find(b"\r\n")
        event_id, _, length = data[own + len(_ID) : end].partition(_LENGTH)
        if own <= line or not event_id or b"\n" in event_id or b"\r" in event_id or not _is_length(length):
            raise NotHookRequest
        target = self._targets.get(data[:line]) or self._parse_line(data[:line])
        headers = data[line:own]
        request = target.callers.get(headers) or self._parse_headers(target, headers)
        end += 4
        missing = int(length) - (len(data) - end)
        if missing < 0 or len(data) + missing - end > _MAX_PAYLOAD:
            raise NotHookRequest
        if missing:
            return None
        name = event_id.decode("latin-1")
        return msgspec.structs.replace(request, id=name, event=target.event, is_report=target.is_report), data[end:]

    def _parse_headers(self, target: _Target, text: bytes) -> HookRequest:
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in text.split(b"\r\n")[1:])]
        if not _SHARED_HEADERS.fullmatch(text) or not _UNEXPECTED.isdisjoint(name for name, _ in headers):
            raise NotHookRequest
        if len(target.callers) >= _MAX_CALLERS:
            target.callers.clear()
        request = target.callers[text] = read_request("", target.client, headers)
        return request

    def _parse_line(self, line: bytes) -> _Target:
        match = _REQUEST_LINE.fullmatch(line)
        if match is None:
            raise NotHookRequest
        if len(self._targets) >= _MAX_LINES:
            self._targets.clear()
            self._callers.clear()
        event, client = read_target(match[2].decode(), match[3] or b"")
        target = _Target(event, client, match[1] is not None, self._callers.setdefault(client, {}))
        self._targets[line] = target
        return target


def _is_length(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _MAX_LENGTH_DIGITS


def parse_wait_request(data: bytes) -> tuple[str, bool] | None:
    """Parse the request of a launcher that waits: the token, and whether it acknowledges the reply."""
    match = _WAIT.fullmatch(data)
    return None if match is None else (match[1].decode(), any(line in match[2] for line in _ACKS))


def encode_reply(reply: HookReply, *, acks: bool = False) -> bytes:
    """Return a reply in HTTP. With `acks`, the launcher is asked to acknowledge it."""
    if reply is EMPTY_REPLY:
        return _ENCODED_EMPTY_REPLY
    return _encode(reply, acks=acks)


def _encode(reply: HookReply, *, acks: bool) -> bytes:
    head = b"".join(b"%b: %b\r\n" % header for header in reply.headers())
    more = b"fairlead-ack: 1\r\n" if acks and not reply.receipt else b""
    return b"%b%b%bconnection: close\r\n\r\n%b%b" % (STATUS_LINE[reply.status], head, more, reply.stdout, reply.stderr)


_ENCODED_EMPTY_REPLY = _encode(EMPTY_REPLY, acks=False)
