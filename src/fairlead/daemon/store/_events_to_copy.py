"""Collects the events to be copied for the history of a team, from the part of the journal that is stored.

This runs in the process of the store, so that reading and parsing delay no event.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from fairlead.daemon.store._event_texts import searchable_text
from fairlead.daemon.store._timeline import agent_type_of, timeline_entry
from fairlead.journal import DOCTOR_SESSION, CommandsRecord, CostRecord, EventRecord
from fairlead.sessions import CopyBatch, EventCopy, EventsToCopyCount
from fairlead.store import StoredEvent, clean_text

if TYPE_CHECKING:
    from fairlead.journal import Journal, Position, Record
    from fairlead.store import Store

_BLOCKED = frozenset({"blocked", "failed"})
_MAX_READ = 1000
"""The maximum number of records that are read for one batch. With `blocked_only`, most of them are not copied."""
_MAX_BYTES = 256 * 1024
"""The approximate maximum size of the payloads of one batch in bytes."""
_MAX_REASON = 400


def find_events_to_copy(
    store: Store, journal: Journal, after: Position, stored: Position, *, blocked_only: bool, limit: int
) -> CopyBatch:
    """Return the events to copy from the next records after a position, and the sessions that these records change.

    At most `limit` records are read, and none after `stored`, the position up to which the journal is stored. With
    `blocked_only`, only blocked events and sessions with such events are copied.
    """
    position, size = after, 0
    records: list[Record] = []
    for at, record in islice(journal.read(after), _MAX_READ):
        if at > stored or len(records) >= limit or size > _MAX_BYTES:
            break
        position = at
        records.append(record)
        size += len(record.payload) if isinstance(record, EventRecord) else 0
    events = _events(store, records, blocked_only=blocked_only)
    names = {
        clean_text(item.session) for item in records if isinstance(item, EventRecord | CostRecord) and item.session
    }
    names |= {event.entry.session for event in events}
    return CopyBatch(
        events=events,
        sessions=store.sessions_to_copy(names - {DOCTOR_SESSION, ""}, blocked_only=blocked_only),
        position=position,
        has_more=after < position < stored,
    )


def count_events_to_copy(
    journal: Journal, after: Position, *, blocked_only: bool, keep_bytes: int
) -> EventsToCopyCount:
    """Return the number of events to copy after a position, up to about `keep_bytes` before the end of the journal.

    With `blocked_only`, only blocked events count. The result also has the position up to which was counted.
    """
    position, count = after, 0
    left = journal.size_after(after) - keep_bytes
    for at, record in journal.read(after):
        if left <= 0:
            break
        left -= at.offset - position.offset if at.segment == position.segment else at.offset
        position = at
        count += _is_counted(record, blocked_only=blocked_only)
    return EventsToCopyCount(count, position)


def _is_counted(record: Record, *, blocked_only: bool) -> bool:
    if blocked_only:
        return isinstance(record, EventRecord | CommandsRecord) and record.verdict in _BLOCKED
    return isinstance(record, EventRecord)


def _events(store: Store, records: list[Record], *, blocked_only: bool) -> list[EventCopy]:
    """Return a copy of each event in the records, and of each earlier event whose final answer is in them.

    A copy includes the final answer only if that is among the records.
    """
    ended = [record.id for record in records if isinstance(record, CommandsRecord) and _is_wanted(record, blocked_only)]
    wanted = [record for record in records if isinstance(record, EventRecord) and _is_wanted(record, blocked_only)]
    events = {clean_text(record.id): StoredEvent(record) for record in wanted}
    if ended:
        events |= {stored.event.id: stored for stored in store.events_by_id(ended)}
    return [_copy(event) for event in events.values() if event.event.session not in {"", DOCTOR_SESSION}]


def _is_wanted(record: EventRecord | CommandsRecord, blocked_only: bool) -> bool:  # noqa: FBT001 - private
    return not blocked_only or record.verdict in _BLOCKED


def _copy(stored: StoredEvent) -> EventCopy:
    entry = timeline_entry(stored)
    texts = {
        name: clean_text(text) for name in entry.__struct_fields__ if isinstance(text := getattr(entry, name), str)
    }
    entry = msgspec.structs.replace(entry, **(texts | {"reason": texts["reason"][:_MAX_REASON]}))
    kind, text = searchable_text(stored.event)
    text = clean_text(text)
    if text.startswith(entry.text):
        entry = msgspec.structs.replace(entry, text="")
    return EventCopy(
        id=clean_text(stored.event.id),
        entry=entry,
        has_ended=stored.commands is not None,
        text=text,
        kind=kind,
        agent_type=clean_text(agent_type_of(stored.event)),
    )
