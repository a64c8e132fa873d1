"""Extracts what the history needs from the payloads of recorded events: searchable texts, and why a session ended.

Secrets were replaced in these payloads when they were recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients import client_or_default
from fairlead.errors import FairleadError
from fairlead.events import PreToolUse, SessionEnd, UserPromptSubmit
from fairlead.journal import EventRecord
from fairlead.sessions import EventText

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import Client
    from fairlead.events import Event
    from fairlead.journal import Record
    from fairlead.sessions import TextKind

EVENTS_WITH_TEXT = frozenset({"PreToolUse", "UserPromptSubmit", "SessionEnd"})
_MAX_TEXT = 2000
"""The number of characters of a text that can be searched."""


class ExtractedTexts:
    """The searchable texts in a batch of records, and the reasons why sessions ended."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.texts: list[EventText] = []
        self.ends: dict[str, str] = {}
        """By the id of a SessionEnd: the reason why the session ended; "" if there is none."""
        for record in records:
            if isinstance(record, EventRecord) and record.event in EVENTS_WITH_TEXT:
                self._add(record)

    def _add(self, record: EventRecord) -> None:
        client = client_or_default(record.client)
        event = parsed(client, record)
        if isinstance(event, SessionEnd):
            self.ends[record.id] = event.reason or ""
        elif event is not None and (kind_and_text := _text_of(client, event)) is not None:
            kind, text = kind_and_text
            self.texts.append(EventText(record.id, record.session, record.at, kind, text[:_MAX_TEXT]))


def searchable_text(record: EventRecord) -> tuple[TextKind, str]:
    """Return the kind and the searchable text of an event. The text is "" if the event has none."""
    texts = ExtractedTexts([record]).texts
    return (texts[0].kind, texts[0].text) if texts else ("call", "")


def parsed(client: Client, record: EventRecord) -> Event | None:
    """Return the event of a record; `None` if its payload cannot be parsed."""
    try:
        return client.parse(bytes(record.payload), record.event)
    except FairleadError:
        return None


def _text_of(client: Client, event: Event) -> tuple[TextKind, str] | None:
    """Return the kind and the searchable text of an event; `None` if it has none. A prompt of the client has none."""
    if isinstance(event, UserPromptSubmit):
        return None if not event.prompt or client.is_automatic(event.prompt) else ("prompt", event.prompt)
    kind_and_text = call_text(client, event) if isinstance(event, PreToolUse) else ("call", "")
    return kind_and_text if kind_and_text[1] else None


def call_text(client: Client, event: Event) -> tuple[TextKind, str]:
    """Return the kind and the text of a tool call: `command` or `file` with that, or else `call` with a summary.

    The text is "" if the event has no input.
    """
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
