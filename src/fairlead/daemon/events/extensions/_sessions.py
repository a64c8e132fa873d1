"""Feeds the session tracker with events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension
from fairlead.journal import EventRecord

if TYPE_CHECKING:
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.events import Event
    from fairlead.journal import Record


class SessionObserver(EventExtension):
    """Queues each event for the tracker, which applies it after the reply was sent."""

    def __init__(self, tracker: SessionTracker) -> None:
        self._tracker = tracker

    def after_record(self, record: Record, event: Event | None) -> None:
        """Queue an event."""
        if isinstance(record, EventRecord):
            self._tracker.add(record, event)
