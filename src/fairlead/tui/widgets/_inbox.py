"""The inbox, in which the user reads and answers mail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from fairlead.errors import FairleadError
from fairlead.text import fit, fit_end
from fairlead.tui.model import _inbox as model
from fairlead.tui.widgets._filter import FilterInput
from fairlead.tui.widgets._lines import TextLine, TextLines

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.events import Key

    from fairlead.tui._mail import UserMail
    from fairlead.tui.widgets._themes import Palette

_MOVES = {**dict.fromkeys(("j", "down"), 1), **dict.fromkeys(("k", "up"), -1)}
_SCROLLS = {"J": 1, "shift+down": 1, "K": -1, "shift+up": -1, "pagedown": 8, "pageup": -8}
_MAX_LIST = 0.4
"""The fraction of the screen's height that the list may use."""


class ReplyInput(FilterInput):
    """Edits a reply until Enter sends or Esc discards it."""

    def _draw(self) -> None:
        shown = fit_end(self.value, max(1, self.app.size.width - 11))
        hint = "" if shown else "Enter sends it, Esc drops it"
        self.show([(" reply: ", "needs"), (shown, "plain"), ("▏", "needs"), (hint, "dim")])


class InboxScreen(Screen[None]):
    """Shows a list of messages, and the selected message below it."""

    DEFAULT_CSS = """
    InboxScreen { background: $background; overflow: hidden; }
    InboxScreen #messages { height: auto; }
    """

    def __init__(self, mail: UserMail, palette: Palette, clock: Callable[[], float]) -> None:
        super().__init__()
        self._mail = mail
        self._clock = clock
        self.rows: list[dict[str, Any]] = []
        self.selected = 0
        self._message = ""
        self._title = TextLine(palette, id="title")
        self._list = TextLines(palette, follows_end=False)
        self._list.id = "messages"
        self._rule = TextLine(palette, id="rule")
        self.body = TextLines(palette, follows_end=False)
        self._reply = ReplyInput(palette, id="reply")
        self._hints = TextLine(palette, id="inbox-hints")

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom."""
        yield from (self._title, self._list, self._rule, self.body, self._reply, self._hints)

    def on_mount(self) -> None:
        """Load the mail."""
        self._list.can_focus = True
        self._list.focus()
        self.run_worker(self.load(), group="mail", exclusive=True)

    async def load(self) -> None:
        """Fetch and show the list and the selected message, which is marked as read."""
        try:
            document = await self._mail.inbox()
            self.rows = document["messages"] if document["you"] == "User" else []
        except (FairleadError, KeyError) as error:
            self._message = str(error)
        self.selected = min(self.selected, max(0, len(self.rows) - 1))
        self._draw()
        await self._open()

    async def _open(self) -> None:
        """Show the selected message, which marks it as read."""
        if not self.rows:
            return self.body.show([[(f" {self._message or model.NO_MAIL}", "dim")]])
        row = self.rows[self.selected]
        try:
            document = await self._mail.read(row["id"])
        except FairleadError as error:
            return self.body.show([[(f" {error}", "needs")]])
        if row["stage"] in ("queued", "shown"):
            row["stage"] = "read"
        self.body.top = 0
        self.body.show(model.message_lines(document, self._clock(), max(1, self.size.width - 1)), is_new=True)
        self._draw()
        return None

    def _draw(self) -> None:
        cells, now = self.size.width, self._clock()
        self._title.show(model.title(self.rows, cells))
        height = max(1, min(len(self.rows), int(self.size.height * _MAX_LIST)))
        if self._list.styles.height is None or self._list.styles.height.value != height:
            self._list.styles.height = height
        lines = [
            model.row_line(row, now, max(1, cells - 1), is_selected=index == self.selected)
            for index, row in enumerate(self.rows)
        ]
        self._list.show(lines)
        top = self._list.top
        self._list.scroll_to_line(min(max(top, self.selected - height + 1), self.selected))
        self._rule.show(model.rule("", cells))
        self._hints.show([(fit(f" {self._message}" if self._message else model.HINTS, cells), "dim")])

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._draw()

    def on_key(self, event: Key) -> None:
        """Select, scroll, answer, or go back."""
        if self._reply.display:
            return
        event.stop()
        event.prevent_default()
        self._message = ""
        if event.key in ("escape", "q", "M", "ctrl+c"):
            self.dismiss()
        elif event.key in _MOVES:
            self._move(_MOVES[event.key])
        elif event.key in _SCROLLS or event.character in _SCROLLS:
            self.body.scroll_to_line(
                self.body.top + _SCROLLS[event.key if event.key in _SCROLLS else event.character or ""]
            )
        elif event.key in ("r", "enter") and self.rows:
            self._hints.display = False
            self._reply.edit("")

    def _move(self, by: int) -> None:
        to = max(0, min(len(self.rows) - 1, self.selected + by))
        if to != self.selected:
            self.selected = to
            self._draw()
            self.run_worker(self._open(), group="mail", exclusive=True)

    def on_filter_input_changed(self, event: FilterInput.Changed) -> None:
        """Keep the change of a reply from the application, which would filter the sessions by it."""
        event.stop()

    def on_filter_input_closed(self, event: FilterInput.Closed) -> None:
        """Send the reply, unless it was discarded."""
        event.stop()
        self._hints.display = True
        self._list.focus()
        text = self._reply.value.strip()
        if text and self.rows:
            self.run_worker(self._send(self.rows[self.selected]["id"], text), group="mail")

    async def _send(self, number: int, text: str) -> None:
        try:
            sent = await self._mail.reply(number, text)
            self._message = f"answered #{number}: sent as #{sent['id']}"
        except (FairleadError, KeyError) as error:
            self._message = f"not sent: {error}"
        await self.load()
