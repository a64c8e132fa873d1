"""The list of all lines. Only what can be seen is computed and drawn, and of that only what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fairlead.tui._keys import KeyReader
from fairlead.tui._layout import columns, laid_out
from fairlead.tui._rows import row_of
from fairlead.tui._tree import Tree

if TYPE_CHECKING:
    from textual.events import Click, Key, Resize

    from fairlead.tui._themes import Palette
    from fairlead.tui._view import Line

_SILENT = frozenset({"heading", "note"})
"""Lines that cannot be chosen."""


class SessionList(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows lines of a tree, one of which is chosen."""

    DEFAULT_CSS = """
    SessionList { width: 1fr; height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """

    class Asked(Message):
        """A key asked for something."""

        def __init__(self, does: str) -> None:
            super().__init__()
            self.does = does

    class Chosen(Message):
        """Another line is chosen."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._keys = KeyReader()
        self._tree = Tree()
        self._lines: list[Line] = []
        self._painted: dict[int, Strip] = {}
        """What is on the screen, by its lines."""
        self._fresh: dict[int, Strip] = {}
        """What was computed to find out what has changed, and not drawn yet."""
        self._index = 0
        self._now = 0.0
        self._lit = True

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
        """Show these lines. The chosen one stays chosen, and where it is on the screen."""
        before, old, top = self.chosen, self._index, self.scroll_offset.y
        self._lines, self._tree, self._now = lines, tree, now
        self._index = self._found(before, old)
        if len(lines) != self.virtual_size.height:
            self.virtual_size = Size(0, len(lines))
        if self._index != old and top <= old < top + self.size.height:
            self.scroll_to(y=max(0, top + self._index - old), animate=False, force=True)
        self._draw_changes()
        if before is None or self.chosen is None or before.key != self.chosen.key:
            self.post_message(self.Chosen())

    def tick(self, now: float, *, is_lit: bool) -> None:
        """Let time pass: only rows that say or look something else are drawn."""
        self._now, self._lit = now, is_lit
        self._draw_changes()

    def _found(self, before: Line | None, old: int) -> int:
        lines = self._lines
        if before is None:
            return next((n for n, line in enumerate(lines) if line.kind not in _SILENT), 0)
        if old < len(lines) and lines[old].key == before.key:
            return old
        kind, name = before.key
        same = next((n for n, line in enumerate(lines) if line.id == name and line.kind == kind), None)
        if same is not None:
            return same
        return self._nearest(min(old, len(lines) - 1))

    def _nearest(self, index: int) -> int:
        """Give the line itself, or the next that can be chosen."""
        ways = (*range(index, len(self._lines)), *range(index, -1, -1))
        return next((n for n in ways if self._lines[n].kind not in _SILENT), 0)

    def _draw_changes(self) -> None:
        top = self.scroll_offset.y
        self._fresh.clear()
        for y in range(self.size.height):
            strip = self._fresh[top + y] = self._strip(top + y)
            if self._painted.get(y) != strip:
                self.refresh_line(top + y)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        index = self.scroll_offset.y + y
        strip = self._fresh.pop(index) if index in self._fresh else self._strip(index)
        self._painted[y] = strip
        return strip

    def _strip(self, index: int) -> Strip:
        cells = self.scrollable_content_region.width
        if index >= len(self._lines):
            return Strip.blank(cells, self._palette.style("plain"))
        is_chosen = index == self._index
        row = row_of(self._lines[index], self._tree, self._now)
        is_lit = row.blinks and self._lit
        style = self._palette.style
        pieces = laid_out(row, columns(cells))
        made = [Segment(text, style(part, is_chosen=is_chosen, is_lit=is_lit)) for text, part in pieces if text]
        return Strip(made).adjust_cell_length(cells, style("plain", is_chosen=is_chosen))

    def on_resize(self, _event: Resize) -> None:
        """Nothing that was drawn for another width holds."""
        self._painted.clear()
        self._fresh.clear()
        self.keep_in_sight()

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
        if not (0 <= index < len(self._lines)) or self._lines[index].kind in _SILENT or index == self._index:
            self.keep_in_sight()
            return
        old, self._index = self._index, index
        self._fresh.clear()
        self.refresh_line(old)
        self.refresh_line(index)
        self.keep_in_sight()
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
        top, height = self.scroll_offset.y, max(1, self.size.height)
        first = 0 if self._index <= 1 else self._index
        if first < top:
            self.scroll_to(y=first, animate=False, force=True)
        elif self._index >= top + height:
            self.scroll_to(y=self._index - height + 1, animate=False, force=True)

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
        self.choose(self.scroll_offset.y + event.y)
