"""Finds the shell call in which a command runs. A session and its subagents share one process, but not their calls.

The client starts a shell for each call, directly below its own process, with the command on its command line. So the
agent is found by the text of its call. If several agents match, all of them are returned.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_or_default
from fairlead.daemon.events._extension import EventExtension
from fairlead.events import PostToolUse, PostToolUseFailure, PreToolUse, SessionEnd, SubagentStop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.clients import Client
    from fairlead.daemon.events._extension import EventContext
    from fairlead.events import Event
    from fairlead.journal import EventRecord

_MAX_CALLS = 5000
_IGNORED = str.maketrans("", "", " \t\r\n'\"\\")
"""Characters that the client may add or remove when it quotes a command: whitespace, quotes, backslashes."""


class ShellCall(msgspec.Struct, frozen=True):
    """A running shell call."""

    session: str
    agent_id: str
    """Empty if the session itself made the call."""
    call: str
    command: str
    """The command without quotes and whitespace."""


class ShellCalls(EventExtension):
    """The running shell calls, including those in the background. Thread-safe.

    Calls are noted before they are answered, because a call begins after its answer.
    """

    kind = "contributor"
    events = frozenset({"PreToolUse"})
    recorded_events = frozenset({"PostToolUse", "PostToolUseFailure", "SessionEnd", "SubagentStop"})

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], ShellCall] = OrderedDict()
        self._lock = Lock()

    def before_reply(self, context: EventContext) -> None:
        """Add a call that begins."""
        event = context.event
        if isinstance(event, PreToolUse) and context.tool_kind == "shell":
            self._begin(event, context.client)

    def after_record(self, record: EventRecord, event: Event | None) -> None:  # noqa: ARG002 - the signature of extensions
        """Remove the calls that an event ends."""
        if event is None or not self._calls:
            return
        if isinstance(event, PostToolUse | PostToolUseFailure):
            is_running = isinstance(event, PostToolUse) and bool(client_or_default(event.client).background_task(event))
            if not is_running:
                with self._lock:
                    self._calls.pop((event.session_id, event.tool_use_id or ""), None)
        elif isinstance(event, SessionEnd | SubagentStop):
            agent = event.agent_id if isinstance(event, SubagentStop) else None
            self._remove(event.session_id, agent)

    def _begin(self, event: PreToolUse, client: Client) -> None:
        command = next((text for key in client.command_keys if isinstance(text := event.tool_input.get(key), str)), "")
        if not command:
            return
        call = ShellCall(event.session_id, event.agent_id or "", event.tool_use_id or "", _plain(command))
        with self._lock:
            self._calls[call.session, call.call] = call
            while len(self._calls) > _MAX_CALLS:
                self._calls.popitem(last=False)

    def _remove(self, session: str, agent_id: str | None) -> None:
        with self._lock:
            for key, call in list(self._calls.items()):
                if call.session == session and agent_id in (None, call.agent_id):
                    del self._calls[key]

    def callers(
        self, sessions: Iterable[str], read_command_line: Callable[[], str], working: Iterable[str]
    ) -> frozenset[str]:
        """Return the ids of the subagents that may run a command in a shell with this command line; "" is the session.

        The command line is read only if there are calls to compare it with. `working` are the subagents with running
        shell calls. If no call matches the command line, it may be theirs.
        """
        names = set(sessions)
        with self._lock:
            running = [call for call in self._calls.values() if call.session in names]
        line = _plain(read_command_line()) if running else ""
        matching = [call for call in running if call.command in line]
        longest = max((len(call.command) for call in matching), default=0)
        callers = frozenset(call.agent_id for call in matching if len(call.command) == longest)
        return callers or frozenset({"", *working})


def _plain(command: str) -> str:
    return command.translate(_IGNORED)
