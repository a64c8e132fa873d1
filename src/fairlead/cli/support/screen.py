"""What stdout can show: the width and colours of a terminal, and text cut to a number of its cells."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import combining, east_asian_width

if TYPE_CHECKING:
    from collections.abc import Iterable


class Screen(NamedTuple):
    """Where text is printed. The default is no terminal: nothing is cut or coloured."""

    columns: int | None = None
    """`None`: no terminal."""
    has_colour: bool = False

    def paint(self, style: str, text: str) -> str:
        """Return the text in a style of the terminal, such as `1;31`, if it has colours."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.has_colour else text


def stdout_screen() -> Screen:
    """Describe stdout. There are colours only at a terminal, and never under NO_COLOR."""
    if not sys.stdout.isatty():
        return Screen()
    from shutil import get_terminal_size

    has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Screen(get_terminal_size().columns, has_colour)


def print_lines(lines: Iterable[str]) -> None:
    """Print each line to stdout."""
    for line in lines:
        print(line)


def first_line(text: str) -> str:
    """Return the first line, with a dot for each character that could move the cursor or turn the text around."""
    line = text.strip().split("\n", 1)[0]
    return line if line.isprintable() else "".join(char if char.isprintable() else "·" for char in line)


def width(text: str) -> int:
    """Return how many cells the text takes. `fairlead.text.width` would import rich, which is slow to load."""
    return len(text) if text.isascii() else sum(map(_cell_width, text))


def fit(text: str, cells: int) -> str:
    """Return the text in exactly that many cells: filled up with blanks, or cut with a mark."""
    room = cells - width(text)
    if room >= 0:
        return text + " " * room
    kept, room = "", cells - 1
    for char in text:
        room -= _cell_width(char)
        if room < 0:
            break
        kept += char
    return kept + "…" + " " * (cells - 1 - width(kept))


def _cell_width(char: str) -> int:
    return 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1
