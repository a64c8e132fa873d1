"""What the history takes from the payload of an event: the texts that a search finds, and why a session ended.

Payloads are read as they were recorded, without what looks like a secret.
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

_DIGESTED = frozenset({"PreToolUse", "UserPromptSubmit", "SessionEnd"})
_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"})
_MAX_TEXT = 2000
"""Characters of a text that are searched."""
_MAX_SHOWN = 400


class Digest:
    """The texts and ends of a batch of records."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.texts: list[EventText] = []
        self.ends: dict[str, str] = {}
        """Event id → why the session ended."""
        for record in records:
            if isinstance(record, EventRecord) and record.event in _DIGESTED:
                self._add(record)

    def _add(self, record: EventRecord) -> None:
        client = client_or_default(record.client)
        event = _parsed(client, record)
        if isinstance(event, SessionEnd):
            self.ends[record.id] = event.reason or ""
        elif event is not None and (found := _text_of(client, event)) is not None:
            kind, text = found
            self.texts.append(EventText(record.id, record.session, record.at, kind, text[:_MAX_TEXT]))


def searched_text(record: EventRecord) -> tuple[TextKind, str]:
    """Return the text of an event that a search finds, and what it is; an empty one if there is none."""
    found = Digest([record]).texts
    return (found[0].kind, found[0].text) if found else ("call", "")


def agent_type_of(record: EventRecord) -> str:
    """Return the type of the subagent that an event is of; empty if it is of none, or does not say."""
    event = _parsed(client_or_default(record.client), record) if record.agent else None
    return getattr(event, "agent_type", None) or ""


def timeline_entry(stored: StoredEvent) -> TimelineEntry:
    """Return an event of a session, with what its commands have changed about the answer."""
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
    """Return the subagents that start or stop in events, the oldest first."""
    from msgspec.structs import replace

    from fairlead.sessions import SubagentHistory

    found: dict[str, SubagentHistory] = {}
    for one in sorted((stored.event for stored in entries), key=lambda record: record.at):
        if not one.agent:
            continue
        known = found.get(one.agent) or SubagentHistory(id=one.agent, started=one.at)
        known = replace(known, type=known.type or agent_type_of(one))
        found[one.agent] = replace(known, ended=one.at) if one.event == "SubagentStop" else known
    return list(found.values())


def _shown_text(record: EventRecord) -> str:
    client = client_or_default(record.client)
    event = _parsed(client, record) if record.event in _TOOL_EVENTS | _DIGESTED else None
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
    """Return the text of an event and what it is; `None` if it has none, or the client wrote it."""
    if isinstance(event, UserPromptSubmit):
        return None if not event.prompt or client.is_automatic(event.prompt) else ("prompt", event.prompt)
    found = _call_text(client, event) if isinstance(event, PreToolUse) else ("call", "")
    return found if found[1] else None


def _call_text(client: Client, event: Event) -> tuple[TextKind, str]:
    """Return the command or the file of a tool call, or else what says most about it."""
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
