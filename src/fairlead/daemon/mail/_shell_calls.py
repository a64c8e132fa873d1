"""Whose shell call a command runs in: a session and its subagents share one process, but not their calls.

The client starts a shell for each call, directly below its own process, with the command on its command line. So the
agent is found by the text of its call. Where that does not decide, nobody is guessed.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_or_default
from fairlead.events import PostToolUse, PostToolUseFailure, PreToolUse, SessionEnd, SubagentStop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.events import Event

_MAX_CALLS = 5000
_IGNORED = str.maketrans("", "", " \t\r\n'\"\\")
"""What the client may add to a command or leave out when it quotes it: blanks, quotes, backslashes."""


class ShellCall(msgspec.Struct, frozen=True):
    """A shell call that has begun."""

    session: str
    agent_id: str
    """"" for the session's own."""
    call: str
    command: str
    """Without quotes and blanks."""


class ShellCalls:
    """The shell calls that are under way, also those that run on in the background. Called from any thread."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], ShellCall] = OrderedDict()
        self._lock = Lock()

    def note(self, event: Event) -> None:
        """Follow what an event says about calls."""
        if isinstance(event, PreToolUse):
            self._began(event)
        elif isinstance(event, PostToolUse | PostToolUseFailure):
            is_running = isinstance(event, PostToolUse) and bool(client_or_default(event.client).background_task(event))
            if not is_running:
                with self._lock:
                    self._calls.pop((event.session_id, event.tool_use_id or ""), None)
        elif isinstance(event, SessionEnd | SubagentStop):
            agent = event.agent_id if isinstance(event, SubagentStop) else None
            self._forget(event.session_id, agent)

    def _began(self, event: PreToolUse) -> None:
        client = client_or_default(event.client)
        command = next((text for key in client.command_keys if isinstance(text := event.tool_input.get(key), str)), "")
        if not command or client.kind_of(event.tool_name) != "shell":
            return
        call = ShellCall(event.session_id, event.agent_id or "", event.tool_use_id or "", _plain(command))
        with self._lock:
            self._calls[call.session, call.call] = call
            while len(self._calls) > _MAX_CALLS:
                self._calls.popitem(last=False)

    def _forget(self, session: str, agent_id: str | None) -> None:
        with self._lock:
            for key, call in list(self._calls.items()):
                if call.session == session and agent_id in (None, call.agent_id):
                    del self._calls[key]

    def callers(self, sessions: Iterable[str], command_line: str, working: Iterable[str]) -> frozenset[str]:
        """Return who may run a command in a shell with this command line, by the ids of subagents; "" is the session.

        `working` are the subagents with open shell calls: if no call has this text, it may be one of theirs.
        """
        names, line = set(sessions), _plain(command_line)
        with self._lock:
            matching = [call for call in self._calls.values() if call.session in names and call.command in line]
        longest = max((len(call.command) for call in matching), default=0)
        found = frozenset(call.agent_id for call in matching if len(call.command) == longest)
        return found or frozenset({"", *working})


def _plain(command: str) -> str:
    return command.translate(_IGNORED)
