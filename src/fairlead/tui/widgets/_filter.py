"""The input line of the filter. Textual's own input is not used: it lays out the complete screen for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from fairlead.text import fit_end, one_line
from fairlead.tui.model._keys import edit_text
from fairlead.tui.widgets._lines import TextLine

if TYPE_CHECKING:
    from textual.events import Key, Paste

_HINT = "type words; Enter keeps the filter, Esc clears it"


class FilterInput(TextLine, can_focus=True, inherit_bindings=False):
    """Edits a text, only at its end, until Enter or Esc is pressed. Esc clears the text."""

    DEFAULT_CSS = "FilterInput { display: none; }"

    class Changed(Message):
        """The text has changed."""

        def __init__(self, value: str) -> None:
            super().__init__()
            self.value = value

    class Closed(Message):
        """The user has pressed Enter or Esc."""

    value = ""

    def edit(self, value: str) -> None:
        """Show and focus the input, in which the user edits the text `value`."""
        self.display = True
        self.value = value
        self._draw()
        self.focus()

    def on_key(self, event: Key) -> None:
        """Add or remove characters, or finish."""
        event.stop()
        event.prevent_default()
        if event.key in ("escape", "ctrl+c"):
            self._set_value("")
            self._finish()
        elif event.key == "enter":
            self._finish()
        else:
            self._set_value(edit_text(self.value, event.key, event.character))

    def on_paste(self, event: Paste) -> None:
        """Add pasted text as one line."""
        event.stop()
        self._set_value(self.value + one_line(event.text))

    def _finish(self) -> None:
        self.display = False
        self.post_message(self.Closed())

    def _set_value(self, value: str) -> None:
        if value != self.value:
            self.value = value
            self._draw()
            self.post_message(self.Changed(value))

    def _draw(self) -> None:
        shown = fit_end(self.value, max(1, self.app.size.width - 5))
        self.show([(" / ", "needs"), (shown, "plain"), ("▏", "needs"), ("" if shown else _HINT, "dim")])
