"""`PostgresHistory`: the history of a team as rows in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fairlead.team.history import JournalMark, TeamEvent, TeamSession
from fairlead.team.postgres import _history_statements as sql
from fairlead.team.postgres._connection import delete_in_steps
from fairlead.team.postgres._statement_runner import StatementRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.team.history import HistoryFilter

_END: Final = float("inf")
_LAST_TEXT: Final = "\U0010ffff"
"""A text that sorts after every id."""


def open_history(url: str, *, timeout: float = 10.0) -> PostgresHistory:
    """Connect to a server, and return the history in its database. Raises only subclasses of `TeamError`."""
    return PostgresHistory(url, timeout)


class PostgresHistory(StatementRunner):
    """A connection to the history of a team. See `fairlead.team.history.TeamHistory` for what each method does."""

    # -- copying ---------------------------------------------------------------------------------------

    def mark(self, host: str) -> JournalMark | None:
        """Return the position up to which a host has copied its journal; None if there is none."""
        rows = self._run(sql.MARK, [host])
        return JournalMark(*rows[0]) if rows else None

    def append(
        self, host: str, events: Sequence[TeamEvent], sessions: Sequence[TeamSession], mark: JournalMark
    ) -> None:
        """Store events and sessions of a host and its new mark, in one statement.

        If an event or a session is given several times, only its last stage or version is stored.
        """
        latest = {event.id: event for event in sorted(events, key=lambda event: event.stage)}
        newest = {session.session: session for session in sorted(sessions, key=lambda session: session.version)}
        values = {
            "host": host,
            "ids": [event.id for event in latest.values()],
            "times": [float(event.at) for event in latest.values()],
            "event_sessions": [event.session for event in latest.values()],
            "kinds": [event.event for event in latest.values()],
            "verdicts": [event.verdict for event in latest.values()],
            "stages": [event.stage for event in latest.values()],
            "texts": [event.text for event in latest.values()],
            "bodies": [event.body for event in latest.values()],
            "signatures": [event.signature for event in latest.values()],
            "sessions": list(newest),
            "started": [float(session.started) for session in newest.values()],
            "last": [float(session.last) for session in newest.values()],
            "folders": [session.folder for session in newest.values()],
            "versions": [session.version for session in newest.values()],
            "session_bodies": [session.body for session in newest.values()],
            "session_signatures": [session.signature for session in newest.values()],
            "segment": mark.segment,
            "position": mark.offset,
        }
        self._run(sql.APPEND, values)

    def prune(self, host: str, *, before: float, max_events: int) -> int:
        """Delete old events and sessions, and events beyond `max_events`, some thousand at a time. Return how many.

        Also deletes the marks of hosts that are not registered, which are not counted.
        """
        *in_steps, rest = sql.PRUNE
        values = {"host": host, "before": before, "max_events": max_events}
        with self._translating():
            total = sum(delete_in_steps(self._connection, statement, values) for statement in in_steps)
            self._connection.execute(rest)
        return total

    # -- reading ---------------------------------------------------------------------------------------

    def sessions(self, wanted: HistoryFilter) -> list[TeamSession]:
        """Return a page of the sessions that a filter selects, the last active one first."""
        return [_session(row) for row in self._run(sql.SESSIONS, _values(wanted))]

    def find_sessions(self, hosts: Sequence[str], begins: str, limit: int) -> list[TeamSession]:
        """Return up to `limit` sessions whose id starts with `begins`, one with exactly that id first."""
        return [_session(row) for row in self._run(sql.FIND_SESSIONS, [list(hosts), begins, begins, limit])]

    def events(
        self, host: str, session: str, *, before: tuple[float, str] | None = None, limit: int = 200
    ) -> list[TeamEvent]:
        """Return up to `limit` events of a session, the newest first."""
        at, id_ = before or (_END, _LAST_TEXT)
        values = {"host": host, "session": session, "before_time": at, "before_id": id_, "limit": limit}
        return [_event(row) for row in self._run(sql.EVENTS, values)]

    def search(self, wanted: HistoryFilter) -> tuple[list[TeamEvent], list[TeamSession]]:
        """Return a page of the events that a filter selects, and the sessions of these events."""
        escaped = wanted.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        values = {**_values(wanted), "pattern": f"%{escaped}%", "until": wanted.until or _END}
        events = [_event(row) for row in self._run(sql.SEARCH, values)]
        pairs = sorted({(event.host, event.session) for event in events})
        columns = [[host for host, _ in pairs], [session for _, session in pairs]]
        return events, [_session(row) for row in self._run(sql.SESSIONS_OF, columns)] if pairs else []


def _values(wanted: HistoryFilter) -> dict[str, Any]:
    at, id_, host = wanted.before or (_END, _LAST_TEXT, _LAST_TEXT)
    return {
        "hosts": list(wanted.hosts),
        "since": wanted.since,
        "until": wanted.until,
        "folder": wanted.folder,
        "before_time": at,
        "before_id": id_,
        "before_host": host,
        "limit": wanted.limit,
    }


def _session(row: tuple[Any, ...]) -> TeamSession:
    host, session, started, last, folder, version, body, signature = row
    return TeamSession(
        host=host,
        session=session,
        started=started,
        last=last,
        folder=folder,
        version=version,
        body=body,
        signature=signature,
    )


def _event(row: tuple[Any, ...]) -> TeamEvent:
    host, id_, at, session, event, verdict, stage, text, body, signature = row
    return TeamEvent(
        host=host,
        id=id_,
        at=at,
        session=session,
        event=event,
        verdict=verdict,
        stage=stage,
        text=text,
        body=body,
        signature=signature,
    )
