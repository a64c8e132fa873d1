"""Counts events and measures how long decisions take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension
from fairlead.journal import EventRecord

if TYPE_CHECKING:
    from fairlead.daemon._metrics import Metrics
    from fairlead.events import Event
    from fairlead.journal import Record


class EventMetrics(EventExtension):
    """Counts each recorded event by its name and verdict."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def after_record(self, record: Record, event: Event | None) -> None:
        """Count an event."""
        if isinstance(record, EventRecord):
            self._metrics.count(record)
