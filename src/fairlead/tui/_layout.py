"""Puts a row into columns of a given width: pieces of text with the part they play. No screen, no colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fairlead.tui._rows import SIGNS, WORDS
from fairlead.tui._text import fit, width

if TYPE_CHECKING:
    from fairlead.tui._rows import Row
    from fairlead.tui._tree import Sums

Part: TypeAlias = Literal[
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
"""What a piece of text is; a theme gives it colours. A chip blinks; fair, tight and full are of context windows."""

Piece: TypeAlias = tuple[str, Part]

_STATE = 12
_WHAT_AT = 58
"""From this width on, what is being done has a column."""

_TIGHT, _FULL = 80, 92
_BAR = 5
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class Columns(NamedTuple):
    """How wide each column is; 0 where there is no room for it."""

    width: int
    state: int
    name: int
    what: int
    seen: int
    lasts: int
    model: int
    bar: int
    percent: int
    cost: int
    age: int


def columns(cells: int) -> Columns:
    """Share out the width. What matters least goes first when it gets narrow."""
    state = _STATE if cells >= 44 else 2  # noqa: PLR2004 - the steps at which a column comes
    lasts = 7 if cells >= 30 else 0  # noqa: PLR2004 - likewise
    percent = 5 if cells >= 64 else 0  # noqa: PLR2004 - likewise
    cost = 8 if cells >= 72 else 0  # noqa: PLR2004 - likewise
    age = 7 if cells >= 92 else 0  # noqa: PLR2004 - likewise
    bar = _BAR + 2 if cells >= 88 else 0  # noqa: PLR2004 - likewise
    model = 11 if cells >= 104 else 0  # noqa: PLR2004 - likewise
    seen = min(36, 18 + (cells - 116) // 4) if cells >= 116 else 0  # noqa: PLR2004 - likewise
    rest = cells - lasts - percent - cost - age - bar - model - seen
    what = rest * 3 // 8 if cells >= _WHAT_AT else 0
    return Columns(cells, state, rest - what, what, seen, lasts, model, bar, percent, cost, age)


def headings(cols: Columns) -> str:
    """Name the columns."""
    end = [
        fit(" doing, or needs", cols.what),
        fit(" seen by, ago", cols.seen),
        _right("for", cols.lasts),
        fit("  model", cols.model),
        _right("context", cols.bar + cols.percent) if cols.bar else _right("ctx", cols.percent),
        _right("cost", cols.cost),
        _right("age", cols.age),
    ]
    return fit("  session" if cols.state > 2 else "", cols.name) + "".join(end)  # noqa: PLR2004 - a sign alone


def laid_out(row: Row, cols: Columns) -> list[Piece]:
    """Give the pieces of a row, together exactly as wide as asked."""
    kind = row.line.kind
    if kind == "heading":
        return [(fit(f" {row.name.upper()}", cols.width), "heading")]
    if kind == "note":
        return [(fit(f"  {row.name}", cols.width), "dim")]
    if kind in ("project", "worktree"):
        return _group(row, cols)
    return _session(row, cols)


def _group(row: Row, cols: Columns) -> list[Piece]:
    mark = "▾" if row.line.is_open else "▸"
    indent = " " if row.line.kind == "project" else "   "
    alarm = f" !{row.alarm}" if row.alarm else ""
    room = cols.name + cols.what + cols.seen
    name = f"{indent}{mark} {row.name}"
    note = f"  {row.note}" if row.note else ""
    told = f"  {row.what}" if cols.state > 2 and not row.line.is_open else ""  # noqa: PLR2004 - a sign alone
    if room < width(alarm) + 4:
        return [(fit(f"{mark}{alarm}", cols.width), "group")]
    name = fit(name, min(width(name), room - width(alarm)))
    rest = room - width(name) - width(alarm)
    tail = _right(row.cost, cols.width - room - cols.age) if cols.cost and row.cost else ""
    filled = fit(tail, cols.width - room)
    return [(name, "group"), (alarm, "alarm"), (fit(note + told, rest), "dim"), (filled, "dim")]


def _session(row: Row, cols: Columns) -> list[Piece]:
    if row.line.kind == "need":  # its evidence is what it needs, and its name is longer: it has the project's before it
        room = cols.name + cols.what + cols.seen
        what = room * 2 // 5 if cols.what else 0
        cols = cols._replace(name=room - what, what=what, seen=0)
    quiet = row.mood in ("ended", "stale")
    body: Part = "dim" if quiet else "plain"
    lead: Part = "chip" if row.mood == "needs" else row.mood  # type: ignore[assignment]  # who has a state has one
    strong: Part = "needs" if row.mood == "needs" else body
    return [
        *_name(row, cols, lead, body),
        (_text(row.what, cols.what), strong),
        (_seen(row, cols.seen), "dim"),
        (_right(row.lasts, cols.lasts), strong if row.mood == "needs" else "dim"),
        (fit(f"  {row.model}", cols.model) if cols.model else "", "dim"),
        *_context(row.percent, cols),
        (_right(row.cost, cols.cost), body),
        (_right(row.age, cols.age), "dim"),
    ]


def _name(row: Row, cols: Columns, lead: Part, body: Part) -> list[Piece]:
    line = row.line
    narrow = cols.state == 2  # noqa: PLR2004 - a sign alone
    is_need = line.kind == "need"
    indent = " " * min(line.depth, 3) if narrow else " " if is_need else "   " + "  " * min(line.depth, 6)
    fold = "" if is_need else ("▾ " if line.is_open else "▸ ") if line.has_fold else "  "
    sign = f"{SIGNS[row.mood]} " + ("" if narrow else f"{WORDS[row.mood]:<9}")
    gap = "" if narrow else " "
    alarm = f"!{row.alarm} " if row.alarm and not line.is_open else ""
    used = width(indent + fold + sign + gap + alarm)
    rest = max(0, cols.name - used)
    note = f"{fit(row.note, min(width(row.note), rest // 2 - 2))}  " if row.note and not narrow else ""
    pieces: list[Piece] = [(indent + fold, "dim"), (sign, lead), (gap, body), (alarm, "alarm"), (note, "dim")]
    pieces.append((fit(row.name, rest - width(note)), body))
    return pieces if used <= cols.name else [(fit(indent + fold + sign, cols.name), lead)]


def _context(percent: float | None, cols: Columns) -> list[Piece]:
    """Draw the bar; its figure stands beside it, so that no colour is needed."""
    if percent is None or not cols.percent:
        return [(" " * (cols.bar + cols.percent), "dim")]
    part: Part = "full" if percent >= _FULL else "tight" if percent >= _TIGHT else "fair"
    figure = _right(f"{min(percent, 999):.0f}%", cols.percent)
    told: Part = part if part != "fair" else "plain"
    if not cols.bar:
        return [(figure, told)]
    filled = round(min(100.0, max(0.0, percent)) / 100 * _BAR * 8)
    drawn = "█" * (filled // 8) + (_EIGHTHS[filled % 8] if filled % 8 else "")
    return [
        (" ", "dim"),
        (drawn, part),
        ("·" * (_BAR - len(drawn)), "dim"),
        (figure, part if part != "fair" else "plain"),
    ]


def _seen(row: Row, cells: int) -> str:
    """Write which event told; if there is little room, how long ago it was stays."""
    if not row.seen or not cells:
        return " " * cells
    whole = f"{row.seen} {row.ago} ago"
    if width(whole) < cells:
        return _text(whole, cells)
    room = cells - 2 - width(row.ago)
    return _text(f"{fit(row.seen, min(room, width(row.seen)))} {row.ago}", cells)


def _text(text: str, cells: int) -> str:
    return f" {fit(text, cells - 1)}" if cells > 1 else " " * cells


def _right(text: str, cells: int) -> str:
    return fit(text, cells) if width(text) > cells else " " * (cells - width(text)) + text


def summary(sums: Sums, cells: int, link: str) -> list[Piece]:
    """Sum everything up in one line, with the state of the connection at its end if there is room."""
    who = "waits" if sums.waiting == 1 else "wait"
    long: list[Piece] = [
        (f" ! {sums.waiting} {who} for you ", "needs" if sums.waiting else "dim"),
        (f"  ● {sums.working} working", "working" if sums.working else "dim"),
        (f"   ○ {sums.idle} idle", "plain"),
        (f"   ~ {sums.stale} stale" if sums.stale else "", "dim"),
        (f"   ${sums.cost:.2f} today" if sums.cost else "", "plain"),
    ]
    short: list[Piece] = [
        (f"!{sums.waiting} ", "needs" if sums.waiting else "dim"),
        (f"●{sums.working} ", "working" if sums.working else "dim"),
        (f"○{sums.idle} ", "plain"),
    ]
    pieces = long if sum(width(text) for text, _ in long) + 2 <= cells else short
    used = sum(width(text) for text, _ in pieces)
    rest = max(0, cells - used)
    told = fit(link, min(width(link), max(0, rest - 2)))
    return [*pieces, (_right(f"{told} " if told else "", rest), "dim")]
