"""Converts transcripts of Claude Code to text for people: prompts, answers, tool calls and their results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fairlead.clients.claude._tools import summary_of
from fairlead.clients.claude._transcripts import open_transcript
from fairlead.events import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_BYTES = 32 * 1024 * 1024
"""Bytes at the end of a transcript that are shown. Everything before them is left out."""
_MAX_RESULT = 2000
"""Characters of a tool call's result that are shown."""
_SPEAKERS = {"user": "you", "assistant": "agent"}


def transcript_text(path: str) -> Iterator[str]:
    """Yield the parts of a conversation, separated by empty lines.

    Raise `ValueError` for a file outside the client's folder, and `OSError` if it cannot be read.
    """
    descriptor = open_transcript(path)
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > _MAX_BYTES:
            file.seek(size - _MAX_BYTES)
            file.readline()
            yield f"({size - _MAX_BYTES} bytes before this are left out)\n"
        for line in file:
            yield from _parts(line)


def _parts(line: bytes) -> Iterator[str]:
    try:
        entry = decode_json(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(entry, dict) or entry.get("type") not in _SPEAKERS or entry.get("isMeta") is True:
        return
    at, speaker = _time(entry), _SPEAKERS[entry["type"]]
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if isinstance(block, dict) and (text := _block(block, speaker)):
            yield f"{at}{text}\n"


def _block(block: dict[str, Any], speaker: str) -> str:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return f"{speaker}:\n{block['text']}"
    if kind == "tool_use":
        given = block.get("input")
        summary = summary_of(given) if isinstance(given, dict) else ""
        return f"{block.get('name')}: {summary}" if summary else str(block.get("name"))
    if kind == "tool_result":
        result = _result(block.get("content"))
        shown = result if len(result) <= _MAX_RESULT else f"{result[:_MAX_RESULT]} …"
        return f"{'error' if block.get('is_error') is True else 'result'}:\n{shown}"
    return ""


def _result(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _time(entry: dict[str, Any]) -> str:
    at = entry.get("timestamp")
    return f"{at[:19].replace('T', ' ')}  " if isinstance(at, str) else ""
