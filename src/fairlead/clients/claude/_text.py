"""Limits the length of texts from a client's files, which may be of any size."""

from __future__ import annotations

from fairlead.text import replace_surrogates

MAX_ID = 200
MAX_TEXT = 200
MAX_PATH = 400


def clean(text: str, max_length: int = MAX_TEXT) -> str:
    """Return a text cut to a length, with unpaired surrogates replaced, which cannot be encoded."""
    return replace_surrogates(text[:max_length] if len(text) > max_length else text)
