"""Prints to stdout and stderr, and describes the terminal: its width and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.cli.support.invocation import current

if TYPE_CHECKING:
    from collections.abc import Iterable


class Screen(NamedTuple):
    """The terminal that text is printed to. The default is no terminal: nothing is cut or coloured."""

    columns: int | None = None
    """`None`: no terminal."""
    has_colour: bool = False

    def paint(self, style: str, text: str) -> str:
        """Return the text in a style of the terminal, such as `1;31`, if it has colours."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.has_colour else text


def stdout_screen() -> Screen:
    """Describe stdout. There are colours only at a terminal, and never under NO_COLOR."""
    invocation = current()
    if not invocation.stdout_is_terminal():
        return Screen()
    environ = invocation.environ
    has_colour = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Screen(invocation.columns(), has_colour)


def print_lines(lines: Iterable[str]) -> None:
    """Print each line to stdout."""
    stdout = current().stdout
    for line in lines:
        print(line, file=stdout)


def print_line(line: object, *, end: str = "\n") -> None:
    """Print one line to stdout."""
    print(line, end=end, file=current().stdout)


def print_error(line: object) -> None:
    """Print one line to stderr."""
    print(line, file=current().stderr)
