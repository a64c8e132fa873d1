"""From a record to a row and back. Whatever a record holds, its row can be written: one bad text must not stop all."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.journal import Caller, CommandResult, CommandsRecord, DaemonRecord, EventRecord
from fairlead.store.events._tables import dones, events, turns
from fairlead.store.events._values import StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Row, Table

    from fairlead.journal import Record

_LARGEST = 2**63 - 1
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"

_encode = msgspec.json.Encoder().encode
_read_caller = msgspec.json.Decoder(Caller).decode
_read_steps = msgspec.json.Decoder(tuple[CommandResult, ...]).decode


def rows_by_table(records: Iterable[Record]) -> list[tuple[Table, list[dict[str, Any]]]]:
    """Sort records into their tables. Of several with one id the first is kept, as the database does it."""
    rows: dict[Table, list[dict[str, Any]]] = {events: [], dones: [], turns: []}
    for record in records:
        if isinstance(record, EventRecord):
            rows[events].append(_event_row(record))
        elif isinstance(record, CommandsRecord):
            rows[dones].append(_done_row(record))
        else:
            rows[turns].append(_turn_row(record))
    return [(table, found) for table, found in rows.items() if found]


def text_of(value: str) -> str:
    """Give a text that every database takes: half a surrogate pair and NUL are not among them."""
    if not value.isascii():
        value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return value.replace("\0", _UNKNOWN) if "\0" in value else value


def stored_event(row: Row[Any]) -> StoredEvent:
    """Put an event and its end together again, from a row of both tables side by side."""
    return StoredEvent(_happened(row), None if row.done_id is None else _done(row))


def turn_of(row: Row[Any]) -> DaemonRecord:
    """Read a turn of the daemon."""
    return DaemonRecord(at=row.at, what=row.what, pid=row.pid, version=row.version)


def _event_row(record: EventRecord) -> dict[str, Any]:
    return {
        "id": text_of(record.id),
        "at": _number(record.at),
        "event": text_of(record.event),
        "client": text_of(record.client),
        "session": text_of(record.session),
        "agent": text_of(record.agent),
        "tool": text_of(record.tool),
        "cwd": text_of(record.cwd),
        "road": record.route,
        "verdict": record.verdict,
        "exit": _whole(record.exit),
        "reason": text_of(record.reason),
        "seconds": _number(record.seconds),
        "steps": _whole(record.steps),
        "caller": _json(record.caller),
        "cut": record.cut,
        "payload": text_of(bytes(record.payload).decode("utf-8", "replace")),
    }


def _done_row(record: CommandsRecord) -> dict[str, Any]:
    return {
        "id": text_of(record.id),
        "at": _number(record.at),
        "verdict": record.verdict,
        "exit": _whole(record.exit),
        "reason": text_of(record.reason),
        "seconds": _number(record.seconds),
        "steps": _json(record.steps),
    }


def _turn_row(record: DaemonRecord) -> dict[str, Any]:
    row = {
        "at": _number(record.at),
        "what": text_of(record.what),
        "pid": _whole(record.pid),
        "version": text_of(record.version),
    }
    return {"id": sha256(_encode(row)).hexdigest()[:32], **row}


def _happened(row: Row[Any]) -> EventRecord:
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
        caller=_read_caller(row.caller),
        cut=row.cut,
        payload=msgspec.Raw(row.payload.encode()),
    )


def _done(row: Row[Any]) -> CommandsRecord:
    return CommandsRecord(
        id=row.done_id,
        at=row.done_at,
        verdict=row.done_verdict,
        exit=row.done_exit,
        reason=row.done_reason,
        seconds=row.done_seconds,
        steps=_read_steps(row.done_steps),
    )


def _json(value: object) -> str:
    """Encode a part that no query looks into. msgspec refuses half a surrogate pair; such a part is cleaned first."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return _encode(_cleaned(msgspec.to_builtins(value))).decode()


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items()}
    return [_cleaned(inner) for inner in value] if isinstance(value, list | tuple) else value


def _whole(value: int) -> int:
    return max(-_LARGEST, min(_LARGEST, value))


def _number(value: float) -> float:
    """Give a number that is one: to SQLite, not-a-number is NULL."""
    return value if value == value else 0.0  # noqa: PLR0124 - what is not a number does not equal itself
