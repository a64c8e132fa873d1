"""What launchers write and are answered, as bytes: requests in the one form that they have, and answers in HTTP.

A request that is written in any other way is not read here, but by uvicorn, which comes to the same answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from fairlead.daemon.events._request import read_request, read_target

if TYPE_CHECKING:
    from fairlead.daemon.events._handler import HookReply
    from fairlead.daemon.events._request import HookRequest

_EVENT = b"POST /v1/events/"
_LINE = re.compile(rb"POST /v1/events/([A-Za-z]+)(?:\?([^ #\r]*))? HTTP/1\.1")
_SAME = re.compile(rb"(?:\r\n[a-z-]+: [^\r\n]*)+")
"""What a launcher says each time that it is called by the same process in the same folder."""
_OWN = re.compile(rb"\r\nfairlead-id: ([^\r\n]+)\r\ncontent-length: ([0-9]{1,9})")
"""What it says but once, behind that."""
_WAIT = re.compile(rb"GET /v1/waits/([A-Za-z0-9_-]{1,64}) HTTP/1\.1\r\n((?:[A-Za-z-]+: *[^\r\n]*\r\n)*)\r\n")
_ACKS = b"fairlead-acks: 1\r\n"
_LONGEST_HEAD = 64 * 1024
_LARGEST = 256 * 1024
"""Bytes of a payload that comes in few pieces."""
_UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-length", b"fairlead-id"})
_MOST_KNOWN = 4096
_MOST_LINES = 256


class NotHookRequest(Exception):
    """A request that is uvicorn's to read."""


class RequestReader:
    """Reads the requests of launchers. Of those that asked before, only the id and the payload are new."""

    def __init__(self) -> None:
        self._lines: dict[bytes, tuple[str, str]] = {}
        self._known: dict[tuple[str, bytes], HookRequest] = {}

    def read(self, data: bytes) -> tuple[HookRequest, bytes] | None:
        """Give what is asked, and the payload; `None` while there is more to come. Raises `NotHookRequest`."""
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > _LONGEST_HEAD or not (data.startswith(_EVENT) or _EVENT.startswith(data)):
                raise NotHookRequest
            return None
        line, own = data.find(b"\r\n"), data.rfind(b"\r\nfairlead-id: ", 0, end)
        match = _OWN.fullmatch(data, own, end) if own > line else None
        if match is None:
            raise NotHookRequest
        event, client = self._lines.get(data[:line]) or self._learn(data[:line])
        ask = self._known.get((client, data[line:own])) or self._meet(client, data[line:own])
        end += 4
        missing = int(match[2]) - (len(data) - end)
        if missing < 0 or len(data) + missing - end > _LARGEST:
            raise NotHookRequest
        if missing:
            return None
        return msgspec.structs.replace(ask, event=event, client=client, id=match[1].decode("latin-1")), data[end:]

    def _learn(self, line: bytes) -> tuple[str, str]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise NotHookRequest
        if len(self._lines) >= _MOST_LINES:
            self._lines.clear()
        target = self._lines[line] = read_target(match[1].decode(), match[2] or b"")
        return target

    def _meet(self, client: str, same: bytes) -> HookRequest:
        told = [(name, value) for name, _, value in (line.partition(b": ") for line in same.split(b"\r\n")[1:])]
        if not _SAME.fullmatch(same) or not _UNUSUAL.isdisjoint(name for name, _ in told):
            raise NotHookRequest
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        ask = self._known[client, same] = read_request("", b"client=%b" % client.encode("latin-1"), told)
        return ask


def parse_wait_request(data: bytes) -> tuple[str, bool] | None:
    """Read the request of a launcher that waits: the token, and whether it can say that it has printed the answer."""
    match = _WAIT.fullmatch(data)
    return None if match is None else (match[1].decode(), _ACKS in match[2])


def encode_reply(reply: HookReply, *, acks: bool = False) -> bytes:
    """Write an answer; `acks`: it is to be said when that is printed."""
    head = b"".join(b"%b: %b\r\n" % header for header in reply.headers())
    more = b"fairlead-ack: 1\r\n" if acks else b""
    return b"%b%b%bconnection: close\r\n\r\n%b%b" % (STATUS_LINE[reply.status], head, more, reply.stdout, reply.stderr)
