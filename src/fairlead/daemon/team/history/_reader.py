"""Reads the events and sessions of the other hosts from the relay.

Each query opens a separate connection and closes it, because people ask rarely and mail must not wait. The sessions
that were read last are cached on disk, for the time without a relay.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.daemon.team.history._copy_state import copy_state_file
from fairlead.daemon.team.history._rows import HistoryRows
from fairlead.files import write_private
from fairlead.paths import make_private, state_folder
from fairlead.sessions import OtherHostsSummary, SessionHistory, subagents_of
from fairlead.team import HistoryFilter, RelayUnreachable, TeamError, TeamSession
from fairlead.team.relay import open_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.team.history._rows import ReadingTeam, RemoteResult, RowKey
    from fairlead.sessions import HistoryQuery, HistorySession
    from fairlead.team.history import TeamHistory

    T = TypeVar("T")

_TIMEOUT = 2.0
"""Seconds to wait for the relay. It is short, because a person waits."""
_MAX_CACHED = 500


class NoSuchMember(TeamError):
    """The team has no other member with that name."""


class CachedSessions(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of other hosts that were read last, with their signatures."""

    team: str = ""
    at: float = 0.0
    """The time at which the relay last answered; 0 if it never has."""
    sessions: tuple[TeamSession, ...] = ()


class HistoryReader:
    """Reads the history of the other hosts. Its methods wait for the network, and may be called from any thread."""

    def __init__(self, team: ReadingTeam) -> None:
        self._team = team
        self._rows = HistoryRows(team)

    @property
    def own_name(self) -> str:
        """The name of this host in the team; "" until the membership was read."""
        return self._team.roster.membership.name if self._team.roster is not None else ""

    def hosts(self, name: str = "") -> tuple[str, ...]:
        """Return the ids of the other members, or of the one with a name. Raises `NoSuchMember` if none has it."""
        roster = self._team.roster
        members = roster.trust.members.values() if roster is not None else ()
        others = {member.host: member.name for member in members if roster and member.host != roster.membership.host}
        if not name:
            return tuple(sorted(others))
        named = tuple(host for host, known in others.items() if known == name)
        if not named:
            names = ", ".join(sorted([self.own_name, *others.values()]))
            raise NoSuchMember(f"the team has no member {name!r}; its members: {names}")
        return named

    def sessions(
        self, query: HistoryQuery, hosts: tuple[str, ...], before: RowKey | None
    ) -> tuple[list[RemoteResult], OtherHostsSummary]:
        """Return a page of sessions after the key `before`, the last active one first, and how old the data is.

        If there are more pages, one more session than the limit is returned. The relay's sessions are cached on disk.
        If the relay does not answer, the cached sessions are returned.
        """
        wanted = self._filter(query, hosts, before)
        try:
            rows = self._ask(lambda history: history.sessions(wanted))
            state = OtherHostsSummary(at=time())
        except TeamError as error:
            cached = self._load()
            rows = select_sessions(cached.sessions, wanted)
            state = OtherHostsSummary(state="old" if cached.at else "missing", at=cached.at, why=str(error))
        genuine = self._rows.genuine_sessions(rows)
        if state.state == "current":
            self._save([row for row, _ in genuine], state.at)
        state = replace(state, refused=len(rows) - len(genuine))
        return [self._rows.session_result(row, copy, query) for row, copy in genuine], state

    def search(
        self, query: HistoryQuery, hosts: tuple[str, ...], before: RowKey | None
    ) -> tuple[list[RemoteResult], OtherHostsSummary]:
        """Return a page of events that contain a text, the newest first, and how old the data is.

        The page starts after the key `before`. If there are more pages, one more event than the limit is returned. If
        the relay does not answer, no event is returned.
        """
        wanted = self._filter(query, hosts, before)
        try:
            rows, described = self._ask(lambda history: history.search(wanted))
        except TeamError as error:
            return [], OtherHostsSummary(state="missing", at=self._load().at, why=str(error))
        sessions = {
            (row.host, row.session): self._rows.session(row, copy, query)
            for row, copy in self._rows.genuine_sessions(described)
        }
        genuine = self._rows.genuine_events(rows)
        state = OtherHostsSummary(at=time(), refused=len(rows) - len(genuine))
        return [self._rows.match_result(row, copy, sessions) for row, copy in genuine], state

    def find_one(self, begins: str, hosts: tuple[str, ...]) -> list[tuple[str, HistorySession]]:
        """Return up to three sessions whose id starts with `begins`, each as a pair: the id of its host, the session.

        If `begins` is a complete id, only sessions with that id are returned. Raises `TeamError` if the relay cannot be
        asked.
        """
        rows = self._rows.genuine_sessions(self._ask(lambda history: history.find_sessions(hosts, begins, 3)))
        exact = [(row, copy) for row, copy in rows if row.session == begins]
        return [(row.host, self._rows.session(row, copy)) for row, copy in exact or rows]

    def timeline(self, host: str, session: HistorySession, limit: int, before: str) -> SessionHistory:
        """Return a session of the host with the id `host`, with up to `limit` of its events, the newest last.

        `before` is the cursor of the page: "" for the newest events, else `next` of the page before. Raises `TeamError`
        if the relay cannot be asked, and `ValueError` for an invalid cursor.
        """
        at, _, name = before.partition(",")
        key = (self._rows.to_relay(float(at)), name) if before else None
        rows = self._ask(lambda history: history.events(host, session.id, before=key, limit=limit + 1))
        page = rows[:limit]
        entries = [(self._rows.entry(row, copy), copy) for row, copy in reversed(self._rows.genuine_events(page))]
        return SessionHistory(
            session=session,
            subagents=subagents_of((entry, copy.agent_type) for entry, copy in entries),
            timeline=[entry for entry, _ in entries],
            next=f"{self._rows.to_local(page[-1].at)!r},{page[-1].id}" if len(rows) > limit else "",
        )

    def _ask(self, question: Callable[[TeamHistory], T]) -> T:
        """Return the result of a query on the relay. Raises `TeamError` if the relay cannot be asked."""
        log, roster = self._team.log, self._team.roster
        if roster is None or log.state != "connected":
            raise RelayUnreachable(log.why or "the team's relay is not connected yet")
        if roster.state(roster.membership.host) != "member":
            raise RelayUnreachable("this host is not confirmed yet, so it reads nothing of the others")
        history = open_history(roster.membership.relay.read_url(), timeout=_TIMEOUT)
        try:
            return question(history)
        finally:
            history.close()

    def _filter(self, query: HistoryQuery, hosts: tuple[str, ...], before: RowKey | None) -> HistoryFilter:
        return HistoryFilter(
            hosts=hosts,
            since=self._rows.to_relay(query.since),
            until=self._rows.to_relay(query.until) if query.until else 0.0,
            folder=query.folder,
            text=query.search,
            before=(self._rows.to_relay(before[0]), *before[1:]) if before is not None else None,
            limit=query.limit + 1,
        )

    # -- the cache on disk -----------------------------------------------------------------------------

    def _save(self, rows: Iterable[TeamSession], at: float) -> None:
        roster = self._team.roster
        if roster is None:
            return
        known = {(session.host, session.session): session for session in (*self._load().sessions, *rows)}
        newest = sorted(known.values(), key=lambda session: session.last, reverse=True)[:_MAX_CACHED]
        cached = CachedSessions(team=roster.membership.team, at=at, sessions=tuple(newest))
        with suppress(OSError):
            make_private(os.path.dirname(cached_sessions_file()))
            write_private(cached_sessions_file(), msgspec.json.encode(cached))

    def _load(self) -> CachedSessions:
        roster = self._team.roster
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError), open(cached_sessions_file(), "rb") as file:
            cached = msgspec.json.decode(file.read(), type=CachedSessions)
            if roster is not None and cached.team == roster.membership.team:
                return cached
        return CachedSessions()


def cached_sessions_file() -> str:
    """Return the path of the file with the sessions that were read last."""
    return f"{state_folder()}/team/history.json"


def delete_history_files() -> None:
    """Delete the state of copying and the cached sessions, because this host leaves the team."""
    for path in (cached_sessions_file(), copy_state_file()):
        with suppress(OSError):
            os.unlink(path)


def select_sessions(rows: Iterable[TeamSession], wanted: HistoryFilter) -> list[TeamSession]:
    """Return a page of cached sessions, selected and sorted as on the relay."""
    folder = wanted.folder.rstrip("/")
    selected = [
        row
        for row in rows
        if row.host in wanted.hosts
        and row.last >= wanted.since
        and (not wanted.until or row.started < wanted.until)
        and (not wanted.folder or row.folder == wanted.folder or row.folder.startswith(f"{folder}/"))
        and (wanted.before is None or (row.last, row.session, row.host) < wanted.before)
    ]
    return sorted(selected, key=lambda row: (row.last, row.session, row.host), reverse=True)[: wanted.limit]
