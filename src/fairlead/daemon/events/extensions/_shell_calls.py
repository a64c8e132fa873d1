"""Notes which agents' shell calls are running: a command in such a call acts as that agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension
from fairlead.events import PreToolUse

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.mail._shell_calls import ShellCalls
    from fairlead.events import Event
    from fairlead.journal import EventRecord


def create(daemon: Daemon) -> ShellCallObserver:
    """Return the extension."""
    return ShellCallObserver(daemon.mail.shell_calls)


class ShellCallObserver(EventExtension):
    """Notes shell calls before they are answered, because a call begins after its answer."""

    kind = "contributor"
    events = frozenset({"PreToolUse"})
    tool_kinds = frozenset({"shell"})
    recorded_events = frozenset({"PostToolUse", "PostToolUseFailure", "SessionEnd", "SubagentStop"})

    def __init__(self, calls: ShellCalls) -> None:
        self._calls = calls

    def before_reply(self, context: EventContext) -> None:
        """Note a call that begins."""
        event = context.event
        if isinstance(event, PreToolUse):
            self._calls.begin(event, context.client)

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Note a call that has ended."""
        if event is not None:
            self._calls.note(event)
