"""Asks the relay for what the other hosts have copied.

Each question has a connection of its own, which is closed after it: people ask seldom, and mail must not wait. For when
there is no relay, the sessions that were read last are kept on disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.daemon.team.history._copy_state import copy_state_file, write_private
from fairlead.daemon.team.history._rows import HistoryRows, subagents_of
from fairlead.paths import state_folder
from fairlead.sessions import OtherHosts, SessionHistory
from fairlead.team import HistoryFilter, RelayUnreachable, TeamError, TeamSession
from fairlead.team.relay import open_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.team.history._rows import Found, ReadingTeam, RowKey
    from fairlead.sessions import HistoryQuery, HistorySession
    from fairlead.team.history import TeamHistory

    T = TypeVar("T")

_TIMEOUT = 2.0
"""Seconds for a relay that does not answer: a person waits."""
_MAX_KEPT = 500


class NoSuchMember(TeamError):
    """The team has no other member of that name."""


class KeptSessions(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of other hosts that were read last, with their signatures."""

    team: str = ""
    at: float = 0.0
    sessions: tuple[TeamSession, ...] = ()


class HistoryReader:
    """Answers what is asked about the other hosts. For threads that may wait; each question is independent."""

    def __init__(self, team: ReadingTeam) -> None:
        self._team = team
        self._rows = HistoryRows(team)

    @property
    def own_name(self) -> str:
        """The name of this host."""
        return self._team.roster.membership.name if self._team.roster is not None else ""

    def hosts(self, name: str = "") -> tuple[str, ...]:
        """Return the ids of the other members, or of the one with a name. Raises `NoSuchMember`."""
        roster = self._team.roster
        members = roster.trust.members.values() if roster is not None else ()
        others = {one.host: one.name for one in members if roster and one.host != roster.membership.host}
        if not name:
            return tuple(sorted(others))
        found = tuple(host for host, known in others.items() if known == name)
        if not found:
            names = ", ".join(sorted([self.own_name, *others.values()]))
            raise NoSuchMember(f"the team has no member {name!r}; its members: {names}")
        return found

    def sessions(
        self, query: HistoryQuery, hosts: tuple[str, ...], before: RowKey | None
    ) -> tuple[list[Found], OtherHosts]:
        """Return sessions, the last active one first, one more than a page if there are more; and how old that is."""
        wanted = self._filter(query, hosts, before)
        try:
            rows = self._ask(lambda history: history.sessions(wanted))
            state = OtherHosts(at=time())
        except TeamError as error:
            kept = self._load()
            rows = select_sessions(kept.sessions, wanted)
            state = OtherHosts(state="old" if kept.at else "missing", at=kept.at, why=str(error))
        genuine = self._rows.genuine_sessions(rows)
        if state.state == "current":
            self._keep([row for row, _ in genuine], state.at)
        state = replace(state, refused=len(rows) - len(genuine))
        return [self._rows.found(row, copy, query) for row, copy in genuine], state

    def search(
        self, query: HistoryQuery, hosts: tuple[str, ...], before: RowKey | None
    ) -> tuple[list[Found], OtherHosts]:
        """Return events with a text, the newest first, one more than a page if there are more."""
        wanted = self._filter(query, hosts, before)
        try:
            rows, described = self._ask(lambda history: history.search(wanted))
        except TeamError as error:
            return [], OtherHosts(state="missing", at=self._load().at, why=str(error))
        sessions = {
            (row.host, row.session): self._rows.session(row, copy, query)
            for row, copy in self._rows.genuine_sessions(described)
        }
        genuine = self._rows.genuine_events(rows)
        state = OtherHosts(at=time(), refused=len(rows) - len(genuine))
        return [self._rows.matched(row, copy, sessions) for row, copy in genuine], state

    def find_one(self, begins: str, hosts: tuple[str, ...]) -> list[tuple[str, HistorySession]]:
        """Return the sessions whose id begins like this, with the ids of their hosts. Raises `TeamError`."""
        rows = self._rows.genuine_sessions(self._ask(lambda history: history.find_sessions(hosts, begins, 3)))
        exact = [(row, copy) for row, copy in rows if row.session == begins]
        return [(row.host, self._rows.session(row, copy)) for row, copy in exact or rows]

    def timeline(self, host: str, session: HistorySession, limit: int, before: str) -> SessionHistory:
        """Return a session with its events, the newest last. Raises `TeamError`."""
        at, _, name = before.partition(",")
        key = (self._rows.to_relay(float(at)), name) if before else None
        rows = self._ask(lambda history: history.events(host, session.id, before=key, limit=limit + 1))
        page = rows[:limit]
        entries = [(self._rows.entry(row, copy), copy) for row, copy in reversed(self._rows.genuine_events(page))]
        return SessionHistory(
            session=session,
            subagents=subagents_of(entries),
            timeline=[entry for entry, _ in entries],
            next=f"{self._rows.to_local(page[-1].at)!r},{page[-1].id}" if len(rows) > limit else "",
        )

    def _ask(self, question: Callable[[TeamHistory], T]) -> T:
        """Ask the relay. Raises `TeamError`."""
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

    # -- what is kept ----------------------------------------------------------------------------------

    def _keep(self, rows: Iterable[TeamSession], at: float) -> None:
        roster = self._team.roster
        if roster is None:
            return
        known = {(one.host, one.session): one for one in (*self._load().sessions, *rows)}
        newest = sorted(known.values(), key=lambda one: one.last, reverse=True)[:_MAX_KEPT]
        kept = KeptSessions(team=roster.membership.team, at=at, sessions=tuple(newest))
        with suppress(OSError):
            write_private(kept_file(), msgspec.json.encode(kept))

    def _load(self) -> KeptSessions:
        roster = self._team.roster
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError), open(kept_file(), "rb") as file:
            kept = msgspec.json.decode(file.read(), type=KeptSessions)
            if roster is not None and kept.team == roster.membership.team:
                return kept
        return KeptSessions()


def kept_file() -> str:
    """Return the file of the sessions that were read last."""
    return f"{state_folder()}/team/history.json"


def forget_copies() -> None:
    """Delete what is kept of copying and of other hosts: this one leaves the team."""
    for path in (kept_file(), copy_state_file()):
        with suppress(OSError):
            os.unlink(path)


def select_sessions(rows: Iterable[TeamSession], wanted: HistoryFilter) -> list[TeamSession]:
    """Return a page of kept sessions, as the relay would."""
    folder = wanted.folder.rstrip("/")
    found = [
        one
        for one in rows
        if one.host in wanted.hosts
        and one.last >= wanted.since
        and (not wanted.until or one.started < wanted.until)
        and (not wanted.folder or one.folder == wanted.folder or one.folder.startswith(f"{folder}/"))
        and (wanted.before is None or (one.last, one.session, one.host) < wanted.before)
    ]
    return sorted(found, key=lambda one: (one.last, one.session, one.host), reverse=True)[: wanted.limit]
