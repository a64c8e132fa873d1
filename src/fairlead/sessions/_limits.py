"""How much of anything is kept. A client, or whoever plays one, can send texts of any length."""

from __future__ import annotations

from fairlead.events._parse import replace_surrogates

LONGEST_ID = 200
LONGEST_TEXT = 200
"""Of a prompt, a description, a reason. The journal keeps at least as much of a usual payload."""
LONGEST_PATH = 400

MOST_CALLS = 64
"""Open tool calls of one agent."""
MOST_TASKS = 64
"""Tasks in the background of one session."""
MOST_CLOSED = 24
"""Ended calls and agents that are remembered, so that a late beginning does not open them again."""
MOST_RECENT = 8
"""Events that are remembered, so that none is taken twice."""
MOST_PREVIOUS = 8
"""Earlier ids of a session."""


def clean(text: str, longest: int = LONGEST_TEXT) -> str:
    """Cut a text, and make half a surrogate pair something that can be written."""
    return replace_surrogates(text[:longest] if len(text) > longest else text)
