"""Text from outside, made safe to show in a terminal or to an agent.

Prompts, paths, messages and the output of programs are written by models and by strangers. A control character, a mark
that changes the direction of text or a character without width could move the cursor, hide a part of the text, or make
it look like our own text. Such a character is replaced by a visible sign. Only characters that compose emoji are
kept or left out.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LINE = 400
"""The default limit of a line, in characters."""

_REPLACEMENT = "\ufffd"
_BREAKS = frozenset("\x85\u2028\u2029")
"""Characters that are spaces for Python, and line breaks for some terminals."""

_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_JOINER = "\u200d"
_KEPT_IN_BLOCK = frozenset(("\n", "\t", _JOINER))
_LEFT_OUT_OF_LINE = _SELECTORS | {_JOINER}
"""Characters that compose emoji. Terminals do not agree on the width of the result."""

_EMOJI = range(0x1F000, 0x1FB00)
"""Emoji, including those that this Python's Unicode tables do not have yet."""

_MAX_MARKS = 2
"""The maximum number of combining marks on a letter. Some scripts need two; more would cover the rows above."""


def printable(text: str) -> str:
    """Return a text as one line that a terminal shows in as many cells as `cell_width` returns.

    A control character becomes its picture (␛ for an escape, ␊ for a line break), and any other unprintable character
    a space or �. Characters that compose emoji, and more than two combining marks on a letter, are left out.
    """
    return text if text.isascii() and text.isprintable() else _visible(text)


def printable_block(text: str) -> str:
    """Return a text, safe to show, with its line breaks, tabs and emoji. `printable` describes the replacements."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_block_sign, text.replace("\r\n", "\n")))


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text, safe to show, without empty lines at its start and end. There is at least one."""
    return printable_block(text).strip("\n").split("\n")


def printable_bodies(texts: Iterable[str]) -> list[list[str]]:
    """Return the result of `printable_lines` for each text."""
    return [printable_lines(text) for text in texts]


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """Return a text as one line, safe to show and cut to `limit` characters. Runs of white space become one space."""
    return truncate(printable(" ".join(text[: 4 * limit].split())), limit)


def one_lines(texts: Iterable[tuple[str, int]]) -> list[str]:
    """Return the result of `one_line` for each pair of a text and its limit in characters."""
    return [one_line(text, limit) for text, limit in texts]


def first_line(text: str) -> str:
    """Return the first non-empty line of a text, safe to show; "" if there is none."""
    return printable(text.strip().split("\n", 1)[0].rstrip())


def quoted(text: str, limit: int = 60) -> str:
    """Return a text in quotes, with escapes as in Python, cut to `limit` characters. For values in error messages."""
    return repr(truncate(text, limit))


def truncate(text: str, limit: int) -> str:
    """Return a text cut to at most `limit` characters, including a `…` at its end if it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


@lru_cache(1024)
def _visible(text: str) -> str:
    from unicodedata import category

    shown: list[str] = []
    marks = 0
    for char in text:
        if char in _LEFT_OUT_OF_LINE:
            continue
        marks = marks + 1 if category(char) in {"Mn", "Me"} else 0
        if marks <= _MAX_MARKS:
            shown.append(_sign(char))
    return "".join(shown)


def _block_sign(char: str) -> str:
    is_kept = char in _KEPT_IN_BLOCK or ord(char) in _EMOJI
    return char if is_kept else _REPLACEMENT if "\U000e0100" <= char <= "\U000e01ef" else _sign(char)


def _sign(char: str) -> str:
    if char.isprintable():
        return char
    if char < " ":
        return chr(0x2400 + ord(char))  # the block of control pictures
    if char == "\x7f":
        return "\u2421"
    return " " if char.isspace() and char not in _BREAKS else _REPLACEMENT
