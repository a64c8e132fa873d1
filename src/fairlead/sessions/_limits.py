"""How much of anything is kept: a client can send texts of any length."""

from __future__ import annotations

from fairlead.text import replace_surrogates

MAX_ID_LENGTH = 200
MAX_TEXT_LENGTH = 200
"""Of a prompt, a description, a reason. The journal keeps at least as much of a usual payload."""
MAX_PATH_LENGTH = 400
MAX_QUESTION_LENGTH = 4000
"""Of what the user is asked: a command, the change of a file."""

MAX_CALLS = 64
"""Open tool calls of one agent."""
MAX_TASKS = 64
"""Background tasks of one session."""
MAX_CLOSED = 24
"""Ended calls and agents that are remembered, so that a delayed start event does not open them again."""
MAX_RECENT_EVENTS = 8
"""Events that are remembered, so that a repeated one is recognised."""
MAX_PREVIOUS_IDS = 8
"""Earlier ids of a session."""


def clean(text: str, max_length: int = MAX_TEXT_LENGTH) -> str:
    """Cut a text to a length and replace unpaired surrogates, so that it can be written."""
    return replace_surrogates(text[:max_length] if len(text) > max_length else text)
