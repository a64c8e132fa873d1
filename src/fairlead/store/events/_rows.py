"""Converts records to rows and back. Every record can be written, because one invalid text must not stop the others."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.journal import Caller, CommandResult, CommandsRecord, DaemonRecord, EventRecord
from fairlead.store.events._tables import commands, daemon_records, events
from fairlead.store.events._values import StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Row, Table

    from fairlead.journal import Record

_MAX_INTEGER = 2**63 - 1
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_encode = msgspec.json.Encoder().encode
_decode_caller = msgspec.json.Decoder(Caller).decode
_decode_steps = msgspec.json.Decoder(tuple[CommandResult, ...]).decode


def rows_by_table(records: Iterable[Record]) -> list[tuple[Table, list[dict[str, Any]]]]:
    """Return the rows of records as pairs of a table and its rows. Tables without rows are left out.

    The rows may repeat an id. Records that have no table, such as costs, are skipped.
    """
    rows: dict[Table, list[dict[str, Any]]] = {events: [], commands: [], daemon_records: []}
    for record in records:
        if isinstance(record, EventRecord):
            rows[events].append(_event_row(record))
        elif isinstance(record, CommandsRecord):
            rows[commands].append(_commands_row(record))
        elif isinstance(record, DaemonRecord):
            rows[daemon_records].append(_daemon_row(record))
    return [(table, table_rows) for table, table_rows in rows.items() if table_rows]


def clean_text(value: str) -> str:
    """Return a text that every database accepts: lone surrogates and NUL are replaced."""
    if not value.isascii():
        value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return value.replace("\0", _REPLACEMENT) if "\0" in value else value


def stored_event(row: Row[Any]) -> StoredEvent:
    """Return the event of a row of `EVENTS_WITH_COMMANDS`."""
    return StoredEvent(_event_record(row), None if row.done_id is None else _commands_record(row))


def daemon_record(row: Row[Any]) -> DaemonRecord:
    """Return the record of a row of `daemon_records`."""
    return DaemonRecord(at=row.at, what=row.what, pid=row.pid, version=row.version)


def _event_row(record: EventRecord) -> dict[str, Any]:
    texts = record.id, record.event, record.client, record.session, record.agent, record.tool, record.cwd
    together = "".join(texts)  # one check is quicker than seven
    if not together.isascii() or "\0" in together:
        texts = tuple(map(clean_text, texts))  # type: ignore[assignment] # as many as before
    name, event, client, session, agent, tool, cwd = texts
    return {
        "id": name,
        "at": _number(record.at),
        "event": event,
        "client": client,
        "session": session,
        "agent": agent,
        "tool": tool,
        "cwd": cwd,
        "road": record.route,
        "verdict": record.verdict,
        "exit": _integer(record.exit),
        "reason": clean_text(record.reason),
        "seconds": _number(record.seconds),
        "steps": _integer(record.steps),
        "caller": _json(record.caller),
        "cut": record.cut,
        "payload": clean_text(bytes(record.payload).decode("utf-8", "replace")),
    }


def _commands_row(record: CommandsRecord) -> dict[str, Any]:
    return {
        "id": clean_text(record.id),
        "at": _number(record.at),
        "verdict": record.verdict,
        "exit": _integer(record.exit),
        "reason": clean_text(record.reason),
        "seconds": _number(record.seconds),
        "steps": _json(record.steps),
    }


def _daemon_row(record: DaemonRecord) -> dict[str, Any]:
    row = {
        "at": _number(record.at),
        "what": clean_text(record.what),
        "pid": _integer(record.pid),
        "version": clean_text(record.version),
    }
    return {"id": sha256(_encode(row)).hexdigest()[:32], **row}


def _event_record(row: Row[Any]) -> EventRecord:
    return EventRecord(
        id=row.id,
        at=row.at,
        event=row.event,
        client=row.client,
        session=row.session,
        agent=row.agent,
        tool=row.tool,
        cwd=row.cwd,
        route=row.road,
        verdict=row.verdict,
        exit=row.exit,
        reason=row.reason,
        seconds=row.seconds,
        steps=row.steps,
        caller=_decode_caller(row.caller),
        cut=row.cut,
        payload=msgspec.Raw(row.payload.encode()),
    )


def _commands_record(row: Row[Any]) -> CommandsRecord:
    return CommandsRecord(
        id=row.done_id,
        at=row.done_at,
        verdict=row.done_verdict,
        exit=row.done_exit,
        reason=row.done_reason,
        seconds=row.done_seconds,
        steps=_decode_steps(row.done_steps),
    )


def _json(value: object) -> str:
    """Return a value as JSON. Its texts are cleaned if they have lone surrogates, which msgspec rejects."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return _encode(_clean(msgspec.to_builtins(value))).decode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value


def _integer(value: int) -> int:
    return max(-_MAX_INTEGER, min(_MAX_INTEGER, value))


def _number(value: float) -> float:
    """Return a number; 0 for NaN, which SQLite would store as NULL."""
    return value if value == value else 0.0  # noqa: PLR0124 - NaN does not equal itself
