"""Delivers the daemon's sessions to the view: the list once, then the stream of changes.

A broken stream is continued after the last revision that arrived. A daemon that no longer knows the revision starts the
stream with a `reset`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import msgspec

from fairlead.ipc import DaemonNotResponding, DaemonUnavailable, RequestRefused, open_stream, request
from fairlead.sessions import AttentionNeeded, Costs, HostSessions, Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.ipc import ServerSentEvent

RETRY_DELAY = 1.0
"""Seconds between two attempts to connect."""

_SILENCE_TIMEOUT = 40.0
"""Seconds without data after which the connection counts as broken. The daemon sends a heartbeat every 15 seconds."""

_TIMELINE_LIMIT = 200


class SessionsReset(msgspec.Struct, frozen=True):
    """The complete list of sessions, which replaces all earlier ones."""

    sessions: list[Session]
    costs: Costs | None = None
    """Today's costs; `None` from a daemon of an earlier version."""
    hosts: tuple[HostSessions, ...] = ()
    """The sessions of other hosts. Only `fetch_sessions` sets them: the live view gets them from `TeamSource`."""


class SessionChanged(msgspec.Struct, frozen=True):
    """A session is new or has changed."""

    session: Session


class SessionRemoved(msgspec.Struct, frozen=True):
    """The daemon has removed a session from its list."""

    id: str


class CostsChanged(msgspec.Struct, frozen=True):
    """Today's costs have changed."""

    costs: Costs


class ConnectionStatus(msgspec.Struct, frozen=True):
    """Whether the view is connected, and a text to show, such as the reason why it is not connected."""

    is_live: bool
    text: str


Update: TypeAlias = SessionsReset | SessionChanged | SessionRemoved | CostsChanged | ConnectionStatus


class TimelineEvent(msgspec.Struct, frozen=True):
    """One event of a session's timeline.

    Unlike in `sessions.TimelineEntry`, every field may be missing or null: the daemon may be of another version.
    """

    at: float = 0.0
    event: str = ""
    tool: str | None = None
    agent: str | None = None
    verdict: str | None = None
    reason: str | None = None
    exit: int | None = None
    seconds: float | None = None


class _SessionList(msgspec.Struct, frozen=True):
    sessions: list[msgspec.Raw]
    revision: int = 0
    costs: Costs | None = None
    hosts: tuple[HostSessions, ...] = ()


class _Timeline(msgspec.Struct, frozen=True):
    events: list[TimelineEvent]


_session_decoder = msgspec.json.Decoder(Session)
_list_decoder = msgspec.json.Decoder(_SessionList)
_costs_decoder = msgspec.json.Decoder(Costs)
_removed_decoder = msgspec.json.Decoder(SessionRemoved)


class SessionSource:
    """Follows the sessions of the daemon at this socket."""

    def __init__(self, socket_path: str) -> None:
        self.socket_path = socket_path
        self._revision: int | None = None

    async def run(self, deliver: Callable[[Update], None]) -> None:
        """Deliver the sessions, all changes and the status of the connection until cancelled. Reconnects if needed."""
        deliver(ConnectionStatus(is_live=False, text="connecting"))
        while True:
            try:
                if self._revision is None:
                    await self._fetch(deliver)
                await self._follow(deliver)
                text = "the daemon closed the connection; waiting for it to come back"
            except RequestRefused as error:
                text = f"{_refusal(error)}; trying again"
            except DaemonNotResponding as error:
                text = f"{error}; trying again"
            except DaemonUnavailable:  # without the path of the socket, so that the command fits a narrow terminal
                text = "no daemon is running; start one: fairlead daemon start; waiting for it"
            except msgspec.DecodeError as error:
                self._revision = None
                text = f"the daemon's answer cannot be read ({error}); trying again"
            deliver(ConnectionStatus(is_live=False, text=text))
            await asyncio.sleep(RETRY_DELAY)

    async def timeline(self, session_id: str) -> list[TimelineEvent]:
        """Return the latest events of a session, the newest last. Raises like `open_stream`."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/events?limit={_TIMELINE_LIMIT}"
        async with open_stream(self.socket_path, path) as response:
            body = await response.read()
        return msgspec.json.decode(body, type=_Timeline).events

    async def question(self, session_id: str) -> str:
        """Return the full question that a session asks the user; "" if there is none. Raises like `open_stream`."""
        async with open_stream(self.socket_path, f"/v1/sessions/{quote(session_id, safe='')}") as response:
            state = _session_decoder.decode(await response.read()).state
        return state.about if isinstance(state, AttentionNeeded) else ""

    async def _fetch(self, deliver: Callable[[Update], None]) -> None:
        async with open_stream(self.socket_path, "/v1/sessions") as response:
            body = await response.read()
        self._reset(body, deliver)

    async def _follow(self, deliver: Callable[[Update], None]) -> None:
        path = f"/v1/sessions/stream?after={self._revision}"
        async with open_stream(self.socket_path, path) as response:
            deliver(ConnectionStatus(is_live=True, text="live"))
            async for event in response.events(_SILENCE_TIMEOUT):
                with suppress(msgspec.DecodeError):  # an unreadable event is skipped, and not requested again
                    self._handle(event, deliver)

    def _handle(self, event: ServerSentEvent, deliver: Callable[[Update], None]) -> None:
        """Deliver one server-sent event, and remember its revision. Unknown kinds are skipped."""
        if event.id.isdigit():
            self._revision = int(event.id)
        if event.kind == "reset":
            self._reset(event.data, deliver)
        elif event.kind == "session":
            for session in _readable([msgspec.Raw(event.data)]):
                deliver(SessionChanged(session))
        elif event.kind == "gone":
            deliver(_removed_decoder.decode(event.data))
        elif event.kind == "costs":
            deliver(CostsChanged(_costs_decoder.decode(event.data)))

    def _reset(self, document: bytes, deliver: Callable[[Update], None]) -> None:
        listed = _list_decoder.decode(document)
        deliver(SessionsReset(_readable(listed.sessions), listed.costs))
        self._revision = listed.revision


def fetch_sessions(socket_path: str) -> SessionsReset:
    """Return the current sessions and costs in a blocking call. Raises `DaemonUnavailable` without a valid answer."""
    document: Any = request("GET", "/v1/sessions", at=socket_path)
    try:
        listed = _list_decoder.decode(msgspec.json.encode(document))
        return SessionsReset(_readable(listed.sessions), listed.costs, listed.hosts)
    except msgspec.DecodeError as error:
        raise DaemonNotResponding(f"the daemon's answer cannot be read: {error!r}") from None


def _refusal(error: RequestRefused) -> str:
    if error.is_not_found:
        return "this daemon is too old to list sessions; restart it: fairlead daemon stop; fairlead daemon start"
    return f"the daemon answers {error.status}; see: fairlead doctor"


def _readable(rows: list[msgspec.Raw]) -> list[Session]:
    """Decode sessions, and skip unreadable ones: a session of another version must not hide the others."""
    sessions = []
    for row in rows:
        try:
            sessions.append(_session_decoder.decode(row))
        except msgspec.DecodeError:
            continue
    return sessions
