"""Widgets that draw lines of styled text: a single line, and scrolling lines. Only changed lines are drawn again.

Textual's own widgets lay out the complete screen whenever the number of lines changes, which happens often here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from fairlead.text import cell_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.events import MouseDown, MouseMove, MouseScrollDown, MouseScrollUp, MouseUp, Resize
    from textual.geometry import Size

    from fairlead.tui.model._layout import StyledText
    from fairlead.tui.widgets._themes import Palette

_WHEEL_LINES = 3


class TextLine(Widget):
    """A widget of one line, such as the summary or the hints."""

    DEFAULT_CSS = "TextLine { height: 1; }"

    def __init__(self, palette: Palette, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._palette = palette
        self._pieces: list[StyledText] = []

    def show(self, pieces: Sequence[StyledText]) -> None:
        """Draw pieces of text, unless they are shown already."""
        new = list(pieces)
        if new != self._pieces:
            self._pieces = new
            self.refresh()

    @property
    def text(self) -> str:
        """The text without its styles."""
        return "".join(text for text, _ in self._pieces)

    def render_line(self, y: int) -> Strip:
        """Return the line as it is drawn."""
        plain = self._palette.style("plain")
        segments = [Segment(text, self._palette.style(name)) for text, name in self._pieces if text and y == 0]
        return Strip(segments).adjust_cell_length(self.size.width, plain)


class ScrollingLines(Widget):
    """Scrolling lines with a scroll bar at the right. A subclass implements `count` and `strip`."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self.palette = palette
        self.top = 0
        """The index of the first visible line."""
        self._drawn: dict[int, Strip] = {}
        """Row of the widget → what is drawn there."""

    @property
    def count(self) -> int:
        """The number of lines."""
        raise NotImplementedError

    def strip(self, index: int, cells: int) -> Strip:
        """Return a line as it is drawn, exactly `cells` cells wide."""
        raise NotImplementedError

    @property
    def cells(self) -> int:
        """The width of a line. One cell is reserved for the scroll bar, so that nothing moves when it appears."""
        return max(0, self.size.width - 1)

    @property
    def last_top(self) -> int:
        """The index of the first visible line after scrolling to the end."""
        return max(0, self.count - self.size.height)

    def scroll_to_line(self, top: int) -> None:
        """Scroll so that the line with this index is the first visible one, or as far as possible."""
        top = max(0, min(self.last_top, top))
        if top != self.top:
            self.top = top
            self.draw_changes()

    def scroll_lines(self, by: int) -> None:
        """Scroll down by `by` lines; up if `by` is negative."""
        self.scroll_to_line(self.top + by)

    def scroll_pages(self, by: int) -> None:
        """Scroll down by `by` pages, each of almost the visible height; up if `by` is negative."""
        self.scroll_lines(by * max(1, self.size.height - 2))

    def draw_changes(self) -> None:
        """Draw the rows of the widget that have changed."""
        width, height = size = self.size  # slow to read
        self.top = max(0, min(self.top, self.count - height))
        for y in range(height):
            if self._drawn.get(y) != (strip := self._row(y, size)):
                self._drawn[y] = strip
                self.refresh(Region(0, y, width, 1))

    def draw_all(self) -> None:
        """Draw everything again."""
        self._drawn.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one row of the widget as it is drawn."""
        strip = self._drawn.get(y)
        if strip is None:
            strip = self._drawn[y] = self._row(y, self.size)
        return strip

    def _row(self, y: int, size: Size) -> Strip:
        index, cells, plain = self.top + y, max(0, size.width - 1), self.palette.style("plain")
        strip = self.strip(index, cells) if index < self.count else Strip.blank(cells, plain)
        return Strip([*strip, self._scroll_bar(y, size.height)], strip.cell_length + 1)

    def _scroll_bar(self, y: int, height: int) -> Segment:
        count = self.count
        if count <= height:
            return Segment(" ", self.palette.style("plain"))
        size = max(1, height * height // count)
        start = round(self.top * (height - size) / max(1, count - height))
        return Segment("┃" if start <= y < start + size else " ", self.palette.style("dim"))

    # -- the mouse -------------------------------------------------------------------------------------

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.scroll_to_line(self.top + _WHEEL_LINES)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.scroll_to_line(self.top - _WHEEL_LINES)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Start dragging the scroll bar."""
        if event.x >= self.cells and self.last_top:
            self.capture_mouse()
            self._drag(event.y)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Scroll to the position to which the scroll bar is dragged."""
        if self.app.mouse_captured is self:
            self._drag(event.y)

    def on_mouse_up(self, _event: MouseUp) -> None:
        """Stop dragging."""
        self.release_mouse()

    def _drag(self, y: int) -> None:
        self.scroll_to_line(round(y * self.last_top / max(1, self.size.height - 1)))


class TextLines(ScrollingLines):
    """Lines of styled text, each cut to the available width."""

    DEFAULT_CSS = "TextLines { height: 1fr; }"

    def __init__(self, palette: Palette, *, follows_end: bool = True) -> None:
        """With `follows_end`, keep the end visible until the user scrolls up; else start at the top."""
        super().__init__(palette)
        self.lines: list[list[StyledText]] = []
        self._follows_end = follows_end

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self.lines)

    def show(self, lines: Sequence[Sequence[StyledText]], *, is_new: bool = False) -> None:
        """Show lines. With `follows_end`, scroll to the end if the content `is_new`, or if the end was visible."""
        to_end = self._follows_end and (is_new or self.top == self.last_top)
        self.lines = [list(line) for line in lines]
        if to_end:
            self.top = self.last_top
        self.draw_changes()

    def strip(self, index: int, cells: int) -> Strip:
        """Return a line as it is drawn, exactly `cells` cells wide."""
        style, line = self.palette.style, self.lines[index]
        strip = Strip([Segment(text, style(name)) for text, name in line if text])
        if cell_width("".join(text for text, _ in line).rstrip()) > cells > 0:
            strip = Strip([*strip.crop(0, cells - 1), Segment("…", style(line[-1][1]))])
        return strip.adjust_cell_length(cells, style("plain"))

    def on_resize(self, _event: Resize) -> None:
        """Draw for the new size, and keep the end visible with `follows_end`."""
        if self._follows_end:
            self.top = self.last_top
        self.draw_all()
