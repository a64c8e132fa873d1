"""The help, made from the table of keys."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.containers import Container
from textual.screen import ModalScreen

from fairlead.text import fit, width
from fairlead.tui.model._keys import GROUPS, shown
from fairlead.tui.model._rows import SIGNS, WORDS
from fairlead.tui.widgets._scroll import Lines

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Click, Key, Resize

    from fairlead.tui.model._keys import Key as OfTable
    from fairlead.tui.model._layout import Piece
    from fairlead.tui.widgets._themes import Palette

_COLUMN = 37
_LEFT = ("Move", "Fold")
"""The groups that stand in the first column; the others stand in the second."""

_PAGE = 8


def help_lines(cells: int) -> list[list[Piece]]:
    """Write down every key, and what the signs mean: in two columns if there is room."""
    left = [line for name, keys in GROUPS.items() if name in _LEFT for line in _group(name, keys)]
    right = [line for name, keys in GROUPS.items() if name not in _LEFT for line in _group(name, keys)]
    signs: list[Piece] = [(f"{SIGNS[mood]} {word}  ", "plain") for mood, word in WORDS.items()]
    if cells < 2 * _COLUMN:
        return [*left, *right, *([sign] for sign in signs)]
    none: list[Piece] = [(" " * _COLUMN, "plain")]
    return [*([*one, *other] for one, other in zip_longest(left, right, fillvalue=none)), signs]


def _group(name: str, keys: tuple[OfTable, ...]) -> list[list[Piece]]:
    """Give the lines of a group, each as wide as a column, and one that is empty."""
    lines: list[list[Piece]] = [[(fit(name, _COLUMN), "group")]]
    lines += [[(fit(f" {shown(key)}", 13), "needs"), (fit(key.words, _COLUMN - 13), "plain")] for key in keys]
    return [*lines, [(" " * _COLUMN, "plain")]]


class HelpScreen(ModalScreen[None]):
    """Shows the help until a key is pressed that does not scroll it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen Container {
        width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        border: round $primary; background: $background;
    }
    HelpScreen Lines { max-width: 100%; max-height: 100%; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._lines = Lines(palette, follows=False)

    def compose(self) -> ComposeResult:
        """Put the text into a box."""
        with Container():
            yield self._lines

    def on_resize(self, event: Resize) -> None:
        """Use the room that there is."""
        lines = help_lines(event.size.width - 5)
        self._lines.styles.height = min(len(lines), max(1, event.size.height - 2))
        self._lines.styles.width = 1 + max(width("".join(text for text, _ in line)) for line in lines)
        self._lines.show(lines)

    def on_key(self, event: Key) -> None:
        """Scroll, or close."""
        event.stop()
        event.prevent_default()
        if event.key in ("j", "down", "ctrl+d", "pagedown"):
            self._lines.go(self._lines.top + (1 if event.key in ("j", "down") else _PAGE))
        elif event.key in ("k", "up", "ctrl+u", "pageup"):
            self._lines.go(self._lines.top - (1 if event.key in ("k", "up") else _PAGE))
        else:
            self.dismiss()

    def on_click(self, _event: Click) -> None:
        """Close."""
        self.dismiss()
