"""What is copied of events and sessions for the history of a team: the values, without how they are carried."""

from __future__ import annotations

import msgspec

from fairlead.journal import Position
from fairlead.sessions._history import HistorySession, TextKind, TimelineEntry


class EventCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of this host, for the others."""

    id: str
    entry: TimelineEntry
    """Its `text` is empty if it is the beginning of `text`."""
    has_ended: bool = False
    """Whether its commands have ended, so that the answer is the last one."""
    text: str = ""
    """What a search finds."""
    kind: TextKind = "call"
    agent_type: str = ""
    """The type of the subagent that it is of."""


class SessionCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session of this host with its figures, for the others."""

    session: HistorySession
    hours: dict[int, float] = {}
    """What it has cost in US dollars, by hours since 1970."""


class CopyBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be copied of a part of the journal."""

    events: list[EventCopy] = []
    sessions: list[SessionCopy] = []
    position: Position
    """Where that part ends."""
    has_more: bool = False


class CopyCount(msgspec.Struct, frozen=True):
    """How many events are to be copied of a part of the journal, and where it ends."""

    events: int
    position: Position
