"""The list of all lines. Only what can be seen is computed and drawn, and of that only what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from fairlead.tui.model._keys import KeyReader
from fairlead.tui.model._layout import CURSOR, columns, laid_out
from fairlead.tui.model._rows import row_of
from fairlead.tui.model._tree import Facts, Tree
from fairlead.tui.widgets._scroll import Scroller

if TYPE_CHECKING:
    from textual.events import Click, Key, Resize

    from fairlead.tui.model._layout import Columns
    from fairlead.tui.model._view import Line
    from fairlead.tui.widgets._themes import Palette

_SILENT = frozenset({"heading", "note"})
"""Lines that cannot be chosen."""


class SessionList(Scroller, can_focus=True, inherit_bindings=False):
    """Shows lines of a tree, one of which is chosen."""

    DEFAULT_CSS = "SessionList { width: 1fr; height: 1fr; }"

    class Asked(Message):
        """A key asked for something."""

        def __init__(self, does: str) -> None:
            super().__init__()
            self.does = does

    class Chosen(Message):
        """Another line is chosen."""

    class Resized(Message):
        """There is another room for the lines."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self._keys = KeyReader()
        self._tree = Tree()
        self._lines: list[Line] = []
        self._made: dict[Line, tuple[tuple[Facts, int, Columns, bool, bool], Strip]] = {}
        """The strips of the lines that are seen, and what they were made from."""
        self._index = 0
        self._now = 0
        self._lit = True

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    @property
    def chosen(self) -> Line | None:
        """The line that keys are about."""
        if self._index < len(self._lines) and self._lines[self._index].kind not in _SILENT:
            return self._lines[self._index]
        return None

    @property
    def lines(self) -> list[Line]:
        """All lines."""
        return self._lines

    # -- what is shown ---------------------------------------------------------------------------------

    def show(self, lines: list[Line], tree: Tree, now: float) -> None:
        """Show these lines. The chosen one stays chosen, and where it is on the screen.

        Who looks at the top goes on to do so while the chosen line is in sight: what needs the person comes there.
        """
        before, old, high = self.chosen, self._index, self.size.height
        was_seen = self.top <= old < self.top + high
        self._lines, self._tree, self._now = lines, tree, int(now)
        self._index = self._found(before, old)
        if was_seen and (self.top or self._index >= high):
            self.top = max(0, self.top + self._index - old)
        self.draw_changes()
        if before is None or self.chosen is None or before.key != self.chosen.key:
            self.post_message(self.Chosen())

    def tick(self, now: float, *, is_lit: bool) -> None:
        """Let time pass: only rows that say or look something else are drawn."""
        self._now, self._lit = int(now), is_lit
        self.draw_changes()

    def draw_changes(self) -> None:
        """Draw what has changed, and forget what is not seen any more."""
        super().draw_changes()
        if len(self._made) > 4 * self.size.height + 100:
            self._made.clear()

    def _found(self, before: Line | None, old: int) -> int:
        """Look for the chosen line: it is where it was, or not far from there."""
        lines = self._lines
        if before is None:
            return next((n for n, line in enumerate(lines) if line.kind not in _SILENT), 0)
        kind, name = before.key
        near = range(max(0, old - 50), min(len(lines), old + 50))
        for places in (range(old, min(len(lines), old + 1)), near, range(len(lines))):
            for n in places:
                if lines[n].id == name and lines[n].kind == kind:
                    return n
        return self._nearest(min(old, len(lines) - 1))

    def _nearest(self, index: int) -> int:
        """Give the line itself, or the next that can be chosen."""
        ways = (*range(index, len(self._lines)), *range(index, -1, -1))
        return next((n for n in ways if self._lines[n].kind not in _SILENT), 0)

    def strip(self, index: int, cells: int) -> Strip:
        """Draw a line, unless nothing has changed that it is made from. Time counts in whole seconds."""
        line = self._lines[index]
        is_chosen = index == self._index and line.kind not in _SILENT
        is_lit = self._lit and line.kind == "need"
        cols = columns(cells, has_usage=self._tree.has_usage)
        made_from = (self._tree.facts(line), self._now, cols, is_chosen, is_lit)
        known = self._made.get(line)
        if known is not None and known[0] == made_from:
            return known[1]
        strip = self._drawn(made_from[0], cols, is_chosen=is_chosen, is_lit=is_lit)
        self._made[line] = made_from, strip
        return strip

    def _drawn(self, facts: Facts, cols: Columns, *, is_chosen: bool, is_lit: bool) -> Strip:
        row = row_of(facts, self._now)
        style = self.palette.style
        pieces = laid_out(row, cols)
        if is_chosen and pieces[0][0].startswith(" "):
            pieces[:1] = [(CURSOR, "group"), (pieces[0][0][1:], pieces[0][1])]
        is_lit = is_lit and row.blinks
        made = [Segment(text, style(part, is_chosen=is_chosen, is_lit=is_lit)) for text, part in pieces if text]
        return Strip(made).adjust_cell_length(cols.width, style("plain", is_chosen=is_chosen))

    def on_resize(self, _event: Resize) -> None:
        """Nothing that was drawn for another width holds."""
        self.draw_all()
        self.keep_in_sight()
        self.post_message(self.Resized())

    # -- moving ----------------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Choose a line further down or up, over those that cannot be chosen."""
        step = 1 if by > 0 else -1
        goal = max(0, min(len(self._lines) - 1, self._index + by))
        while 0 <= goal < len(self._lines) and self._lines[goal].kind in _SILENT:
            goal += step
        self.choose(goal if 0 <= goal < len(self._lines) else self._nearest(0 if step < 0 else len(self._lines) - 1))

    def choose(self, index: int) -> None:
        """Choose a line, and bring it into sight."""
        is_other = index != self._index and 0 <= index < len(self._lines) and self._lines[index].kind not in _SILENT
        if is_other:
            self._index = index
        self.keep_in_sight()
        self.draw_changes()
        if is_other:
            self.post_message(self.Chosen())

    def choose_above(self) -> None:
        """Choose the line to which the chosen one belongs."""
        line = self.chosen
        if line is None or line.kind in ("need", "project"):
            return
        for index in range(self._index - 1, -1, -1):
            other = self._lines[index]
            if other.kind in ("project", "worktree") and (line.kind == "session" or other.kind == "project"):
                break
            if other.kind == "session" and line.kind == "session" and other.depth < line.depth:
                break
        else:
            return
        self.choose(index)

    def choose_need(self, step: int) -> None:
        """Choose the next line of those that need the person, round and round."""
        found = [n for n, line in enumerate(self._lines) if line.kind == "need"]
        if not found:
            return
        after = [n for n in found if (n > self._index if step > 0 else n < self._index)]
        self.choose((after or found)[0 if step > 0 else -1])

    def keep_in_sight(self) -> None:
        """Scroll as little as is needed; with the first line that can be chosen, its heading is seen, too."""
        height = max(1, self.size.height)
        first = 0 if self._index <= 1 < height else self._index
        if first < self.top:
            self.go(first)
        elif self._index >= self.top + height:
            self.go(self._index - height + 1)

    # -- the person ------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Read a key, which may be the first half of two."""
        does = self._keys.read(event.key, event.character)
        if does is None:
            return
        event.stop()
        event.prevent_default()
        if does:
            self.post_message(self.Asked(does))

    def on_click(self, event: Click) -> None:
        """Choose what was clicked."""
        if event.x < self.cells:
            self.choose(self.top + event.y)
