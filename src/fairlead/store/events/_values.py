"""What goes into the store and comes out of it, besides the records themselves."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairlead.journal import CommandsRecord, EventRecord


class Key(NamedTuple):
    """Where an event stands among all others: by time, and by id where the time is the same."""

    at: float
    id: str


class StoredEvent(msgspec.Struct, frozen=True):
    """An event, and how its commands ended if that is known."""

    happened: EventRecord
    done: CommandsRecord | None = None

    @property
    def key(self) -> Key:
        """Where to go on: the next page is what comes after it."""
        return Key(self.happened.at, self.happened.id)


class Counts(msgspec.Struct, frozen=True):
    """How much is kept."""

    events: int
    sessions: int
    oldest: float | None
    """Unix time of the first event."""
    newest: float | None
    by_event: dict[str, int]


class Health(msgspec.Struct, frozen=True):
    """What the doctor wants to know."""

    where: str
    """The file, or the URL without its password."""
    revision: str
    head: str
    """The newest revision that this version knows."""
    size: int
    """Bytes on the disk."""
    free: int
    """Bytes of them that hold nothing."""
    problems: tuple[str, ...] = ()
    """What the integrity check found; empty is good."""
