"""The prompt line, in which the view asks for a text or a confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from fairlead.text import cell_width, fit_end, one_line
from fairlead.tui.model._keys import edit_text
from fairlead.tui.widgets._lines import TextLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.events import Key, Paste

    Answered = Callable[[str], object]
    """Called with the text, or with the confirming key. Not called if the user cancels, or enters nothing."""

CONFIRM = "y"
_MIN_ROOM = 8


class PromptLine(TextLine, can_focus=True, inherit_bindings=False):
    """Asks one question at a time, in place of the hints."""

    DEFAULT_CSS = "PromptLine { display: none; }"

    class Opened(Message):
        """The prompt has appeared."""

    class Closed(Message):
        """The user has answered or cancelled."""

    value = ""
    _label = ""
    _is_confirmation = False
    _answered: Answered | None = None

    def ask(self, label: str, answered: Answered) -> None:
        """Ask for a text. Enter accepts it, and Esc cancels."""
        self._open(label, answered, is_confirmation=False)

    def confirm(self, question: str, answered: Answered) -> None:
        """Ask for a confirmation. `y` confirms, and any other key cancels."""
        self._open(f"{question} {CONFIRM}/n", answered, is_confirmation=True)

    def _open(self, label: str, answered: Answered, *, is_confirmation: bool) -> None:
        self.value, self._label = "", label
        self._answered, self._is_confirmation = answered, is_confirmation
        self.display = True
        self._draw()
        self.focus()
        self.post_message(self.Opened())

    def on_key(self, event: Key) -> None:
        """Edit the text, confirm, or cancel."""
        event.stop()
        event.prevent_default()
        if self._is_confirmation:
            self._finish(CONFIRM if event.character in (CONFIRM, CONFIRM.upper()) else "")
        elif event.key in ("escape", "ctrl+c"):
            self._finish("")
        elif event.key == "enter":
            self._finish(self.value.strip())
        else:
            self._edit(edit_text(self.value, event.key, event.character))

    def on_paste(self, event: Paste) -> None:
        """Add pasted text as one line. A paste never answers a confirmation."""
        event.stop()
        if not self._is_confirmation:
            self._edit(self.value + one_line(event.text))

    def _edit(self, value: str) -> None:
        self.value = value
        self._draw()

    def _finish(self, answer: str) -> None:
        answered, self._answered = self._answered, None
        self.display = False
        self.post_message(self.Closed())
        if answer and answered is not None:
            answered(answer)

    def _draw(self) -> None:
        cells = self.app.size.width
        label = fit_end(self._label, min(cell_width(self._label), max(1, cells - _MIN_ROOM)))
        shown = fit_end(self.value, max(1, cells - cell_width(label) - 4))
        self.show([(f" {label} ", "needs"), (shown, "plain"), ("▏", "needs")])
