"""Formats a record of the journal as a line of text, or as JSON."""

from __future__ import annotations

from time import localtime, strftime
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_or_default
from fairlead.errors import FairleadError
from fairlead.events import Elicitation, PermissionRequest, StopFailure
from fairlead.journal import CommandsRecord, EventRecord
from fairlead.text import cell_width, first_line, fit

if TYPE_CHECKING:
    from fairlead.cli.support.invocation import Screen
    from fairlead.journal import DaemonRecord

    Record = EventRecord | CommandsRecord | DaemonRecord

_COLOURS = {"blocked": "31", "failed": "31", "asked": "33", "allowed": "32", "said": "36", "none": "2"}
_VERDICT_COLUMN = 4
_ASKING = frozenset({"PermissionRequest", "Elicitation", "StopFailure"})

_WIDE = (14, 19, 8, 18, 7, 8)
_NARROW = (8, 17, 8, 10, 7, 0)
"""Widths of the columns before the reason. A narrow line has no date and no duration, to leave space for the reason."""

_MIN_WIDE_SCREEN = 110


def record_to_json(record: Record) -> str:
    """Return a record as JSON on one line, with every field, including defaults."""
    config = record.__struct_config__
    fields = {field.encode_name: getattr(record, field.name) for field in msgspec.structs.fields(record)}
    return msgspec.json.encode({config.tag_field: config.tag, **fields}).decode()


def record_to_text(record: Record, event: EventRecord | None, screen: Screen) -> str:
    """Return a record on one line, in columns, cut to the width of the screen.

    `event` is the event that the record belongs to; `None` if there is none or it is not known.
    """
    *cells, reason = map(first_line, _cells(record, event))
    widths = _WIDE if screen.columns is None or screen.columns >= _MIN_WIDE_SCREEN else _NARROW
    cells[0] = cells[0][-widths[0] :]
    cells[-1] = cells[-1].rjust(widths[-1])
    columns = [fit(cell, size) for cell, size in zip(cells, widths, strict=True) if size]
    line = "  ".join([*columns, reason]).rstrip()
    if screen.columns is not None and cell_width(line) > screen.columns:
        line = fit(line, screen.columns)
    return _with_colour(line, len("  ".join(columns[:_VERDICT_COLUMN])) + 2, cells[_VERDICT_COLUMN], screen)


def _cells(record: Record, event: EventRecord | None) -> tuple[str, ...]:
    at = strftime("%m-%d %H:%M:%S", localtime(record.at))
    if isinstance(record, EventRecord):
        reason = record.reason or (_commands(record.steps) + " to run" if record.steps else "")
        reason = f"{record.hook}: {reason}" if record.hook else reason or _asked(record)
        took = _duration(record.seconds)
        return at, record.event, record.session[:8], record.tool or record.agent, record.verdict, took, reason
    if isinstance(record, CommandsRecord):
        session = event.session[:8] if event else ""
        reason = record.reason or "; ".join(f"{step.run}: {step.status}" for step in record.steps)
        is_answer = not record.steps and event is not None and event.event == "PermissionRequest"
        what = ("└ answered", "") if is_answer else ("└ done", _commands(len(record.steps)))
        return at, what[0], session, what[1], record.verdict, _duration(record.seconds), reason
    about = f"pid {record.pid}" if record.pid else ""
    return at, "daemon", "", about, "", "", f"{record.what} {record.version}"


def _asked(record: EventRecord) -> str:
    """Return what the user was asked, or which error stopped the agent; "" for other events or if it is not known."""
    if record.event not in _ASKING:
        return ""
    client = client_or_default(record.client)
    try:
        event = client.parse(bytes(record.payload), record.event)
    except FairleadError:
        return ""  # the journal has only a part of the payload, or none
    if isinstance(event, PermissionRequest):
        return client.question_of(event.tool_name, event.tool_input).strip()
    if isinstance(event, Elicitation):
        return event.message or ""
    return (event.last_assistant_message or event.error or "") if isinstance(event, StopFailure) else ""


def _commands(number: int) -> str:
    return f"{number} command{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _with_colour(line: str, index: int, verdict: str, screen: Screen) -> str:
    """Return the line with its verdict, which is at `index`, in colour.

    Return it unchanged if the verdict was cut, or if the screen has no colours.
    """
    end = index + len(verdict)
    if not screen.has_colour or not verdict or line[index:end] != verdict:
        return line
    return f"{line[:index]}{screen.paint(_COLOURS[verdict], verdict)}{line[end:]}"
