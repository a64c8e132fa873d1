"""The help, made from the table of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from fairlead.tui._keys import GROUPS, shown
from fairlead.tui._rows import SIGNS, WORDS

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Click, Key


def help_text() -> str:
    """Write down every key, and what the signs mean."""
    parts: list[str] = []
    for group, keys in GROUPS.items():
        parts += [group, *(f"  {shown(key):<12} {key.words}" for key in keys), ""]
    parts += ["Signs", *(f"  {SIGNS[mood]:<12} {word}" for mood, word in WORDS.items())]
    return "\n".join(parts)


class HelpScreen(ModalScreen[None]):
    """Shows the help until a key is pressed that does not scroll it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll {
        width: auto; min-width: 20; max-width: 100%; height: auto; max-height: 100%; padding: 0 2;
        border: round $primary; background: $surface; scrollbar-size-vertical: 1;
    }
    HelpScreen Static { width: auto; }
    """

    def compose(self) -> ComposeResult:
        """Put the text into a box."""
        with VerticalScroll():
            yield Static(Text(help_text(), no_wrap=True))

    def on_key(self, event: Key) -> None:
        """Scroll, or close."""
        event.stop()
        event.prevent_default()
        box = self.query_one(VerticalScroll)
        if event.key in ("j", "down", "ctrl+d", "pagedown"):
            box.scroll_relative(y=1 if event.key in ("j", "down") else 8, animate=False)
        elif event.key in ("k", "up", "ctrl+u", "pageup"):
            box.scroll_relative(y=-1 if event.key in ("k", "up") else -8, animate=False)
        else:
            self.dismiss()

    def on_click(self, _event: Click) -> None:
        """Close."""
        self.dismiss()
