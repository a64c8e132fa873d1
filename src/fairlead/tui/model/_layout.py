"""Lays out rows in columns, as pieces of text with the names of their styles. No screen, no colours.

Symbols and labels of the states are always in the same column, at any depth of the tree, so that they are easy to find.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fairlead.text import cell_width, fit
from fairlead.tui.model._rows import LABELS, SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.tui.model._rows import Row
    from fairlead.tui.model._totals import Totals
    from fairlead.tui.model._view import Sort, View

StyleName: TypeAlias = Literal[
    "plain",
    "dim",
    "heading",
    "needs",
    "chip",
    "alarm",
    "working",
    "idle",
    "stale",
    "ended",
    "group",
    "fair",
    "tight",
    "full",
]
"""The style of a piece of text, for which a theme has colours.

A chip blinks. `fair`, `tight` and `full` are levels of a context window.
"""

StyledText: TypeAlias = tuple[str, StyleName]

CURSOR = ">"
"""The mark before the selected line."""

_INDENT = 3
_LABEL = 10
_TIGHT, _FULL = 80, 92
_BAR = 5
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NO_FIGURES = 100
"""Below this width, the row of a session that needs the user shows the reason instead of usage and costs."""


class Columns(NamedTuple):
    """The width of each column; 0 for a column without room or content."""

    width: int
    label: int
    in_state: int
    name: int
    activity: int
    evidence: int
    model: int
    bar: int
    percent: int
    cost: int
    age: int

    @property
    def is_narrow(self) -> bool:
        """Whether a state is shown as a symbol without its label."""
        return not self.label

    @property
    def lead(self) -> int:
        """The number of cells before the name: those of symbol, label and duration."""
        return (1 if self.is_narrow else _INDENT) + 2 + self.label + self.in_state


@lru_cache(64)
def columns(cells: int, *, has_usage: bool = True) -> Columns:
    """Return the widths of the columns for a line of `cells` cells. Narrow lines omit the least important columns.

    `has_usage` is whether there are columns for usage and costs.
    """
    spare = cells if has_usage else cells + 13
    label = _LABEL if cells >= 44 else 0
    in_state = 6 if cells >= 19 else 0
    percent = 5 if has_usage and cells >= 64 else 0
    cost = 8 if has_usage and cells >= 72 else 0
    bar = _BAR + 2 if has_usage and cells >= 88 else 0
    age = 7 if spare >= 96 else 0
    model = 11 if spare >= 108 else 0
    evidence = min(36, 16 + (cells - 116) // 4) if cells >= 116 else 0
    fixed = Columns(cells, label, in_state, 0, 0, evidence, model, bar, percent, cost, age)
    rest = max(0, cells - fixed.lead - evidence - model - bar - percent - cost - age)
    activity = rest * 2 // 5 if cells >= 58 else 0
    return fixed._replace(name=rest - activity, activity=activity)


def column_headings(cols: Columns, view: View) -> str:
    """Return the headings of the columns, as wide as the rows, with a mark at the sorted column.

    They are blank if states are shown without labels.
    """
    if cols.is_narrow:
        return " " * cols.width
    marks = {_marked(cols, view.sort): "▲" if view.is_reversed else "▼"}
    state = f"state{marks.get('state', '')}"
    lead = " " * _INDENT + f"{state:<{cols.label + 2}}" + _right("for ", cols.in_state)
    context = ("context" if cols.bar else "ctx") + marks.get("context", "")
    others = [
        fit(f"  session{marks.get('session', '')}", cols.name),
        _left(f"activity{marks.get('activity', '')}", cols.activity),
        _left(f"last event{marks.get('event', '')}", cols.evidence),
        _left(" model", cols.model),
        _right(context, cols.bar + cols.percent),
        _right(f"cost{marks.get('cost', '')}", cols.cost),
        _right(f"age{marks.get('age', '')}", cols.age),
    ]
    return lead + "".join(others)


def _marked(cols: Columns, sort: Sort) -> str:
    """Return the column to mark: the one that shows the sort key; a related one if there is no room for it."""
    if sort == "start":
        return "age" if cols.age else "session"
    if sort == "activity":
        return "event" if cols.evidence else "activity"
    return sort


def layout_row(row: Row, cols: Columns) -> list[StyledText]:
    """Return the pieces of a row, together exactly `cols.width` cells wide."""
    kind = row.line.kind
    if kind == "heading":
        return [(fit(f" {row.name.upper()}", cols.width), "heading")]
    if row.state == "note":  # includes a session that was removed after the lines were computed
        return [(fit(f" {row.name}", cols.width), "dim")]
    if kind in ("host", "project", "worktree"):
        return _group(row, cols)
    return _session(row, cols)


def _group(row: Row, cols: Columns) -> list[StyledText]:
    fold = "▾" if row.line.is_open else "▸"
    indent = "  " if row.line.kind == "worktree" or row.line.depth else " "
    alarm = f" !{row.waiting}" if row.waiting else ""
    room = cols.lead + cols.name + cols.activity + cols.evidence
    note = f"  {row.note}" if row.note else ""
    note_style: StyleName = "needs" if row.state == "stale" else "dim"
    totals = f"  {row.activity}" if not cols.is_narrow and not row.line.is_open else ""
    if room < cell_width(alarm) + 4:
        return [(fit(f"{fold}{alarm}", cols.width), "group")]
    name = f"{indent}{fold} {row.name}"
    name = fit(name, min(cell_width(name), room - cell_width(alarm)))
    rest = room - cell_width(name) - cell_width(alarm)
    cost = _right(row.cost, cols.width - room - cols.age) if cols.cost and row.cost else ""
    return [
        (name, "group"),
        (alarm, "alarm"),
        (fit(note + totals, rest), note_style),
        (fit(cost, cols.width - room), "dim"),
    ]


def _session(row: Row, cols: Columns) -> list[StyledText]:
    if row.line.kind == "attention":
        cols = _attention_columns(cols)
    needs_user = row.state == "needs"
    text_style: StyleName = "dim" if row.state in ("ended", "stale") else "plain"
    state_style: StyleName = "chip" if needs_user else row.state  # type: ignore[assignment]  # sessions have these
    label = SYMBOLS[row.state] + ("" if cols.is_narrow else f" {LABELS[row.state]}")
    if cols.width <= cols.lead:
        return [(fit(label, cols.width), state_style)]
    return [
        (" " if cols.is_narrow else " " * _INDENT, "dim"),
        (label, state_style),
        (" " * (2 + cols.label - cell_width(label)), "dim"),
        (_right(f"{row.in_state} ", cols.in_state), "needs" if needs_user else "dim"),
        *_name(row, cols, text_style),
        (_left(row.activity, cols.activity), "needs" if needs_user else text_style),
        (_evidence(row, cols.evidence), "dim"),
        (_left(f" {row.model}", cols.model), "dim"),
        *_context(row, cols),
        (_right(row.cost, cols.cost), text_style),
        (_right(row.age, cols.age), "dim"),
    ]


def _attention_columns(cols: Columns) -> Columns:
    """Return columns with more room for the reason, which starts in the activity column."""
    if cols.width < _NO_FIGURES:
        rest = cols.width - cols.lead - (cols.name if cols.activity else 0)
        cols = cols._replace(name=cols.name if cols.activity else rest, activity=rest if cols.activity else 0)
        return cols._replace(evidence=0, model=0, bar=0, percent=0, cost=0, age=0)
    return cols._replace(activity=cols.activity + cols.evidence, evidence=0)


def _name(row: Row, cols: Columns, text_style: StyleName) -> list[StyledText]:
    line, room = row.line, cols.name
    if line.kind == "attention":
        note = fit(row.note, min(cell_width(row.note), room * 2 // 5)) if not cols.is_narrow else ""
        note = f"{'' if cols.is_narrow else '  '}{note}{'  ' if note else ''}"
        return [
            (fit(note, min(cell_width(note), room)), "dim"),
            (fit(row.name, room - cell_width(note)), text_style),
        ]
    branch = ("▾ " if line.is_open else "▸ ") if line.has_fold else "└ " if line.depth else "  "
    indent = " " * min(line.depth, 3) if cols.is_narrow else "  " * min(line.depth, 6) + branch
    alarm = f"!{row.waiting} " if row.waiting and not line.is_open else ""
    indent = fit(indent, min(cell_width(indent), room))
    alarm = fit(alarm, min(cell_width(alarm), room - cell_width(indent)))
    return [(indent, "dim"), (alarm, "alarm"), (fit(row.name, room - cell_width(indent + alarm)), text_style)]


def _context(row: Row, cols: Columns) -> list[StyledText]:
    """Return the bar of the context window with its percentage, which can be read without colours."""
    percent = row.percent
    if percent is None or not cols.percent:
        return [(_right(row.context, cols.bar + cols.percent), "dim")]
    bar_style: StyleName = "full" if percent >= _FULL else "tight" if percent >= _TIGHT else "fair"
    figure: StyledText = (
        _right(f"{min(percent, 999):.0f}%", cols.percent),
        bar_style if bar_style != "fair" else "plain",
    )
    if not cols.bar:
        return [figure]
    filled = round(min(100.0, max(0.0, percent)) / 100 * _BAR * 8)
    bar = "█" * (filled // 8) + (_EIGHTHS[filled % 8] if filled % 8 else "")
    return [(" " * (cols.bar - _BAR), "dim"), (bar, bar_style), ("·" * (_BAR - len(bar)), "dim"), figure]


def _evidence(row: Row, cells: int) -> str:
    """Return the event and its age, `cells` cells wide. With little room, the name of the event is cut."""
    room = cells - 2 - cell_width(row.evidence_age)
    if not row.evidence or room <= 0:
        return " " * cells
    return _left(f"{fit(row.evidence, min(room, cell_width(row.evidence)))} {row.evidence_age}", cells)


def _left(text: str, cells: int) -> str:
    return f" {fit(text, cells - 1)}" if cells > 1 else " " * cells


def _right(text: str, cells: int) -> str:
    return fit(text, cells) if cell_width(text) > cells else " " * (cells - cell_width(text)) + text


def summary(totals: Totals, cells: int, connection: str, quota: Sequence[str] = (), mail: int = 0) -> list[StyledText]:
    """Return the totals of all sessions in one line, with the connection's state at its end if there is room.

    `quota` has texts about the account's limits, the longest first; the first that fits is used, or none. `mail` is the
    number of messages that wait for the user.
    """
    need = "1 needs you" if totals.waiting == 1 else f"{totals.waiting} need you"
    at_most = "≤ " if totals.older else ""
    long: list[StyledText] = [
        (f" ! {need}" if totals.waiting else " nothing needs you", "needs" if totals.waiting else "dim"),
        (f"   ✉ {mail}" if mail else "", "needs"),
        (f"   ● {totals.working} working", "working" if totals.working else "dim"),
        (f"   ○ {totals.idle} idle", "plain"),
        (f"   ~ {totals.stale} stale" if totals.stale else "", "dim"),
        (f"   {at_most}${totals.today:.2f} today" if totals.today else "", "plain"),
    ]
    short: list[StyledText] = [
        (f"!{totals.waiting} ", "needs" if totals.waiting else "dim"),
        (f"✉{mail} " if mail else "", "needs"),
        (f"●{totals.working} ", "working" if totals.working else "dim"),
        (f"○{totals.idle} ", "plain"),
    ]
    longer: list[list[StyledText]] = [[*long, (f"   {text}", "plain")] for text in quota]
    pieces = next(
        (candidate for candidate in (*longer, long) if sum(cell_width(text) for text, _ in candidate) + 2 <= cells),
        short,
    )
    rest = max(0, cells - sum(cell_width(text) for text, _ in pieces))
    end = fit(connection, min(cell_width(connection), max(0, rest - 2)))
    return [*pieces, (_right(f"{end} " if end else "", rest), "dim")]
