"""Lines of which a part is seen, with a bar at the right that tells which. Only what has changed is drawn again.

The widgets that Textual has for this lay the whole screen out anew whenever the number of lines changes, which here is
all the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from fairlead.text import width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.events import MouseDown, MouseMove, MouseScrollDown, MouseScrollUp, MouseUp, Resize
    from textual.geometry import Size

    from fairlead.tui.model._layout import Piece
    from fairlead.tui.widgets._themes import Palette

_WHEEL = 3


class Scroller(Widget):
    """Shows a part of its lines. Who makes use of it says how many there are, and what each looks like."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self.palette = palette
        self.top = 0
        """The first line that is seen."""
        self._painted: dict[int, Strip] = {}
        """What is on the screen, by its rows."""

    @property
    def count(self) -> int:
        """How many lines there are."""
        raise NotImplementedError

    def strip(self, index: int, cells: int) -> Strip:
        """Draw one of them."""
        raise NotImplementedError

    @property
    def cells(self) -> int:
        """How wide a line is: the bar has its own place, whether it is there or not, so that nothing moves."""
        return max(0, self.size.width - 1)

    @property
    def last_top(self) -> int:
        """How far down one can go."""
        return max(0, self.count - self.size.height)

    def go(self, top: int) -> None:
        """Let another line be the first."""
        top = max(0, min(self.last_top, top))
        if top != self.top:
            self.top = top
            self.draw_changes()

    def draw_changes(self) -> None:
        """Draw those rows of the screen that look otherwise than before."""
        wide, high = size = self.size  # it takes a while to ask
        self.top = max(0, min(self.top, self.count - high))
        for y in range(high):
            if self._painted.get(y) != (strip := self._row(y, size)):
                self._painted[y] = strip
                self.refresh(Region(0, y, wide, 1))

    def draw_all(self) -> None:
        """Draw everything: nothing that was drawn holds."""
        self._painted.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Give one row of the screen."""
        strip = self._painted.get(y)
        if strip is None:
            strip = self._painted[y] = self._row(y, self.size)
        return strip

    def _row(self, y: int, size: Size) -> Strip:
        index, cells, plain = self.top + y, max(0, size.width - 1), self.palette.style("plain")
        strip = self.strip(index, cells) if index < self.count else Strip.blank(cells, plain)
        return Strip([*strip, self._bar(y, size.height)], strip.cell_length + 1)

    def _bar(self, y: int, high: int) -> Segment:
        count = self.count
        if count <= high:
            return Segment(" ", self.palette.style("plain"))
        size = max(1, high * high // count)
        begin = round(self.top * (high - size) / max(1, count - high))
        return Segment("┃" if begin <= y < begin + size else " ", self.palette.style("dim"))

    # -- the mouse -------------------------------------------------------------------------------------

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Go down."""
        event.stop()
        self.go(self.top + _WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Go up."""
        event.stop()
        self.go(self.top - _WHEEL)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Take hold of the bar."""
        if event.x >= self.cells and self.last_top:
            self.capture_mouse()
            self._drag(event.y)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Go where the bar is drawn to."""
        if self.app.mouse_captured is self:
            self._drag(event.y)

    def on_mouse_up(self, _event: MouseUp) -> None:
        """Let go of it."""
        self.release_mouse()

    def _drag(self, y: int) -> None:
        self.go(round(y * self.last_top / max(1, self.size.height - 1)))


class Lines(Scroller):
    """Lines of pieces, each cut where there is no more room."""

    DEFAULT_CSS = "Lines { height: 1fr; }"

    def __init__(self, palette: Palette, *, follows: bool = True) -> None:
        """Keep the end in sight, unless somebody has scrolled up; or do not follow it."""
        super().__init__(palette)
        self.lines: list[list[Piece]] = []
        self._follows = follows

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.lines)

    def show(self, lines: Sequence[Sequence[Piece]], *, is_new: bool = False) -> None:
        """Show these. Who reads further up is left there, unless it is something new."""
        to_end = self._follows and (is_new or self.top == self.last_top)
        self.lines = [list(line) for line in lines]
        if to_end:
            self.top = self.last_top
        self.draw_changes()

    def strip(self, index: int, cells: int) -> Strip:
        """Draw one."""
        style, line = self.palette.style, self.lines[index]
        strip = Strip([Segment(text, style(part)) for text, part in line if text])
        if width("".join(text for text, _ in line).rstrip()) > cells > 0:
            strip = Strip([*strip.crop(0, cells - 1), Segment("…", style(line[-1][1]))])
        return strip.adjust_cell_length(cells, style("plain"))

    def on_resize(self, _event: Resize) -> None:
        """Keep the end in sight if it was."""
        if self._follows:
            self.top = self.last_top
        self.draw_all()
