"""A record as a line for a person, or as JSON for a program. Knows the terminal, but no journal."""

from __future__ import annotations

import os
import shutil
import sys
from time import localtime, strftime
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

import msgspec

from fairlead.journal import CommandsRecord, EventRecord

if TYPE_CHECKING:
    from fairlead.journal import Record

_COLOURS = {"blocked": "31", "failed": "31", "asked": "33", "allowed": "32", "said": "36", "none": "2"}
_VERDICT = 4
"""Which cell that is."""

_WIDE = (14, 19, 8, 18, 7, 8)
_NARROW = (8, 17, 8, 10, 7, 0)
"""How wide the cells before the reason are; without the day, and the time that it took, something of it fits, too."""

_IS_WIDE = 110


class Printer:
    """Prints records to stdout, in the way that suits who reads it."""

    def __init__(self, *, as_json: bool = False) -> None:
        """Look at once at what stdout is."""
        self._as_json = as_json
        is_terminal = sys.stdout.isatty()
        self._colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._is_terminal = is_terminal

    def show(self, record: Record, event: EventRecord | None) -> None:
        """Print a record; `event` is the one that it belongs to, if that is known."""
        if self._as_json:
            print(as_json(record))
            return
        width = shutil.get_terminal_size().columns if self._is_terminal else None
        print(as_text(record, event, width=width, colour=self._colour))


def as_json(record: Record) -> str:
    """Write a record on one line, with every field, also where it has its usual value."""
    config = record.__struct_config__
    fields = {field.encode_name: getattr(record, field.name) for field in msgspec.structs.fields(record)}
    return msgspec.json.encode({config.tag_field: config.tag, **fields}).decode()


def as_text(record: Record, event: EventRecord | None, *, width: int | None = None, colour: bool = False) -> str:
    """Write a record on one line of that width, in columns."""
    *cells, reason = map(plain, _cells(record, event))
    widths = _WIDE if width is None or width >= _IS_WIDE else _NARROW
    cells[0] = cells[0][-widths[0] :]
    cells[-1] = cells[-1].rjust(widths[-1])
    columns = [fit(cell, size) for cell, size in zip(cells, widths, strict=True) if size]
    line = "  ".join([*columns, reason]).rstrip()
    if width is not None and _width(line) > width:
        line = fit(line, width)
    return _coloured(line, len("  ".join(columns[:_VERDICT])) + 2, cells[_VERDICT]) if colour else line


def plain(text: str) -> str:
    """Take the first line of a text, with a dot for whatever could move the cursor, or turn the direction of text."""
    first = text.strip().split("\n", 1)[0]
    return first if first.isprintable() else "".join(c if c.isprintable() else "·" for c in first)


def _cells(record: Record, event: EventRecord | None) -> tuple[str, ...]:
    at = strftime("%m-%d %H:%M:%S", localtime(record.at))
    if isinstance(record, EventRecord):
        reason = record.reason or (_commands(record.steps) + " to run" if record.steps else "")
        took = _took(record.seconds)
        return at, record.event, record.session[:8], record.tool or record.agent, record.verdict, took, reason
    if isinstance(record, CommandsRecord):
        session = event.session[:8] if event else ""
        reason = record.reason or "; ".join(f"{step.run}: {step.status}" for step in record.steps)
        return at, "└ done", session, _commands(len(record.steps)), record.verdict, _took(record.seconds), reason
    about = f"pid {record.pid}" if record.pid else ""
    return at, "daemon", "", about, "", "", f"{record.what} {record.version}"


def _commands(number: int) -> str:
    return f"{number} command{'' if number == 1 else 's'}"


def _took(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _coloured(line: str, at: int, verdict: str) -> str:
    """Colour the verdict, unless it was cut."""
    end = at + len(verdict)
    if not verdict or line[at:end] != verdict:
        return line
    return f"{line[:at]}\x1b[{_COLOURS[verdict]}m{verdict}\x1b[0m{line[end:]}"


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_cell_width, text))


def _cell_width(char: str) -> int:
    return 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1


def fit(text: str, size: int) -> str:
    """Give a text that takes so many cells: with blanks behind it, or cut with a mark."""
    room = size - _width(text)
    if room >= 0:
        return text + " " * room
    kept, room = "", size - 1
    for char in text:
        room -= _cell_width(char)
        if room < 0:
            break
        kept += char
    return kept + "…" + " " * (size - 1 - _width(kept))
