"""What stdout can show: the width and colours of a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

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
