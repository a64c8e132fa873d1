"""Where a filter is typed: one line, edited at its end. Textual's own would lay the screen out anew for each letter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from fairlead.text import fit_end, harmless
from fairlead.tui.widgets._bar import Bar

if TYPE_CHECKING:
    from textual.events import Key, Paste

_HINT = "words; Enter keeps them, Esc shows all again"


class FilterBox(Bar, can_focus=True, inherit_bindings=False):
    """Takes letters until Enter or Esc."""

    DEFAULT_CSS = "FilterBox { display: none; }"

    class Changed(Message):
        """Something else is typed there."""

        def __init__(self, value: str) -> None:
            super().__init__()
            self.value = value

    class Left(Message):
        """It is typed."""

    value = ""

    def ask(self, value: str) -> None:
        """Let the person go on from here."""
        self.display = True
        self.value = value
        self._draw()
        self.focus()

    def leave(self) -> None:
        """Have it typed."""
        self.display = False
        self.post_message(self.Left())

    def on_key(self, event: Key) -> None:
        """Take a letter, or take some back."""
        event.stop()
        event.prevent_default()
        if event.key in ("escape", "ctrl+c"):
            self._become("")
            self.leave()
        elif event.key == "enter":
            self.leave()
        elif event.key in ("backspace", "ctrl+h"):
            self._become(self.value[:-1])
        elif event.key == "ctrl+w":
            self._become(self.value.rstrip().rpartition(" ")[0])
        elif event.key == "ctrl+u":
            self._become("")
        elif event.character and event.is_printable:
            self._become(self.value + event.character)

    def on_paste(self, event: Paste) -> None:
        """Take what is pasted, as one line."""
        event.stop()
        self._become(self.value + harmless(event.text))

    def _become(self, value: str) -> None:
        if value != self.value:
            self.value = value
            self._draw()
            self.post_message(self.Changed(value))

    def _draw(self) -> None:
        shown = fit_end(self.value, max(1, self.app.size.width - 5))
        self.show([(" / ", "needs"), (shown, "plain"), ("▏", "needs"), ("" if shown else _HINT, "dim")])
