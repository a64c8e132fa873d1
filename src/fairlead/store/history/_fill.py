"""Fills the history from the journal's records, in the transaction that stores them. No record is counted twice."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select
from sqlalchemy.dialects import sqlite

from fairlead.journal import DOCTOR_SESSION, CommandsRecord, CostRecord, EventRecord
from fairlead.store._database import PreparedStatement, batches, ids_among, insert_or_ignore
from fairlead.store.events._rows import clean_text
from fairlead.store.events._tables import commands, events
from fairlead.store.history import _search as search
from fairlead.store.history._tables import costs, sessions, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Table

    from fairlead.journal import Record
    from fairlead.sessions import EventText

_BLOCKED = frozenset({"blocked", "failed"})
_QUESTIONS = frozenset({"PermissionRequest", "Elicitation"})
_COUNTED = {"PreToolUse": "tools", "PostToolUseFailure": "failures", "SubagentStart": "subagents"}
_MAX_EVENT_DELAY = 2.0
"""Seconds after a session's end within which one of its events counts as late. A later event continues the session."""
_NEW = {
    **dict.fromkeys(("events", "prompts", "tools", "blocked", "asked", "failures", "subagents"), 0),
    **dict.fromkeys(("started", "last", "ended", "usd"), 0.0),
    **dict.fromkeys(("end_reason", "prompt", "client", "folder"), ""),
}
_MAX_PROMPT = 300

_NEW_TEXTS = PreparedStatement(insert(texts), ("session", "at", "kind", "text"))

_Row = dict[str, Any]


class HistoryBatch:
    """The records of one batch that the store does not have yet, without the events of `fairlead doctor`."""

    def __init__(self, connection: Connection, records: Sequence[Record]) -> None:
        """Look up which records are new. Create this before the batch is stored."""
        self._connection = connection
        stored = self._stored(events, (record.id for record in records if isinstance(record, EventRecord)))
        done = self._stored(commands, (record.id for record in records if isinstance(record, CommandsRecord)))
        self._events: dict[str, EventRecord] = {}
        for record in records:
            if isinstance(record, EventRecord) and _is_listed(record.session) and clean_text(record.id) not in stored:
                self._events.setdefault(record.id, record)
        self._commands = [
            record for record in records if isinstance(record, CommandsRecord) and clean_text(record.id) not in done
        ]
        self._costs = [record for record in records if isinstance(record, CostRecord) and _is_listed(record.session)]
        self._rows: dict[str, _Row] = {}

    def _stored(self, table: Table, ids: Iterable[str]) -> set[str]:
        stored: set[str] = set()
        for batch in batches([clean_text(name) for name in ids]):
            stored.update(ids_among(self._connection, table, batch))
        return stored

    def write(self, texts: Sequence[EventText], ends: Mapping[str, str]) -> None:
        """Update the sessions, and add the costs and texts of new records.

        `texts` may include those of records that are stored already. `ends` maps the id of an event that ended a
        session to the reason.
        """
        new = [text for text in texts if text.event in self._events]
        new_costs = self._add_costs()
        blocked = self._blocked_sessions()
        names = {event.session for event in self._events.values()} | {cost.session for cost in new_costs} | set(blocked)
        self._load(names)
        for event in self._events.values():
            _count(self._rows[clean_text(event.session)], event, ends.get(event.id))
        for text in new:
            if text.kind == "prompt":
                row = self._rows[clean_text(text.session)]
                row["prompts"] += 1
                row["prompt"] = row["prompt"] or clean_text(text.text[:_MAX_PROMPT])
        for cost in new_costs:
            _add_cost(self._rows[clean_text(cost.session)], cost)
        for name in blocked:
            self._rows[clean_text(name)]["blocked"] += 1
        self._save()
        self._add_texts(new)

    def _load(self, names: set[str]) -> None:
        """Read the rows of the sessions `names`. A session without a row gets a new one, with nothing counted."""
        for batch in batches([clean_text(name) for name in names]):
            query = select(sessions).where(sessions.c.session.in_(batch))
            self._rows.update({row.session: dict(row._mapping) for row in self._connection.execute(query)})  # noqa: SLF001 - SQLAlchemy's name
            for name in batch:
                self._rows.setdefault(name, {"session": name, **_NEW})

    def _save(self) -> None:
        if not self._rows:
            return
        _replacement().run_many(self._connection, list(self._rows.values()))

    def _blocked_sessions(self) -> list[str]:
        """Return the sessions of the events that only their commands have blocked, one entry for each event."""
        ids = [command.id for command in self._commands if command.verdict in _BLOCKED]
        known = {name: (one.session, one.verdict) for name in ids if (one := self._events.get(name))}
        for batch in batches([clean_text(name) for name in ids if name not in known]):
            query = select(events.c.id, events.c.session, events.c.verdict).where(events.c.id.in_(batch))
            known.update({row.id: (row.session, row.verdict) for row in self._connection.execute(query)})
        return [session for session, verdict in known.values() if _is_listed(session) and verdict not in _BLOCKED]

    def _add_costs(self) -> list[CostRecord]:
        """Add the costs to their table, and return those that it did not have."""
        statement = insert_or_ignore(costs)
        return [
            cost
            for cost in self._costs
            if self._connection.execute(
                statement, {"session": clean_text(cost.session), "at": cost.at, "usd": cost.added}
            ).rowcount
        ]

    def _add_texts(self, new: Sequence[EventText]) -> None:
        if not new:
            return
        last = self._connection.execute(select(func.max(texts.c.id))).scalar_one() or 0
        rows = [
            {"session": clean_text(text.session), "at": text.at, "kind": text.kind, "text": clean_text(text.text)}
            for text in new
        ]
        _NEW_TEXTS.run_many(self._connection, rows)
        if search.has_index(self._connection):
            search.add_after(self._connection, last)


@cache
def _replacement() -> PreparedStatement:
    """Return the statement that inserts the row of a session, or replaces the row that the session has."""
    statement = sqlite.insert(sessions)
    values = {column.name: column for column in statement.excluded if column.name != "session"}
    update = statement.on_conflict_do_update(index_elements=["session"], set_=values)
    return PreparedStatement(update, [column.name for column in sessions.columns])


def _is_listed(session: str) -> bool:
    return bool(session) and session != DOCTOR_SESSION


def _count(row: _Row, event: EventRecord, end_reason: str | None) -> None:
    row["events"] += 1
    row["client"] = clean_text(event.client)
    row["folder"] = row["folder"] or clean_text(event.caller.project or event.cwd)
    row["started"] = min(row["started"] or event.at, event.at)
    row["last"] = max(row["last"], event.at)
    if (counter := _COUNTED.get(event.event)) is not None:
        row[counter] += 1
    row["blocked"] += event.verdict in _BLOCKED
    row["asked"] += event.event in _QUESTIONS or event.verdict == "asked"
    if event.event == "SessionEnd":
        row["ended"], row["end_reason"] = event.at, clean_text(end_reason or "")
    elif row["ended"] and (event.event == "SessionStart" or event.at > row["ended"] + _MAX_EVENT_DELAY):
        row["ended"], row["end_reason"] = 0.0, ""


def _add_cost(row: _Row, cost: CostRecord) -> None:
    row["usd"] += cost.added
    row["client"] = row["client"] or clean_text(cost.client)
    row["folder"] = row["folder"] or clean_text(cost.folder)
    row["started"] = row["started"] or cost.began or cost.at
    row["last"] = max(row["last"], cost.at) if cost.added else row["last"] or cost.at
