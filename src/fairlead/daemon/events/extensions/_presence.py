"""Notes when the user was last seen: a prompt that a person wrote shows that they are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients import client_or_default
from fairlead.daemon.events._extension import EventExtension
from fairlead.events import UserPromptSubmit

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.sessions._presence import Presence
    from fairlead.events import Event
    from fairlead.journal import EventRecord


def create(daemon: Daemon) -> PromptPresence:
    """Return the extension."""
    return PromptPresence(daemon.presence)


class PromptPresence(EventExtension):
    """Notes the time of prompts."""

    recorded_events = frozenset({"UserPromptSubmit"})

    def __init__(self, presence: Presence) -> None:
        self._presence = presence

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Note the time of a prompt, unless the client wrote it."""
        if isinstance(event, UserPromptSubmit) and not client_or_default(record.client).is_automatic(event.prompt):
            self._presence.note(record.at)
