"""Extracts data for the history from the payload of an event: the text that is searched, and why a session ended.

The recorded payloads no longer contain anything that looks like a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients import client_or_default
from fairlead.errors import FairleadError
from fairlead.events import PreToolUse, SessionEnd, UserPromptSubmit
from fairlead.journal import EventRecord
from fairlead.sessions import EventText, TimelineEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import Client
    from fairlead.events import Event
    from fairlead.journal import Record
    from fairlead.sessions import SubagentHistory, TextKind
    from fairlead.store import StoredEvent

_EVENTS_WITH_TEXT = frozenset({"PreToolUse", "UserPromptSubmit", "SessionEnd"})
_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"})
_MAX_TEXT = 2000
"""How many characters of a text can be searched."""
_MAX_SHOWN = 400


class ExtractedTexts:
    """The texts and the end reasons of sessions in a batch of records."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.texts: list[EventText] = []
        self.ends: dict[str, str] = {}
        """By event id: the reason why the session ended."""
        for record in records:
            if isinstance(record, EventRecord) and record.event in _EVENTS_WITH_TEXT:
                self._add(record)

    def _add(self, record: EventRecord) -> None:
        client = client_or_default(record.client)
        event = _parsed(client, record)
        if isinstance(event, SessionEnd):
            self.ends[record.id] = event.reason or ""
        elif event is not None and (kind_and_text := _text_of(client, event)) is not None:
            kind, text = kind_and_text
            self.texts.append(EventText(record.id, record.session, record.at, kind, text[:_MAX_TEXT]))


def searchable_text(record: EventRecord) -> tuple[TextKind, str]:
    """Return the kind and the searchable text of an event. The text is empty if there is none."""
    texts = ExtractedTexts([record]).texts
    return (texts[0].kind, texts[0].text) if texts else ("call", "")


def agent_type_of(record: EventRecord) -> str:
    """Return the type of an event's subagent; empty if it has none, or if the type is unknown."""
    event = _parsed(client_or_default(record.client), record) if record.agent else None
    return getattr(event, "agent_type", None) or ""


def timeline_entry(stored: StoredEvent) -> TimelineEntry:
    """Return an entry of a timeline: an event with the result of its commands."""
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


def subagents_of(entries: Iterable[StoredEvent]) -> list[SubagentHistory]:
    """Return the subagents that appear in events, the oldest first."""
    from msgspec.structs import replace

    from fairlead.sessions import SubagentHistory

    subagents: dict[str, SubagentHistory] = {}
    for event_record in sorted((stored.event for stored in entries), key=lambda record: record.at):
        if not event_record.agent:
            continue
        known = subagents.get(event_record.agent) or SubagentHistory(id=event_record.agent, started=event_record.at)
        known = replace(known, type=known.type or agent_type_of(event_record))
        subagents[event_record.agent] = (
            replace(known, ended=event_record.at) if event_record.event == "SubagentStop" else known
        )
    return list(subagents.values())


def _shown_text(record: EventRecord) -> str:
    client = client_or_default(record.client)
    event = _parsed(client, record) if record.event in _TOOL_EVENTS | _EVENTS_WITH_TEXT else None
    if isinstance(event, UserPromptSubmit):
        return event.prompt[:_MAX_SHOWN]
    if isinstance(event, SessionEnd):
        return event.reason or ""
    return "" if event is None else _call_text(client, event)[1][:_MAX_SHOWN]


def _parsed(client: Client, record: EventRecord) -> Event | None:
    try:
        return client.parse(bytes(record.payload), record.event)
    except FairleadError:
        return None


def _text_of(client: Client, event: Event) -> tuple[TextKind, str] | None:
    """Return the kind and the text of an event; `None` if it has no text, or if the client itself wrote the prompt."""
    if isinstance(event, UserPromptSubmit):
        return None if not event.prompt or client.is_automatic(event.prompt) else ("prompt", event.prompt)
    kind_and_text = _call_text(client, event) if isinstance(event, PreToolUse) else ("call", "")
    return kind_and_text if kind_and_text[1] else None


def _call_text(client: Client, event: Event) -> tuple[TextKind, str]:
    """Return the command or the file of a tool call, or else a summary of its input."""
    tool, given = getattr(event, "tool_name", ""), getattr(event, "tool_input", None)
    if not isinstance(given, dict):
        return "call", ""
    if client.kind_of(tool) == "shell":
        command = next((text for key in client.command_keys if isinstance(text := given.get(key), str)), "")
        if command:
            return "command", command
    if file := client.file_of(given):
        return "file", file
    return "call", client.summary_of(given)
