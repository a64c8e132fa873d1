"""Converts rows of the relay into sessions and events: verified, with host names, and with times by the local clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.daemon.team.history._signing import CLOCK_TOLERANCE
from fairlead.durations import HOUR
from fairlead.sessions import EventCopy, HistoryMatch, HistorySession, SessionCopy
from fairlead.team import TeamEvent, TeamSession, verify_event, verify_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.sessions import HistoryQuery, TimelineEntry

_MAX_TEXT = 400

RowT = TypeVar("RowT", TeamEvent, TeamSession)
RowKey = tuple[float, str, str]
"""The time of a row, its id, and the id of its host."""


class ReadingTeam(Protocol):
    """The attributes of the team that reading its history needs."""

    log: ConnectionLog
    directory: TeamDirectory
    roster: Roster | None


class RemoteResult(msgspec.Struct, frozen=True):
    """A session of another host, or an event that matches a search, with its session."""

    key: RowKey
    """The key after which the next page starts."""
    session: HistorySession
    match: HistoryMatch | None = None
    """The event; `None` if the result is only a session."""


class HistoryRows:
    """Converts rows. Rows that no member has signed are left out."""

    def __init__(self, team: ReadingTeam) -> None:
        self._team = team

    def genuine_sessions(self, rows: Iterable[TeamSession]) -> list[tuple[TeamSession, SessionCopy]]:
        """Return the sessions that a member has signed and whose bodies can be decoded, with the decoded bodies."""
        return [
            (row, copy)
            for row in rows
            if self._is_signed(row, verify_session) and (copy := _decode(row.body, SessionCopy)) is not None
        ]

    def genuine_events(self, rows: Iterable[TeamEvent]) -> list[tuple[TeamEvent, EventCopy]]:
        """Return the events that a member has signed and whose bodies can be decoded, with the decoded bodies."""
        return [
            (row, copy)
            for row in rows
            if self._is_signed(row, verify_event) and (copy := _decode(row.body, EventCopy)) is not None
        ]

    def _is_signed(self, row: RowT, verify: Callable[[RowT, bytes, str], bool]) -> bool:
        roster = self._team.roster
        if roster is None:
            return False
        key = roster.trust.key(row.host)
        return key is not None and verify(row, key, roster.membership.team)

    def session(self, row: TeamSession, copy: SessionCopy, query: HistoryQuery | None = None) -> HistorySession:
        """Return a session. It is running if the newest snapshot of its host lists it as running.

        With a `query`, its cost is that of the query's period; else the total.
        """
        remote = self._team.directory.members.get(row.host)
        is_running = remote is not None and any(
            session.id == row.session and session.ended is None for session in remote.sessions
        )
        known = copy.session
        return replace(
            known,
            id=row.session,
            host=self._host_name(row.host),
            folder=row.folder,
            started=self.to_local(row.started),
            last=self.to_local(row.last),
            ended=None if is_running else self.to_local(known.ended or row.last),
            cost_usd=known.total_usd if query is None else _cost(copy, query),
        )

    def session_result(self, row: TeamSession, copy: SessionCopy, query: HistoryQuery) -> RemoteResult:
        """Return a session as a result with its key."""
        session = self.session(row, copy, query)
        return RemoteResult((session.last, row.session, row.host), session)

    def match_result(
        self, row: TeamEvent, copy: EventCopy, sessions: dict[tuple[str, str], HistorySession]
    ) -> RemoteResult:
        """Return an event that matches a search, with its session.

        `sessions` has the known sessions by host id and session id. An unknown session has no statistics.
        """
        at, host = self.to_local(row.at), self._host_name(row.host)
        unknown = HistorySession(id=row.session, host=host, last=at, ended=at)
        session = sessions.get((row.host, row.session), unknown)
        match = HistoryMatch(row.session, session.folder, at, copy.kind, row.text[:_MAX_TEXT], host)
        return RemoteResult((at, row.id, row.host), session, match)

    def entry(self, row: TeamEvent, copy: EventCopy) -> TimelineEntry:
        """Return an event as an entry of a timeline."""
        return replace(
            copy.entry,
            at=self.to_local(row.at),
            session=row.session,
            event=row.event,
            verdict=row.verdict,
            text=copy.entry.text or row.text[:_MAX_TEXT],
        )

    def to_local(self, at: float) -> float:
        """Convert a time by the relay's clock to this host's clock."""
        return at - self._shift

    def to_relay(self, at: float) -> float:
        """Convert a time by this host's clock to the relay's clock."""
        return at + self._shift

    @property
    def _shift(self) -> float:
        offset = self._team.log.offset
        return offset if abs(offset) > CLOCK_TOLERANCE else 0.0

    def _host_name(self, host: str) -> str:
        return self._team.roster.name(host) if self._team.roster is not None else host[:8]


def _cost(copy: SessionCopy, query: HistoryQuery) -> float | None:
    """Return the cost of a session within the period of a query, in whole hours; `None` if it is not known."""
    if copy.session.total_usd is None:
        return None
    first = int(query.since // HOUR)
    last = query.until // HOUR if query.until else float("inf")
    return sum(usd for hour, usd in copy.hours.items() if first <= hour <= last)


ValueT = TypeVar("ValueT", EventCopy, SessionCopy)


def _decode(body: bytes, kind: type[ValueT]) -> ValueT | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # from a newer version
        return None
