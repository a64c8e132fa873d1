"""Values that the event store returns, besides the journal's records."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairlead.journal import CommandsRecord, EventRecord


class EventKey(NamedTuple):
    """The sort key of an event: its time, then its id."""

    at: float
    id: str


class StoredEvent(msgspec.Struct, frozen=True):
    """An event, and the results of its commands if they are known."""

    event: EventRecord
    commands: CommandsRecord | None = None

    @property
    def key(self) -> EventKey:
        """The key after which the next page starts."""
        return EventKey(self.event.at, self.event.id)


class Counts(msgspec.Struct, frozen=True):
    """How many events are stored."""

    events: int
    sessions: int
    oldest: float | None
    """Unix time of the first event."""
    newest: float | None
    by_event: dict[str, int]
