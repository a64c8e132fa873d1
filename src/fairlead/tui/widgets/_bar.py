"""One line of pieces with their parts: the summary, the headings, the details, the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.tui.model._layout import Piece
    from fairlead.tui.widgets._themes import Palette


class Bar(Widget):
    """Shows one line, and draws it again only if it says something else."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, palette: Palette, *, id: str) -> None:  # noqa: A002 - Textual's own word
        super().__init__(id=id)
        self._palette = palette
        self._pieces: list[Piece] = []

    def show(self, pieces: Sequence[Piece]) -> None:
        """Say this from now on."""
        new = list(pieces)
        if new != self._pieces:
            self._pieces = new
            self.refresh()

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(text for text, _ in self._pieces)

    def render_line(self, y: int) -> Strip:
        """Draw it."""
        plain = self._palette.style("plain")
        made = [Segment(text, self._palette.style(part)) for text, part in self._pieces if text and y == 0]
        return Strip(made).adjust_cell_length(self.size.width, plain)
