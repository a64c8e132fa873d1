"""Saves the registry as bytes and restores it after a restart, or rebuilds it from the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_named
from fairlead.errors import FairleadError
from fairlead.journal import EventRecord
from fairlead.sessions._registry import Registry
from fairlead.sessions._session import Session

if TYPE_CHECKING:
    from fairlead.events import Event

FORMAT = 1
"""The version of the snapshot format. Other versions are not read: the registry is rebuilt from the journal."""


class SnapshotError(FairleadError, ValueError):
    """A snapshot cannot be read. The registry can be rebuilt from the journal."""


class _Snapshot(msgspec.Struct, frozen=True):
    format: int
    revision: int
    sessions: list[Session]
    starts: dict[int, int]
    shared: list[int]


def snapshot(registry: Registry) -> bytes:
    """Encode all sessions and the latest revision."""
    document = _Snapshot(
        FORMAT,
        registry.revision,
        list(registry.by_id.values()),
        registry.start_times,
        sorted(registry.shared_pids),
    )
    return msgspec.json.encode(document)


def restore(data: bytes, revision: int = 0) -> Registry:
    """Decode a snapshot. Revisions continue from it, or from `revision` if that is higher."""
    try:
        document = msgspec.json.decode(data, type=_Snapshot)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"not a snapshot of sessions: {error}") from None
    if document.format != FORMAT:
        raise SnapshotError(f"a snapshot of format {document.format}, not {FORMAT}")
    registry = Registry(max(revision, document.revision))
    for session in document.sessions:
        registry.put(session)
    registry.pop_changed()
    registry.start_times.update(document.starts)
    registry.shared_pids.update(document.shared)
    return registry


def apply_record(registry: Registry, record: EventRecord, event: Event | None = None) -> None:
    """Apply an event of the journal. `event` is its parsed payload, if the caller has it."""
    try:
        event = event or client_named(record.client).parse(bytes(record.payload), record.event)
    except FairleadError:
        return
    registry.apply_event(event, record.at, record.caller, client=record.client, verdict=record.verdict)
