"""The panel beside the list: a session's events, or the last lines of its pane. Text only, no markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from fairlead.tui._bar import Bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from fairlead.tui._layout import Piece
    from fairlead.tui._themes import Palette


class Panel(Vertical):
    """A title and lines below it, the last of them in sight."""

    DEFAULT_CSS = """
    Panel { display: none; width: 45%; border-left: solid $panel; }
    Panel VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    Panel Static { width: 1fr; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._lines: list[list[Piece]] = []

    def compose(self) -> ComposeResult:
        """Make the title and the lines."""
        yield Bar(self._palette, id="title")
        with VerticalScroll(can_focus=False):
            yield Static(id="lines")

    def show(self, title: str, lines: Sequence[Sequence[Piece]]) -> None:
        """Show these lines under this title."""
        self.query_one("#title", Bar).show([(f" {title}", "group")])
        if (new := [list(line) for line in lines]) == self._lines:
            return
        self._lines = new
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        for number, line in enumerate(new):
            text.append("\n" if number else "")
            for piece, part in line:
                text.append(piece, self._palette.style(part))
        self.query_one("#lines", Static).update(text)
        self.query_one(VerticalScroll).scroll_end(animate=False)

    @property
    def text(self) -> str:
        """What the lines say."""
        return "\n".join("".join(piece for piece, _ in line) for line in self._lines)
