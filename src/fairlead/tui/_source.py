"""Where the view gets its sessions: the daemon's list, and then its stream of changes, for as long as the view lives.

The list is asked for once. When the stream breaks, it goes on after the last revision that came; a daemon that cannot
tell what happened since begins it with a `reset`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import msgspec

from fairlead.ipc import DaemonNotResponding, DaemonUnavailable, asked, request
from fairlead.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable

AGAIN = 1.0
"""Seconds between two attempts to find a daemon."""

_SILENCE = 40.0
"""Seconds without even a heartbeat (one comes every 15) after which the daemon is taken for gone."""

_TIMELINE = 200


class Reset(msgspec.Struct, frozen=True):
    """These are all sessions."""

    sessions: list[Session]


class Changed(msgspec.Struct, frozen=True):
    """A session is new, or has news."""

    session: Session


class Gone(msgspec.Struct, frozen=True):
    """A session was forgotten."""

    id: str


class Link(msgspec.Struct, frozen=True):
    """How the connection is, in words."""

    is_live: bool
    words: str


News: TypeAlias = Reset | Changed | Gone | Link


class Happening(msgspec.Struct, frozen=True):
    """One event of a session's timeline. What is newer than we are may leave anything out."""

    at: float = 0.0
    event: str = ""
    tool: str | None = None
    agent: str | None = None
    verdict: str | None = None
    reason: str | None = None
    exit: int | None = None
    seconds: float | None = None


class _All(msgspec.Struct, frozen=True):
    sessions: list[msgspec.Raw]
    revision: int = 0


class _Id(msgspec.Struct, frozen=True):
    id: str


class _Events(msgspec.Struct, frozen=True):
    events: list[Happening]


_session = msgspec.json.Decoder(Session)
_all = msgspec.json.Decoder(_All)
_id = msgspec.json.Decoder(_Id)


class Source:
    """The daemon at a socket, as the view sees it."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._revision: int | None = None

    async def run(self, tell: Callable[[News], None]) -> None:
        """Tell what there is and what happens, until cancelled."""
        tell(Link(is_live=False, words="connecting"))
        while True:
            try:
                if self._revision is None:
                    await self._fetch(tell)
                await self._follow(tell)
                words = "the daemon closed the connection; looking for it"
            except DaemonNotResponding as error:
                words = f"{error}; trying again"
            except DaemonUnavailable as error:
                words = f"{error}; looking for it"
            except msgspec.DecodeError as error:
                self._revision = None
                words = f"the daemon's answer cannot be read ({error}); trying again"
            tell(Link(is_live=False, words=words))
            await asyncio.sleep(AGAIN)

    async def timeline(self, session_id: str) -> list[Happening]:
        """Give the last events of a session, the newest last."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/events?limit={_TIMELINE}"
        async with asked(self.place, path) as answer:
            body = await answer.body()
        return msgspec.json.decode(body, type=_Events).events

    async def _fetch(self, tell: Callable[[News], None]) -> None:
        async with asked(self.place, "/v1/sessions") as answer:
            body = await answer.body()
        found = _all.decode(body)
        tell(Reset(_readable(found.sessions)))
        self._revision = found.revision

    async def _follow(self, tell: Callable[[News], None]) -> None:
        path = f"/v1/sessions/stream?after={self._revision}"
        async with asked(self.place, path) as answer:
            tell(Link(is_live=True, words="live"))
            rest = bytearray()
            async for piece in answer.pieces(_SILENCE):
                start = max(0, len(rest) - 1)  # a `reset` is long, and comes in many pieces: none is looked at twice
                rest += piece.replace(b"\r", b"")
                if rest.find(b"\n\n", start) < 0:
                    continue
                *blocks, rest = rest.split(b"\n\n")
                for block in blocks:
                    with suppress(msgspec.DecodeError):  # what cannot be read is left out, and not asked for again
                        self._take(bytes(block), tell)

    def _take(self, block: bytes, tell: Callable[[News], None]) -> None:
        """Read one server-sent event. Kinds that we do not know are left out."""
        fields = dict(_field(line) for line in block.split(b"\n") if line and not line.startswith(b":"))
        kind, data = fields.get(b"event", b""), fields.get(b"data", b"")
        if fields.get(b"id", b"").isdigit():
            self._revision = int(fields[b"id"])
        if kind == b"reset":
            found = _all.decode(data)
            tell(Reset(_readable(found.sessions)))
            self._revision = found.revision
        elif kind == b"session":
            for session in _readable([msgspec.Raw(data)]):
                tell(Changed(session))
        elif kind == b"gone":
            tell(Gone(_id.decode(data).id))


def fetch_once(place: str) -> list[Session]:
    """Give the sessions as they are now, without an event loop. Raises `DaemonUnavailable`."""
    told: Any = request("GET", "/v1/sessions", at=place)
    try:
        return _readable([msgspec.Raw(msgspec.json.encode(each)) for each in told["sessions"]])
    except (KeyError, TypeError) as error:
        raise DaemonNotResponding(f"the daemon's answer cannot be read: {error!r}") from None


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")


def _readable(found: list[msgspec.Raw]) -> list[Session]:
    """Read what can be read: a session of another version must not hide all others."""
    sessions = []
    for raw in found:
        try:
            sessions.append(_session.decode(raw))
        except msgspec.DecodeError:
            continue
    return sessions
