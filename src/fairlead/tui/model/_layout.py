"""Puts a row into columns of a given width: pieces of text with the part they play. No screen, no colours.

Signs and words of the states stand below one another, whatever the tree looks like: they are what is looked for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fairlead.text import fit, width
from fairlead.tui.model._rows import SIGNS, WORDS

if TYPE_CHECKING:
    from fairlead.tui.model._rows import Row
    from fairlead.tui.model._totals import Totals

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

CURSOR = ">"
"""Stands before the chosen line."""

_INDENT = 3
_WORD = 10
_TIGHT, _FULL = 80, 92
_BAR = 5
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SPARE = 100
"""Below this width, who needs the person tells why instead of what it costs."""

_NAMED = 56
"""Cells that are enough to name a project and what a session is about."""


class Columns(NamedTuple):
    """How wide each column is; 0 where there is no room for it, or nothing to say."""

    width: int
    word: int
    lasts: int
    name: int
    what: int
    seen: int
    model: int
    bar: int
    percent: int
    cost: int
    age: int

    @property
    def is_narrow(self) -> bool:
        """Whether a sign has to do, without its word."""
        return not self.word

    @property
    def lead(self) -> int:
        """What stands before the name: sign, word, for how long."""
        return (1 if self.is_narrow else _INDENT) + 2 + self.word + self.lasts


@lru_cache(64)
def columns(cells: int, *, has_usage: bool = True) -> Columns:
    """Share out the width. What matters least goes first when it gets narrow; nobody pays for what is not known."""
    spare = cells if has_usage else cells + 13
    word = _WORD if cells >= 44 else 0  # noqa: PLR2004 - the steps at which a column comes
    lasts = 6 if cells >= 19 else 0  # noqa: PLR2004 - likewise
    percent = 5 if has_usage and cells >= 64 else 0  # noqa: PLR2004 - likewise
    cost = 8 if has_usage and cells >= 72 else 0  # noqa: PLR2004 - likewise
    bar = _BAR + 2 if has_usage and cells >= 88 else 0  # noqa: PLR2004 - likewise
    age = 7 if spare >= 96 else 0  # noqa: PLR2004 - likewise
    model = 11 if spare >= 108 else 0  # noqa: PLR2004 - likewise
    seen = min(36, 16 + (cells - 116) // 4) if cells >= 116 else 0  # noqa: PLR2004 - likewise
    empty = Columns(cells, word, lasts, 0, 0, seen, model, bar, percent, cost, age)
    rest = max(0, cells - empty.lead - seen - model - bar - percent - cost - age)
    what = rest * 2 // 5 if cells >= 58 else 0  # noqa: PLR2004 - likewise
    return empty._replace(name=rest - what, what=what)


def headings(cols: Columns) -> str:
    """Name the columns."""
    if cols.is_narrow:
        return " " * cols.width
    lead = " " * _INDENT + f"{'state':<{cols.word + 2}}" + _right("for ", cols.lasts)
    end = [
        fit("  session", cols.name),
        _text("doing, needs", cols.what),
        _text("seen by, ago", cols.seen),
        _text(" model", cols.model),
        _right("context", cols.bar + cols.percent) if cols.bar else _right("ctx", cols.percent),
        _right("cost", cols.cost),
        _right("age", cols.age),
    ]
    return lead + "".join(end)


def laid_out(row: Row, cols: Columns) -> list[Piece]:
    """Give the pieces of a row, together exactly as wide as asked."""
    kind = row.line.kind
    if kind == "heading":
        return [(fit(f" {row.name.upper()}", cols.width), "heading")]
    if kind == "note":
        return [(fit(f" {row.name}", cols.width), "dim")]
    if kind in ("project", "worktree"):
        return _group(row, cols)
    return _session(row, cols)


def _group(row: Row, cols: Columns) -> list[Piece]:
    mark = "▾" if row.line.is_open else "▸"
    indent = " " if row.line.kind == "project" else "  "
    alarm = f" !{row.alarm}" if row.alarm else ""
    room = cols.lead + cols.name + cols.what + cols.seen
    note = f"  {row.note}" if row.note else ""
    told = f"  {row.what}" if not cols.is_narrow and not row.line.is_open else ""
    if room < width(alarm) + 4:
        return [(fit(f"{mark}{alarm}", cols.width), "group")]
    name = f"{indent}{mark} {row.name}"
    name = fit(name, min(width(name), room - width(alarm)))
    rest = room - width(name) - width(alarm)
    tail = _right(row.cost, cols.width - room - cols.age) if cols.cost and row.cost else ""
    filled = fit(tail, cols.width - room)
    return [(name, "group"), (alarm, "alarm"), (fit(note + told, rest), "dim"), (filled, "dim")]


def _session(row: Row, cols: Columns) -> list[Piece]:
    if row.line.kind == "need":
        cols = _for_need(cols)
    is_loud = row.mood == "needs"
    body: Part = "dim" if row.mood in ("ended", "stale") else "plain"
    strong: Part = "needs" if is_loud else body
    lead: Part = "chip" if is_loud else row.mood  # type: ignore[assignment]  # who has a state has one
    sign = SIGNS[row.mood] + ("" if cols.is_narrow else f" {WORDS[row.mood]}")
    if cols.width <= cols.lead:
        return [(fit(sign, cols.width), lead)]
    return [
        (" " if cols.is_narrow else " " * _INDENT, "dim"),
        (sign, lead),
        (" " * (2 + cols.word - width(sign)), "dim"),
        (_right(f"{row.lasts} ", cols.lasts), "needs" if is_loud else "dim"),
        *_name(row, cols, body),
        (_text(row.what, cols.what), strong),
        (_seen(row, cols.seen), "dim"),
        (_text(f" {row.model}", cols.model), "dim"),
        *_context(row, cols),
        (_right(row.cost, cols.cost), body),
        (_right(row.age, cols.age), "dim"),
    ]


def _for_need(cols: Columns) -> Columns:
    """Give more room to the name, which has the project's before it, and to the reason, which is the evidence, too."""
    if cols.width < _SPARE:
        rest = cols.width - cols.lead
        cols = cols._replace(name=0 if cols.what else rest, what=rest if cols.what else 0)
        cols = cols._replace(seen=0, model=0, bar=0, percent=0, cost=0, age=0)
    room = cols.name + cols.what + cols.seen
    name = max(cols.name, min(_NAMED, room * 3 // 5)) if cols.what else room
    return cols._replace(name=name, what=room - name, seen=0)


def _name(row: Row, cols: Columns, body: Part) -> list[Piece]:
    line, room = row.line, cols.name
    if line.kind == "need":
        note = fit(row.note, min(width(row.note), room * 2 // 5)) if not cols.is_narrow else ""
        note = f"{note}  " if note else ""
        return [(fit(note, min(width(note), room)), "dim"), (fit(row.name, room - width(note)), body)]
    mark = ("▾ " if line.is_open else "▸ ") if line.has_fold else "└ " if line.depth else "  "
    indent = " " * min(line.depth, 3) if cols.is_narrow else "  " * min(line.depth, 6) + mark
    alarm = f"!{row.alarm} " if row.alarm and not line.is_open else ""
    indent = fit(indent, min(width(indent), room))
    alarm = fit(alarm, min(width(alarm), room - width(indent)))
    return [(indent, "dim"), (alarm, "alarm"), (fit(row.name, room - width(indent + alarm)), body)]


def _context(row: Row, cols: Columns) -> list[Piece]:
    """Draw the bar; its figure stands beside it, so that no colour is needed."""
    percent = row.percent
    if percent is None or not cols.percent:
        return [(_right(row.context, cols.bar + cols.percent), "dim")]
    part: Part = "full" if percent >= _FULL else "tight" if percent >= _TIGHT else "fair"
    told: Part = part if part != "fair" else "plain"
    figure = (_right(f"{min(percent, 999):.0f}%", cols.percent), told)
    if not cols.bar:
        return [figure]
    filled = round(min(100.0, max(0.0, percent)) / 100 * _BAR * 8)
    drawn = "█" * (filled // 8) + (_EIGHTHS[filled % 8] if filled % 8 else "")
    return [(" " * (cols.bar - _BAR), "dim"), (drawn, part), ("·" * (_BAR - len(drawn)), "dim"), figure]


def _seen(row: Row, cells: int) -> str:
    """Write which event told, and how long ago; if there is little room, that stays."""
    room = cells - 2 - width(row.ago)
    if not row.seen or room <= 0:
        return " " * cells
    return _text(f"{fit(row.seen, min(room, width(row.seen)))} {row.ago}", cells)


def _text(text: str, cells: int) -> str:
    return f" {fit(text, cells - 1)}" if cells > 1 else " " * cells


def _right(text: str, cells: int) -> str:
    return fit(text, cells) if width(text) > cells else " " * (cells - width(text)) + text


def summary(sums: Totals, cells: int, link: str) -> list[Piece]:
    """Sum everything up in one line, with the state of the connection at its end if there is room."""
    who = "1 waits" if sums.waiting == 1 else f"{sums.waiting} wait"
    about = "≤ " if sums.older else ""
    long: list[Piece] = [
        (f" ! {who} for you" if sums.waiting else " nobody waits for you", "needs" if sums.waiting else "dim"),
        (f"   ● {sums.working} working", "working" if sums.working else "dim"),
        (f"   ○ {sums.idle} idle", "plain"),
        (f"   ~ {sums.stale} stale" if sums.stale else "", "dim"),
        (f"   {about}${sums.today:.2f} today" if sums.today else "", "plain"),
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
