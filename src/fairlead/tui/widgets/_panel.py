"""The panel beside the list: a session's events, or the last lines of its pane. Text only, no markup."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from textual.containers import Vertical

from fairlead.text import cell_width, fit
from fairlead.tui.widgets._lines import TextLine, TextLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.events import Resize

    from fairlead.tui.model._layout import StyledText
    from fairlead.tui.widgets._themes import Palette

SCROLL_HINT = "J K scroll "
"""The hint that is shown if the lines do not fit; see the table of keys."""


class Panel(Vertical):
    """A title with lines below it. The last line is visible until the user scrolls up."""

    DEFAULT_CSS = """
    Panel { display: none; width: 45%; border-left: solid $panel; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._title_line = TextLine(palette, id="title")
        self.lines = TextLines(palette)
        self._title_text = self._message = ""

    def compose(self) -> ComposeResult:
        """Yield the title and the lines."""
        yield self._title_line
        yield self.lines

    def show(self, title: str, lines: Sequence[Sequence[StyledText]]) -> None:
        """Show lines under a title. If the title changes, the panel scrolls to the end."""
        is_new, self._title_text, self._message = title != self._title_text, title, ""
        self.lines.show(lines, is_new=is_new)
        self._draw_title()

    def show_message(self, title: str, message: str) -> None:
        """Show a wrapped message instead of lines."""
        self.show(title, [[(f" {line}", "needs")] for line in wrap(message, max(10, self.lines.cells - 1))])
        self._message = message

    def on_resize(self, _event: Resize) -> None:
        """Fit the title and the message into the new size."""
        self._draw_title()
        if self._message:
            self.show_message(self._title_text, self._message)

    def _draw_title(self) -> None:
        cells = self._title_line.size.width
        hint = SCROLL_HINT if self.lines.last_top and cells > cell_width(SCROLL_HINT) + 20 else ""
        self._title_line.show([(fit(f" {self._title_text}", cells - cell_width(hint)), "group"), (hint, "dim")])

    @property
    def text(self) -> str:
        """The text of the lines."""
        return "\n".join("".join(piece for piece, _ in line) for line in self.lines.lines)
