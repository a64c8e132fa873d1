"""Makes the entries of a timeline from stored events: what happened, with the result of its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients import client_or_default
from fairlead.daemon.store._event_texts import EVENTS_WITH_TEXT, call_text, parsed
from fairlead.events import SessionEnd, UserPromptSubmit
from fairlead.sessions import TimelineEntry

if TYPE_CHECKING:
    from fairlead.journal import EventRecord
    from fairlead.store import StoredEvent

_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"})
_MAX_SHOWN = 400
"""The maximum number of characters of an entry's text."""


def timeline_entry(stored: StoredEvent) -> TimelineEntry:
    """Return an event as an entry of a timeline, with the verdict after the event's commands if that is known."""
    record, commands = stored.event, stored.commands
    return TimelineEntry(
        at=record.at,
        event=record.event,
        session=record.session,
        tool=record.tool,
        agent=record.agent,
        verdict=commands.verdict if commands else record.verdict,
        reason=(commands.reason if commands else "") or record.reason,
        exit=commands.exit if commands else record.exit,
        seconds=record.seconds + (commands.seconds if commands else 0.0),
        text=_shown_text(record),
    )


def agent_type_of(record: EventRecord) -> str:
    """Return the type of the subagent that an event comes from; "" if it comes from none, or the type is not known."""
    event = parsed(client_or_default(record.client), record) if record.agent else None
    return getattr(event, "agent_type", None) or ""


def _shown_text(record: EventRecord) -> str:
    client = client_or_default(record.client)
    event = parsed(client, record) if record.event in _TOOL_EVENTS | EVENTS_WITH_TEXT else None
    if isinstance(event, UserPromptSubmit):
        return event.prompt[:_MAX_SHOWN]
    if isinstance(event, SessionEnd):
        return event.reason or ""
    return "" if event is None else call_text(client, event)[1][:_MAX_SHOWN]
