"""A hook that records events."""

from __future__ import annotations

from fairlead.events import Event, HookEvent
from fairlead.hooks import Hook, HookContext


class Recorder(Hook):
    """Records all events, or those of the given types, in `recorded`. Earlier hooks may have rewritten them."""

    phase = "observe"
    inline = True

    def __init__(self, *events: type[Event] | HookEvent, name: str = "recorder") -> None:
        """Record these events, or all if none is given."""
        self.name = name
        self.events = events or (Event,)
        self.recorded: list[Event] = []

    def execute(self, event: Event, _ctx: HookContext) -> None:
        """Record the event."""
        self.recorded.append(event)
