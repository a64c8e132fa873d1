"""A hook that records events."""

from __future__ import annotations

from fairlead.events import Event, HookEvent
from fairlead.hooks import Hook, HookContext


class Recorder(Hook):
    """Appends events to `recorded`: all, or those of the given types. Hooks that rewrite events run before it."""

    phase = "observe"
    inline = True

    def __init__(self, *events: type[Event] | HookEvent, name: str = "recorder") -> None:
        self.name = name
        self.events = events or (Event,)
        self.recorded: list[Event] = []

    def execute(self, event: Event, _ctx: HookContext) -> None:
        """Append the event to `recorded`."""
        self.recorded.append(event)
