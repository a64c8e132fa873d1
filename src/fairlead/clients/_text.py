"""How much of a text of a client is kept. Nothing bounds what a client's file may hold."""

from __future__ import annotations

from fairlead.text import replace_surrogates

MAX_ID = 200
MAX_TEXT = 200
MAX_PATH = 400


def clean(text: str, max_length: int = MAX_TEXT) -> str:
    """Return a text cut to a length, with half a surrogate pair replaced by a character that can be written."""
    return replace_surrogates(text[:max_length] if len(text) > max_length else text)
