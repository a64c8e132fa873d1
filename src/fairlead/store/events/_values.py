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
    """An event, and in `commands` the results of its commands; `None` if it had none, or they are not known yet."""

    event: EventRecord
    commands: CommandsRecord | None = None

    @property
    def key(self) -> EventKey:
        """The sort key of the event. Pass that of a page's last event to get the next page."""
        return EventKey(self.event.at, self.event.id)


class Counts(msgspec.Struct, frozen=True):
    """How many events are stored, and from when to when."""

    events: int
    sessions: int
    """The number of different sessions with events."""
    oldest: float | None
    """The Unix time of the first event; `None` if there are no events."""
    newest: float | None
    """The Unix time of the last event; `None` if there are no events."""
    by_event: dict[str, int]
    """The number of events of each kind, by its name."""
