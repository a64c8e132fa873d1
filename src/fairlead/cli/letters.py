"""Messages and their ledger as text for people and agents. Text of others is shown harmless, and on its own lines."""

from __future__ import annotations

import os
import shutil
import sys
from time import localtime, strftime
from typing import TYPE_CHECKING, Any

from fairlead.cli.eventlines import fit
from fairlead.mail import FAIRLEAD, PEER_WARNING, USER
from fairlead.text import duration as span
from fairlead.text import printable_block as harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

_COLOURS = {
    **dict.fromkeys(("urgent", "bounced"), "31"),
    **dict.fromkeys(("active", "new"), "32"),
    **dict.fromkeys(("idle", "owed", "request"), "33"),
    **dict.fromkeys(("offline", "read", "answered", "low"), "2"),
}
_DAY = 86400.0
_MOST_NAMES = 10
_TITLE = 100
_LEAST = 20
"""Cells that the last column gets, however narrow the terminal."""


# -- printing ------------------------------------------------------------------------------------------


def say(*lines: str) -> None:
    """Print lines."""
    for line in lines:
        print(line)


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lay rows out in columns, without those that are empty.

    On a terminal the last is cut to what is left, and words that have a colour are shown in it.
    """
    columns = list(zip(*rows, strict=True))
    rows = list(zip(*[column for column in columns if any(column) or column is columns[-1]], strict=True))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    is_terminal = sys.stdout.isatty()
    has_colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    room = shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths)
    for *cells, last in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        shown = [_coloured(cell) for cell in padded] if has_colour else padded
        text = fit(last, max(room, _LEAST)) if is_terminal and len(last) > room else last
        yield "  ".join((*shown, text)).rstrip()


def _coloured(cell: str) -> str:
    colour = _COLOURS.get(cell.split(" ", 1)[0].rstrip(","))
    return f"\x1b[{colour}m{cell}\x1b[0m" if colour else cell


# -- words ---------------------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """Fold a text of others into one line, and make it harmless."""
    return " ".join(harmless(text).split())


def ago(at: float, now: float) -> str:
    """Tell how long ago something was."""
    return f"{span(now - at)} ago" if now - at >= 1 else "now"


def due(deadline: float, now: float) -> str:
    """Tell until when an answer is wanted."""
    left = deadline - now
    return f"due in {span(left)}" if left >= 0 else f"late by {span(-left)}"


def clock(at: float, now: float) -> str:
    """Tell the time of day, with the day if it is another."""
    return strftime("%H:%M" if abs(now - at) < _DAY / 2 else "%Y-%m-%d %H:%M", localtime(at))


def title(row: Row) -> str:
    """Say what a message is about: its subject, or how it begins."""
    text = one_line(row["subject"] or row.get("preview", "") or row.get("body", "")[: 4 * _TITLE])
    return fit(text, _TITLE) if len(text) > _TITLE else text or "(no text)"


def marks(row: Row, now: float) -> str:
    """Say what is special about a message: how urgent, of what intent, and until when."""
    found = [row["priority"]] if row["priority"] != "normal" else []
    found += [row["intent"]] if row["intent"] != "inform" else []
    found += [due(row["deadline"], now)] if row["deadline"] and not row.get("answered") else []
    return ", ".join(found)


def inbox_lines(rows: Iterable[Row], now: float) -> Iterator[str]:
    """Lay messages out, a line each."""
    return table(
        [
            (f"#{row['id']}", one_line(row["from"]), ago(row["at"], now), _stage(row), marks(row, now), title(row))
            for row in rows
        ]
    )


def _stage(row: Row) -> str:
    stage = row.get("stage", "")
    return "new" if stage == "queued" else str(stage)


def ledger_lines(letters: Iterable[Row], now: float) -> Iterator[str]:
    """Lay a ledger out: a line for each recipient, with all that happened to it."""
    return table([(one_line(letter["recipient"]), letter["stage"], _story(letter, now)) for letter in letters])


def _story(letter: Row, now: float) -> str:
    """Tell what happened to a letter."""
    told = [f"queued {ago(letter['queued'], now)}"]
    if letter["shown"]:
        told.append(f"shown {ago(letter['shown'], now)} at {one_line(letter['event'])}")
    told += [f"{word} {ago(letter[word], now)}" for word in ("read", "answered") if letter[word]]
    if letter["bounced"]:
        told.append(f"bounced {ago(letter['bounced'], now)}: {one_line(letter['why'])}")
    return ", ".join(told)


def message_lines(document: Row) -> Iterator[str]:
    """Show a whole message. Each line of the body stands behind a sign, so that it cannot speak in our name."""
    message, now = document["message"], document["now"]
    to = ", ".join(map(one_line, message["to"]))
    special = marks(message, now)
    yield f"#{message['id']} from {one_line(message['from'])} to {to}, {ago(message['at'], now)}" + (
        f" ({special})" if special else ""
    )
    if message["subject"]:
        yield f"Subject: {one_line(message['subject'])}"
    if len(document["thread"]) > 1:
        numbers = [f"#{one['id']}" for one in document["thread"]]
        yield f"Thread: {'…, ' if len(numbers) > _MOST_NAMES else ''}{', '.join(numbers[-_MOST_NAMES:])}"
    if message["body"]:
        yield ""
        yield from quoted(message["body"])
    if message["from"] not in {USER.name, FAIRLEAD.name, document["you"]} and document["you"] != USER.name:
        yield ""
        yield PEER_WARNING
    if document["owed"]:
        yield f'It asks for an answer: fairlead reply {message["id"]} "…"'


def quoted(body: str) -> Iterator[str]:
    """Show a body, line by line, behind a sign."""
    lines = harmless(body.replace("\r\n", "\n")).strip("\n").split("\n")
    return (f"> {line}".rstrip() for line in lines)


def sent_line(document: Row) -> str:
    """Say what became of a message that was sent."""
    if not document["new"]:
        return f"was sent already, as #{document['id']}"
    names = [f"{one_line(one['name'])} ({one['presence']})" for one in document["recipients"]]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"sent as #{document['id']} to {', '.join(names[:_MOST_NAMES])}{more}"
