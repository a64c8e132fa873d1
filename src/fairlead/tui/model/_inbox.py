"""The lines of the inbox: one for each message, and the full text of the selected message. No screen.

A row is one message of the daemon's list; a document is the daemon's answer about one message.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from fairlead.text import ago, cell_width, duration, fit, one_line, printable_lines, wrap_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairlead.tui.model._layout import StyledText, StyleName

    Row = Mapping[str, Any]

HINTS = " j k select   r reply   J K scroll   Esc back"
NO_MAIL = 'no mail; an agent writes to you with: fairlead send User "…"'

_NAME = 24
_AGE = 10
_STATE = 12


def title(rows: Sequence[Row], cells: int) -> list[StyledText]:
    """Return the first line: the numbers of unread messages, open requests and all messages."""
    unread = sum(is_unread(row) for row in rows)
    owed = sum(is_owed(row) for row in rows)
    text = f" Mail to you: {unread} unread, {owed} to answer, {len(rows)} in all"
    return [(fit(text, cells), "needs" if unread or owed else "group")]


def is_unread(row: Row) -> bool:
    """Return whether the user has not read a message."""
    return row.get("stage") in ("queued", "shown")


def is_owed(row: Row) -> bool:
    """Return whether a message is a request that the user has not answered."""
    return row.get("intent") == "request" and not row.get("answered")


def row_line(row: Row, now: float, cells: int, *, is_selected: bool) -> list[StyledText]:
    """Return the line of a message: its state, sender, age and subject."""
    state = "to answer" if is_owed(row) else "new" if is_unread(row) else str(row.get("stage", ""))
    style: StyleName = "needs" if is_owed(row) or is_unread(row) else "dim"
    subject = one_line(row["subject"] or row.get("preview", "")) or "(no text)"
    name = min(_NAME, max(8, cells // 4))
    rest = max(0, cells - 2 - _STATE - name - 1 - _AGE)
    return [
        ("> " if is_selected else "  ", "needs"),
        (fit(state, _STATE), style),
        (fit(one_line(row["from"]), name) + " ", "group" if is_unread(row) else "plain"),
        (fit(ago(row["at"], now), _AGE), "dim"),
        (fit(subject, rest), "plain" if is_unread(row) else "dim"),
    ]


def message_lines(document: Row, now: float, cells: int) -> list[list[StyledText]]:
    """Return the wrapped lines of a message. A bar marks the lines of its body, so that they differ from our own."""
    message = document["message"]
    head = f" #{message['id']} from {one_line(message['from'])}, {ago(message['at'], now)}"
    if message["deadline"] and document["owed"]:
        left = message["deadline"] - now
        head += f", due in {duration(left)}" if left >= 0 else f", late by {duration(-left)}"
    lines: list[list[StyledText]] = [[(fit(head, cells), "dim")]]
    if message["subject"]:
        lines.append([(f" {one_line(message['subject'])}", "group")])
    width = max(1, cells - 4)
    for line in printable_lines(message["body"]):
        lines += [[(" │ ", "dim"), (part, "plain")] for part in _wrapped(line, width)]
    if document["owed"]:
        lines.append([(" It asks for an answer: press r.", "needs")])
    return lines


def _wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line wrapped between words. A part with wide characters that is still too wide is wrapped again."""
    for part in wrap(line, width) or [""]:
        yield from wrap_line(part, width)


def rule(text: str, cells: int) -> list[StyledText]:
    """Return a horizontal rule across the screen: `─ TEXT ─────`, or `─────` without a text."""
    return [(f"─ {text} " if text else "", "dim"), ("─" * max(0, cells - cell_width(text) - 3 * bool(text)), "dim")]
