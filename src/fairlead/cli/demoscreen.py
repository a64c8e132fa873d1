"""How `fairlead demo` looks on a terminal of 80 columns. Knows no process and no daemon."""

from __future__ import annotations

import os
import sys
import textwrap
from time import localtime, strftime
from typing import TYPE_CHECKING

from fairlead.cli.eventlines import fit, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

_WIDTHS = (8, 7, 16, 24, 7, 7)
"""Of the cells of a line: time, who, event, what, verdict, milliseconds. With two blanks between them, 79 columns."""

_INDENT = " " * 19
_WIDTH = 79
_MOST_LINES = 3
_COLOURS = {"blocked": "1;31", "failed": "1;31", "asked": "1;33", "allowed": "32", "said": "36", "none": "2"}


class Screen:
    """Prints; in colour on a terminal, unless NO_COLOR is set. No colour says what no word says."""

    def __init__(self) -> None:
        """Look at where the text goes."""
        is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._colour = sys.stdout.isatty() and not is_plain

    def title(self, text: str) -> None:
        """Begin a part."""
        print(self._paint("1", text))

    def text(self, text: str = "") -> None:
        """Print a text as it is."""
        print(text)

    def shell(self, command: str) -> None:
        """Show a command that is run, or can be."""
        print(f"{self._paint('36', '$')} {command}", flush=True)

    def policy(self, text: str) -> None:
        """Show a file."""
        for line in text.splitlines():
            print(f"  {self._paint('36', line)}")
        print()

    def head(self) -> None:
        """Name the columns."""
        *cells, last = ("time", "who", "event", "what", "verdict", "ms")
        print(self._paint("2", _row([*cells, last.rjust(_WIDTHS[-1])])))

    def event(self, at: float, cells: tuple[str, str, str], verdict: str, seconds: float) -> None:
        """Print what came of an event: its time, then who, event and what, then the verdict and how long it took."""
        columns = [fit(plain(cell), size) for cell, size in zip(cells, _WIDTHS[1:], strict=False)]
        time, took = strftime("%H:%M:%S", localtime(at)), f"{seconds * 1000:.1f}".rjust(_WIDTHS[-1])
        word = self._paint(_COLOURS.get(verdict, "0"), verdict) + " " * (_WIDTHS[-2] - len(verdict))
        print("  ".join([self._paint("2", time), *columns, word, self._paint("2", took)]), flush=True)

    def reason(self, text: str) -> None:
        """Print what was said, below the event."""
        for line in textwrap.wrap(plain(text), _WIDTH - len(_INDENT), max_lines=_MOST_LINES, placeholder=" ..."):
            print(_INDENT + line)

    def between(self, text: str) -> None:
        """Say what happens between two events."""
        print(self._paint("2", f"{'-' * 8}  {text}"), flush=True)

    def wrong(self, text: str) -> None:
        """Say what came out differently."""
        for line in textwrap.wrap(f"DIFFERENT: {plain(text)}", _WIDTH - len(_INDENT)):
            print(_INDENT + self._paint("1;31", line), flush=True)

    def figures(self, figures: Iterable[tuple[float, str]]) -> None:
        """Print milliseconds, each with what they are of."""
        for seconds, what in figures:
            print(f"{self._paint('1', f'{seconds * 1000:.1f}'.rjust(7))} ms  {what}")

    def _paint(self, style: str, text: str) -> str:
        return f"\033[{style}m{text}\033[0m" if self._colour else text


def _row(cells: Iterable[str]) -> str:
    return "  ".join(fit(cell, size) for cell, size in zip(cells, _WIDTHS, strict=True))
