"""The list of sessions. Only the texts of visible lines are computed, and only changed lines are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from fairlead.tui.model._keys import KeyReader
from fairlead.tui.model._layout import CURSOR, columns, layout_row
from fairlead.tui.model._rows import make_row
from fairlead.tui.model._tree import LineData, SessionTree
from fairlead.tui.widgets._lines import ScrollingLines

if TYPE_CHECKING:
    from textual.events import Click, Key, Resize

    from fairlead.tui.model._layout import Columns
    from fairlead.tui.model._view import Line
    from fairlead.tui.widgets._themes import Palette

_NOT_SELECTABLE = frozenset({"heading", "note"})


class SessionList(ScrollingLines, can_focus=True, inherit_bindings=False):
    """Shows the lines of a tree, one of which is selected."""

    DEFAULT_CSS = "SessionList { width: 1fr; height: 1fr; }"

    class ActionRequested(Message):
        """A key has requested an action."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    class SelectionChanged(Message):
        """Another line is selected."""

    class Resized(Message):
        """The size of the list has changed."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self._keys = KeyReader()
        self._tree = SessionTree()
        self._lines: list[Line] = []
        self._strips: dict[Line, tuple[tuple[LineData, int, Columns, bool, bool], Strip]] = {}
        """Line → the data from which it was drawn last, and the result."""
        self._index = 0
        self._now = 0
        self._is_lit = True

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    @property
    def selected(self) -> Line | None:
        """The selected line; `None` if no line can be selected."""
        if self._index < len(self._lines) and self._lines[self._index].kind not in _NOT_SELECTABLE:
            return self._lines[self._index]
        return None

    @property
    def lines(self) -> list[Line]:
        """All lines."""
        return self._lines

    # -- drawing ---------------------------------------------------------------------------------------

    def show(self, lines: list[Line], tree: SessionTree, now: float) -> None:
        """Show lines. The selected line stays selected, and keeps its position on the screen.

        A list at the top stays there while the selected line is visible: sessions that need the user appear there.
        """
        before, old_index, height = self.selected, self._index, self.size.height
        was_visible = self.top <= old_index < self.top + height
        self._lines, self._tree, self._now = lines, tree, int(now)
        self._index = self._find(before, old_index)
        if was_visible and (self.top or self._index >= height):
            self.top = max(0, self.top + self._index - old_index)
        self.draw_changes()
        if before is None or self.selected is None or before.key != self.selected.key:
            self.post_message(self.SelectionChanged())

    def tick(self, now: float, *, is_lit: bool) -> None:
        """Draw the rows that have changed with time. `is_lit` is whether blinking lines are in their bright phase."""
        self._now, self._is_lit = int(now), is_lit
        self.draw_changes()

    def draw_changes(self) -> None:
        """Draw the changed rows, and discard cached strips if there are too many."""
        super().draw_changes()
        if len(self._strips) > 4 * self.size.height + 100:
            self._strips.clear()

    def _find(self, before: Line | None, old_index: int) -> int:
        """Return the new index of the line `before`, or of a line near `old_index` if it is gone.

        For `None`, return the index of the first line that can be selected.
        """
        lines = self._lines
        if before is None:
            return next((n for n, line in enumerate(lines) if line.kind not in _NOT_SELECTABLE), 0)
        kind, name = before.key
        near = range(max(0, old_index - 50), min(len(lines), old_index + 50))
        for indexes in (range(old_index, min(len(lines), old_index + 1)), near, range(len(lines))):
            for n in indexes:
                if lines[n].id == name and lines[n].kind == kind:
                    return n
        return self._nearest(min(old_index, len(lines) - 1))

    def _nearest(self, index: int) -> int:
        """Return the index of the next line that can be selected, from this one on, else of the previous one.

        0 if no line can be selected.
        """
        candidates = (*range(index, len(self._lines)), *range(index, -1, -1))
        return next((n for n in candidates if self._lines[n].kind not in _NOT_SELECTABLE), 0)

    def strip(self, index: int, cells: int) -> Strip:
        """Return a line as it is drawn, from the cache while its data and the second are the same."""
        line = self._lines[index]
        is_selected = index == self._index and line.kind not in _NOT_SELECTABLE
        is_lit = self._is_lit and line.kind == "attention"
        cols = columns(cells, has_usage=self._tree.has_usage)
        drawn_from = (self._tree.data(line), self._now, cols, is_selected, is_lit)
        known = self._strips.get(line)
        if known is not None and known[0] == drawn_from:
            return known[1]
        strip = self._draw(drawn_from[0], cols, is_selected=is_selected, is_lit=is_lit)
        self._strips[line] = drawn_from, strip
        return strip

    def _draw(self, data: LineData, cols: Columns, *, is_selected: bool, is_lit: bool) -> Strip:
        row = make_row(data, self._now)
        style = self.palette.style
        pieces = layout_row(row, cols)
        if is_selected and pieces[0][0].startswith(" "):
            pieces[:1] = [(CURSOR, "group"), (pieces[0][0][1:], pieces[0][1])]
        is_lit = is_lit and row.blinks
        segments = [Segment(text, style(name, is_selected=is_selected, is_lit=is_lit)) for text, name in pieces if text]
        return Strip(segments).adjust_cell_length(cols.width, style("plain", is_selected=is_selected))

    def on_resize(self, _event: Resize) -> None:
        """Draw everything for the new width."""
        self.draw_all()
        self._scroll_to_selected()
        self.post_message(self.Resized())

    # -- selecting -------------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Select the line `by` lines further down; up if `by` is negative. Skip lines that cannot be selected."""
        step = 1 if by > 0 else -1
        goal = max(0, min(len(self._lines) - 1, self._index + by))
        while 0 <= goal < len(self._lines) and self._lines[goal].kind in _NOT_SELECTABLE:
            goal += step
        self.select(goal if 0 <= goal < len(self._lines) else self._nearest(0 if step < 0 else len(self._lines) - 1))

    def select(self, index: int) -> None:
        """Select the line with this index if it can be selected, and scroll to the selected line."""
        is_valid = 0 <= index < len(self._lines) and self._lines[index].kind not in _NOT_SELECTABLE
        is_other = is_valid and index != self._index
        if is_other:
            self._index = index
        self._scroll_to_selected()
        self.draw_changes()
        if is_other:
            self.post_message(self.SelectionChanged())

    def select_parent(self) -> None:
        """Select the line that the selected line is below: a parent session, worktree, project or host."""
        line = self.selected
        if line is None or line.kind in ("attention", "host") or (line.kind == "project" and not line.depth):
            return
        for index in range(self._index - 1, -1, -1):
            other = self._lines[index]
            if line.kind == "project":
                if other.kind == "host":
                    break
                continue
            if other.kind in ("project", "worktree") and (line.kind == "session" or other.kind == "project"):
                break
            if other.kind == "session" and line.kind == "session" and other.depth < line.depth:
                break
        else:
            return
        self.select(index)

    def select_attention(self, step: int) -> None:
        """Select the next line that needs the user; the previous one if `step` is negative. Wraps around."""
        indexes = [n for n, line in enumerate(self._lines) if line.kind == "attention"]
        if not indexes:
            return
        further = [n for n in indexes if (n > self._index if step > 0 else n < self._index)]
        self.select((further or indexes)[0 if step > 0 else -1])

    def _scroll_to_selected(self) -> None:
        """Scroll to the selected line, as little as needed. The heading above the first session is shown with it."""
        height = max(1, self.size.height)
        first = 0 if self._index <= 1 < height else self._index
        if first < self.top:
            self.scroll_to_line(first)
        elif self._index >= self.top + height:
            self.scroll_to_line(self._index - height + 1)

    # -- input -----------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Request the action of a key or sequence of keys. A key without an action is left to other widgets."""
        action = self._keys.read(event.key, event.character)
        if action is None:
            return
        event.stop()
        event.prevent_default()
        if action:
            self.post_message(self.ActionRequested(action))

    def on_click(self, event: Click) -> None:
        """Select the clicked line."""
        if event.x < self.cells:
            self.select(self.top + event.y)
