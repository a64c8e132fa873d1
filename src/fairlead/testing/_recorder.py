"""A hook that records events."""

from __future__ import annotations

from fairlead.events import Event, HookEvent
from fairlead.hooks import Hook, HookContext


class Recorder(Hook):
    """Appends each event, or each event of the given types, to `recorded`, in the form after rewriting hooks."""

    phase = "observe"
    inline = True

    def __init__(self, *events: type[Event] | HookEvent, name: str = "recorder") -> None:
        self.name = name
        self.events = events or (Event,)
        self.recorded: list[Event] = []

    def execute(self, event: Event, _ctx: HookContext) -> None:
        """Append the event to `recorded`."""
        self.recorded.append(event)
