"""The panel beside the list: a session's events, or the last lines of its pane. Text only, no markup."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from textual.containers import Vertical

from fairlead.text import fit, width
from fairlead.tui.widgets._bar import Bar
from fairlead.tui.widgets._scroll import Lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.events import Resize

    from fairlead.tui.model._layout import Piece
    from fairlead.tui.widgets._themes import Palette

_KEYS = "J K scroll "


class Panel(Vertical):
    """A title and lines below it, the last of them in sight until somebody scrolls up."""

    DEFAULT_CSS = """
    Panel { display: none; width: 45%; border-left: solid $panel; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._title = Bar(palette, id="title")
        self._lines = Lines(palette)
        self._about = self._message = ""

    def compose(self) -> ComposeResult:
        """Put the title above the lines."""
        yield self._title
        yield self._lines

    def show(self, title: str, lines: Sequence[Sequence[Piece]]) -> None:
        """Show these lines under this title. Another title is another thing, and begins at its end."""
        is_new, self._about, self._message = title != self._about, title, ""
        self._lines.show(lines, is_new=is_new)
        self._draw_title()

    def say(self, title: str, message: str) -> None:
        """Show a message instead of lines, whole."""
        self.show(title, [[(f" {line}", "needs")] for line in wrap(message, max(10, self._lines.cells - 1))])
        self._message = message

    def scroll(self, by: int) -> None:
        """Go down or up by so many lines."""
        self._lines.go(self._lines.top + by)

    def scroll_page(self, way: int) -> None:
        """Go down or up by nearly as much as is seen."""
        self.scroll(way * max(1, self._lines.size.height - 2))

    def on_resize(self, _event: Resize) -> None:
        """Fit the title in, and the message."""
        self._draw_title()
        if self._message:
            self.say(self._about, self._message)

    def _draw_title(self) -> None:
        cells = self._title.size.width
        keys = _KEYS if self._lines.last_top and cells > width(_KEYS) + 20 else ""
        self._title.show([(fit(f" {self._about}", cells - width(keys)), "group"), (keys, "dim")])

    @property
    def text(self) -> str:
        """What the lines say."""
        return "\n".join("".join(piece for piece, _ in line) for line in self._lines.lines)
