"""Whose shell calls are under way: a command that runs in one acts as its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.mail._shell_calls import ShellCalls
    from fairlead.events import Event
    from fairlead.journal import Record


def create(daemon: Daemon) -> ShellCallObserver:
    """Return the extension."""
    return ShellCallObserver(daemon.mail.shell_calls)


class ShellCallObserver(EventExtension):
    """Passes events on to the list of shell calls, before they are answered: the call begins after that."""

    recorded_events = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd", "SubagentStop"})

    def __init__(self, calls: ShellCalls) -> None:
        self._calls = calls

    def after_record(self, record: Record, event: Event | None) -> None:
        """Follow an event that was parsed."""
        if event is not None:
            self._calls.note(event)
