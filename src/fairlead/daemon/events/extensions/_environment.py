"""Exports the session id to the shells of a session when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext


def create(_daemon: Daemon) -> SessionEnvironment:
    """Return the extension."""
    return SessionEnvironment()


class SessionEnvironment(EventExtension):
    """Writes the session id into the file that the client sources before each command."""

    kind = "contributor"
    events = frozenset({"SessionStart"})

    def needs_thread(self, context: EventContext) -> bool:
        """Return True: it writes a file."""
        return True

    def before_reply(self, context: EventContext) -> None:
        """Write the session id into the client's file. Adds nothing to the reply."""
        request = context.request
        context.client.export_session(request.caller.env_file, context.event.session_id, request.cwd)
