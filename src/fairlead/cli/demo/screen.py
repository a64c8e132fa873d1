"""Prints the output of `fairlead demo`, for a terminal of 80 columns. Uses no process and no daemon."""

from __future__ import annotations

import textwrap
from time import localtime, strftime
from typing import TYPE_CHECKING

from fairlead.cli.support.invocation import stdout_screen
from fairlead.text import first_line, fit

if TYPE_CHECKING:
    from collections.abc import Iterable

_WIDTHS = (8, 7, 16, 24, 7, 7)
"""Widths of the columns time, who, event, what, verdict and milliseconds. With two blanks between them, 79 cells."""

_INDENT = " " * 19
_WIDTH = 79
_MAX_REASON_LINES = 3
_COLOURS = {"blocked": "1;31", "failed": "1;31", "asked": "1;33", "allowed": "32", "said": "36", "none": "2"}


class DemoScreen:
    """Prints the demo. Colours only repeat what the words say."""

    def __init__(self) -> None:
        self._paint = stdout_screen().paint

    def title(self, text: str) -> None:
        """Print the heading of a part."""
        print(self._paint("1", text))

    def text(self, text: str = "") -> None:
        """Print a text unchanged."""
        print(text)

    def shell(self, command: str) -> None:
        """Print a command that is run, or can be run."""
        print(f"{self._paint('36', '$')} {command}", flush=True)

    def policy(self, text: str) -> None:
        """Print the text of the policy file."""
        for line in text.splitlines():
            print(f"  {self._paint('36', line)}")
        print()

    def head(self) -> None:
        """Print the names of the columns."""
        *cells, last = ("time", "who", "event", "what", "verdict", "ms")
        print(self._paint("2", _row([*cells, last.rjust(_WIDTHS[-1])])))

    def event(self, at: float, cells: tuple[str, str, str], verdict: str, seconds: float) -> None:
        """Print the line of an event. `at` is its Unix time, `seconds` its duration.

        `cells` are the columns who, event and what.
        """
        columns = [fit(first_line(cell), size) for cell, size in zip(cells, _WIDTHS[1:], strict=False)]
        time, took = strftime("%H:%M:%S", localtime(at)), f"{seconds * 1000:.1f}".rjust(_WIDTHS[-1])
        word = self._paint(_COLOURS.get(verdict, "0"), verdict) + " " * (_WIDTHS[-2] - len(verdict))
        print("  ".join([self._paint("2", time), *columns, word, self._paint("2", took)]), flush=True)

    def reason(self, text: str) -> None:
        """Print the reason of a verdict, below the line of its event."""
        for line in textwrap.wrap(
            first_line(text), _WIDTH - len(_INDENT), max_lines=_MAX_REASON_LINES, placeholder=" ..."
        ):
            print(_INDENT + line)

    def between(self, text: str) -> None:
        """Print what happens between two events."""
        print(self._paint("2", f"{'-' * 8}  {text}"), flush=True)

    def wrong(self, text: str) -> None:
        """Print a difference from the expected outcome."""
        for line in textwrap.wrap(f"UNEXPECTED: {first_line(text)}", _WIDTH - len(_INDENT)):
            print(_INDENT + self._paint("1;31", line), flush=True)

    def figures(self, figures: Iterable[tuple[float, str]]) -> None:
        """Print durations, each given in seconds and with a description."""
        for seconds, what in figures:
            print(f"{self._paint('1', f'{seconds * 1000:.1f}'.rjust(7))} ms  {what}")


def _row(cells: Iterable[str]) -> str:
    return "  ".join(fit(cell, size) for cell, size in zip(cells, _WIDTHS, strict=True))
