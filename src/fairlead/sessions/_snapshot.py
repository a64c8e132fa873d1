"""The registry as bytes and back, so that it survives its daemon; and made anew from the journal, which has it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_named
from fairlead.errors import FairleadError
from fairlead.journal import EventRecord
from fairlead.sessions._registry import Registry
from fairlead.sessions._session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.events import Event
    from fairlead.journal import Record

FORMAT = 1
"""Of the snapshot. One of another format is not read: the journal has the same."""


class SnapshotError(FairleadError, ValueError):
    """A snapshot that cannot be read. The registry can be made anew from the journal."""


class _Snapshot(msgspec.Struct, frozen=True):
    format: int
    revision: int
    sessions: list[Session]
    starts: dict[int, int]
    shared: list[int]


def snapshot(registry: Registry) -> bytes:
    """Write down all sessions, and the number of the last change."""
    kept = _Snapshot(FORMAT, registry.revision, list(registry.by_id.values()), registry.starts, sorted(registry.shared))
    return msgspec.json.encode(kept)


def restore(data: bytes, revision: int = 0) -> Registry:
    """Make the registry of a snapshot. Changes are numbered on from it, or from `revision` if that is higher."""
    try:
        kept = msgspec.json.decode(data, type=_Snapshot)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"not a snapshot of sessions: {error}") from None
    if kept.format != FORMAT:
        raise SnapshotError(f"a snapshot of format {kept.format}, not {FORMAT}")
    registry = Registry(max(revision, kept.revision))
    for session in kept.sessions:
        registry.put(session)
    registry.take_touched()
    registry.starts.update(kept.starts)
    registry.shared.update(kept.shared)
    return registry


def rebuild(records: Iterable[Record], revision: int = 0) -> Registry:
    """Make the registry anew from the journal. What is no event, or cannot be read, is passed over."""
    registry = Registry(revision)
    for record in records:
        if isinstance(record, EventRecord):
            take_record(registry, record)
    return registry


def take_record(registry: Registry, record: EventRecord, event: Event | None = None) -> None:
    """Take in an event as the journal has it. `event` is its payload, if somebody has read that before."""
    try:
        event = event or client_named(record.client).parse(bytes(record.payload), record.event)
    except FairleadError:
        return
    registry.take(event, record.at, record.caller, client=record.client, verdict=record.verdict)
