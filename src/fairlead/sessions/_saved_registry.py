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
"""The version of the format. Other versions are not read: the registry is rebuilt from the journal."""


class SavedRegistryError(FairleadError, ValueError):
    """What was saved cannot be read. The registry can be rebuilt from the journal."""


class _SavedRegistry(msgspec.Struct, frozen=True):
    format: int
    revision: int
    sessions: list[Session]
    starts: dict[int, int]
    shared: list[int]


def encode_registry(registry: Registry) -> bytes:
    """Return all sessions, the latest revision and what is known about pids, encoded as JSON."""
    document = _SavedRegistry(
        FORMAT,
        registry.revision,
        list(registry.by_id.values()),
        registry.start_times,
        sorted(registry.shared_pids),
    )
    return msgspec.json.encode(document)


def restore_registry(data: bytes, revision: int = 0) -> Registry:
    """Return the registry that `encode_registry` has encoded. Raise `SavedRegistryError` if `data` cannot be read.

    Its revisions continue from the saved one, or from `revision` if that is higher.
    """
    try:
        document = msgspec.json.decode(data, type=_SavedRegistry)
    except (ValueError, RecursionError) as error:
        raise SavedRegistryError(f"not saved sessions: {error}") from None
    if document.format != FORMAT:
        raise SavedRegistryError(f"saved sessions of format {document.format}, not {FORMAT}")
    registry = Registry(max(revision, document.revision))
    for session in document.sessions:
        registry.put(session)
    registry.pop_changed()
    registry.start_times.update(document.starts)
    registry.shared_pids.update(document.shared)
    return registry


def apply_record(registry: Registry, record: EventRecord, event: Event | None = None) -> None:
    """Apply an event of the journal to the registry. Do nothing if its payload cannot be parsed.

    `event` is the parsed payload; `None` to parse that of the record.
    """
    try:
        event = event or client_named(record.client).parse(bytes(record.payload), record.event)
    except FairleadError:
        return
    registry.apply_event(event, record.at, record.caller, client=record.client, verdict=record.verdict)
