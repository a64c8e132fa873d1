"""Text from outside, made harmless for a terminal and cut by the cells it takes. Knows nothing of sessions.

Prompts, paths and descriptions are written by models and by strangers. In a row of a table, a line break, an escape
sequence, a mark that turns the writing around or a character of no width would each put the rest in the wrong place.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

_MOST = 400
"""Characters that are looked at: no cell is wider."""

_GONE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (zero width, direction), half pairs, private, unassigned, line and paragraph breaks."""

_MARKS = frozenset({"Mn", "Me"})
_MOST_MARKS = 2
"""Marks on one letter: some scripts need two, more climb into the rows above."""

_SELECTORS = range(0xFE00, 0xFE10)
"""They make an emoji wider or narrower, and terminals do not agree which."""


def harmless(text: str) -> str:
    """Give the text as one line that every terminal shows in the cells that we count."""
    if text.isascii() and text.isprintable():
        return text[:_MOST]
    return _cleaned(text[:_MOST])


@lru_cache(4096)
def _cleaned(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in _MARKS else 0
        if character in "\t\n\r\v\f" or kind in {"Zs", "Zl", "Zp"}:
            kept.append(" ")
        elif kind == "Cc":
            kept.append("�" if character == "\x1b" else "")
        elif kind not in _GONE and marks <= _MOST_MARKS and ord(character) not in _SELECTORS:
            kept.append(character)
    return " ".join("".join(kept).split())


def width(text: str) -> int:
    """Count the cells."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, cells: int) -> str:
    """Make the text exactly so many cells wide: cut its end, with a sign of it, or fill it up."""
    if cells <= 0:
        return ""
    has = width(text)
    if has == cells:
        return text
    if has < cells:
        return text + " " * (cells - has)
    return set_cell_size(text, cells - 1) + "…"


def fit_end(text: str, cells: int) -> str:
    """Cut the beginning of a text that is too wide: of a path, the end tells more."""
    if width(text) <= cells:
        return text
    kept = text[-cells:]
    while kept and width(kept) > cells - 1:
        kept = kept[1:]
    return f"…{kept}" if cells > 0 else ""
