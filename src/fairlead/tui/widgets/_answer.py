"""The dialog in which the user answers a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container
from textual.screen import ModalScreen

from fairlead.text import fit
from fairlead.tui.model._answering import Effect
from fairlead.tui.widgets._lines import TextLine, TextLines

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Key, Paste, Resize

    from fairlead.tui.model._answering import AnswerForm
    from fairlead.tui.widgets._themes import Palette

_MAX_WIDTH = 120
_HORIZONTAL_FRAME = 4
"""The width of the dialog without its text, in cells: the border, and one cell on each side."""
_VERTICAL_FRAME = 5
"""The height of the dialog without its text, in lines: the border, the title, the keys and an empty line."""
_SCROLL = {"J": 1, "down": 1, "K": -1, "up": -1, "ctrl+f": 8, "pagedown": 8, "ctrl+b": -8, "pageup": -8}


class AnswerScreen(ModalScreen[Effect]):
    """Shows one question until it is answered or closed. The result is the effect of the last key."""

    DEFAULT_CSS = """
    AnswerScreen { align: center middle; }
    AnswerScreen Container {
        width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        border: round $primary; background: $background;
    }
    AnswerScreen TextLines { max-width: 100%; max-height: 100%; }
    """

    def __init__(self, palette: Palette, form: AnswerForm, title: str) -> None:
        super().__init__()
        self.form = form
        self._title_text = title
        self._title_line = TextLine(palette, id="answer-title")
        self._lines = TextLines(palette, follows_end=False)
        self._empty = TextLine(palette, id="answer-empty")
        self._prompt = TextLine(palette, id="answer-prompt")

    def compose(self) -> ComposeResult:
        """Yield title, question and keys in a box."""
        with Container():
            yield self._title_line
            yield self._lines
            yield self._empty
            yield self._prompt

    def on_resize(self, event: Resize) -> None:
        """Lay out the text for the new size."""
        self._draw(event.size.width, event.size.height)

    def _draw(self, width: int, height: int) -> None:
        cells = max(8, min(width, _MAX_WIDTH) - _HORIZONTAL_FRAME)
        lines = self.form.lines(cells - 1)
        self._lines.styles.height = max(1, min(len(lines), height - _VERTICAL_FRAME))
        for widget in (self._title_line, self._lines, self._empty, self._prompt):
            widget.styles.width = cells
        self._title_line.show([(fit(self._title_text, cells), "group")])
        self._lines.show(lines)
        self._prompt.show(self.form.prompt(cells))

    def on_key(self, event: Key) -> None:
        """Scroll the question, or pass the key to the form."""
        event.stop()
        event.prevent_default()
        is_typing = self.form.mode in ("text", "reason")
        key = event.character if event.character and event.is_printable else event.key
        if key in _SCROLL and not is_typing:
            self._lines.scroll_to_line(self._lines.top + _SCROLL[key])
            return
        effect = self.form.press(key if not is_typing else event.key, event.character)
        if effect:
            self.dismiss(effect)
        else:
            self._draw(*self.app.size)

    def on_paste(self, event: Paste) -> None:
        """Add pasted text to a reason or an answer."""
        event.stop()
        self.form.paste(event.text)
        self._draw(*self.app.size)
