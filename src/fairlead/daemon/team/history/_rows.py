"""From rows of the relay to sessions and events as this host shows them: verified, with names, by its own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.daemon.team.history._signing import CLOCK_TOLERANCE
from fairlead.sessions import EventCopy, HistoryMatch, HistorySession, SessionCopy, SubagentHistory
from fairlead.team import TeamEvent, TeamSession, verify_event, verify_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.sessions import HistoryQuery, TimelineEntry

_HOUR = 3600
_MAX_TEXT = 400

RowT = TypeVar("RowT", TeamEvent, TeamSession)
RowKey = tuple[float, str, str]
"""The time of a row, its id, and its host."""


class ReadingTeam(Protocol):
    """What is needed of the team to read its history."""

    log: ConnectionLog
    directory: TeamDirectory
    roster: Roster | None


class Found(msgspec.Struct, frozen=True):
    """A session of another host, or an event of it that was searched for."""

    key: RowKey
    """Where the page after it begins."""
    session: HistorySession
    match: HistoryMatch | None = None


class HistoryRows:
    """Turns rows into what is shown. What no member has signed is left out."""

    def __init__(self, team: ReadingTeam) -> None:
        self._team = team

    def genuine_sessions(self, rows: Iterable[TeamSession]) -> list[tuple[TeamSession, SessionCopy]]:
        """Return the sessions that a member has signed, with what they say."""
        return [
            (row, copy)
            for row in rows
            if self._is_signed(row, verify_session) and (copy := _decode(row.body, SessionCopy)) is not None
        ]

    def genuine_events(self, rows: Iterable[TeamEvent]) -> list[tuple[TeamEvent, EventCopy]]:
        """Return the events that a member has signed, with what they say."""
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
        """Return a session. Whether it still runs is what the news of its host say, as for sessions of this one."""
        news = self._team.directory.news.get(row.host)
        is_running = news is not None and any(one.id == row.session and one.ended is None for one in news.sessions)
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

    def found(self, row: TeamSession, copy: SessionCopy, query: HistoryQuery) -> Found:
        """Return a session of a page."""
        session = self.session(row, copy, query)
        return Found((session.last, row.session, row.host), session)

    def matched(self, row: TeamEvent, copy: EventCopy, sessions: dict[tuple[str, str], HistorySession]) -> Found:
        """Return an event that was searched for, with its session; one without figures if they are missing."""
        at, host = self.to_local(row.at), self._host_name(row.host)
        unknown = HistorySession(id=row.session, host=host, last=at, ended=at)
        session = sessions.get((row.host, row.session), unknown)
        match = HistoryMatch(row.session, session.folder, at, copy.kind, row.text[:_MAX_TEXT], host)
        return Found((at, row.id, row.host), session, match)

    def entry(self, row: TeamEvent, copy: EventCopy) -> TimelineEntry:
        """Return an event of a timeline."""
        return replace(
            copy.entry,
            at=self.to_local(row.at),
            session=row.session,
            event=row.event,
            verdict=row.verdict,
            text=copy.entry.text or row.text[:_MAX_TEXT],
        )

    def to_local(self, at: float) -> float:
        """Return a time of the relay by this host's clock."""
        return at - self._shift

    def to_relay(self, at: float) -> float:
        """Return a time of this host by the relay's clock."""
        return at + self._shift

    @property
    def _shift(self) -> float:
        offset = self._team.log.offset
        return offset if abs(offset) > CLOCK_TOLERANCE else 0.0

    def _host_name(self, host: str) -> str:
        return self._team.roster.name(host) if self._team.roster is not None else host[:8]


def subagents_of(entries: Iterable[tuple[TimelineEntry, EventCopy]]) -> list[SubagentHistory]:
    """Return the subagents that appear in events, given the oldest first."""
    found: dict[str, SubagentHistory] = {}
    for entry, copy in entries:
        if entry.agent:
            known = found.get(entry.agent) or SubagentHistory(id=entry.agent, started=entry.at)
            ended = entry.at if entry.event == "SubagentStop" else known.ended
            found[entry.agent] = replace(known, type=known.type or copy.agent_type, ended=ended)
    return list(found.values())


def _cost(copy: SessionCopy, query: HistoryQuery) -> float:
    """Return what a session has cost in the time that was asked for, to the hour."""
    first = int(query.since // _HOUR)
    last = query.until // _HOUR if query.until else float("inf")
    return sum(usd for hour, usd in copy.hours.items() if first <= hour <= last)


ValueT = TypeVar("ValueT", EventCopy, SessionCopy)


def _decode(body: bytes, kind: type[ValueT]) -> ValueT | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # of a newer version
        return None
