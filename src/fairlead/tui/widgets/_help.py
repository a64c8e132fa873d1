"""The help screen, generated from the table of keys."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.containers import Container
from textual.screen import ModalScreen

from fairlead.text import cell_width, fit
from fairlead.tui.model._keys import GROUPS, key_label
from fairlead.tui.model._rows import LABELS, SYMBOLS
from fairlead.tui.widgets._lines import TextLines

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Click, Key, Resize

    from fairlead.tui.model._keys import Key as TableKey
    from fairlead.tui.model._layout import StyledText
    from fairlead.tui.widgets._themes import Palette

_COLUMN_WIDTH = 37
_KEYS_WIDTH = 13
_FIRST_COLUMN = ("Move", "Fold", "Panel (p, t), or what is asked")
"""The groups of the first column; the others are in the second."""

_SCROLL = {
    **dict.fromkeys(("j", "down"), 1),
    **dict.fromkeys(("k", "up"), -1),
    **dict.fromkeys(("ctrl+d", "pagedown"), 8),
    **dict.fromkeys(("ctrl+u", "pageup"), -8),
}
"""Key → lines to scroll by."""


def help_lines(cells: int) -> list[list[StyledText]]:
    """Return all keys with their descriptions, and the meaning of the symbols, in two columns if there is room."""
    left = [line for name, keys in GROUPS.items() if name in _FIRST_COLUMN for line in _group_lines(name, keys)]
    right = [line for name, keys in GROUPS.items() if name not in _FIRST_COLUMN for line in _group_lines(name, keys)]
    symbols: list[StyledText] = [(f"{SYMBOLS[state]} {label}  ", "plain") for state, label in LABELS.items()]
    if cells < 2 * _COLUMN_WIDTH:
        return [*left, *right, *([symbol] for symbol in symbols)]
    empty: list[StyledText] = [(" " * _COLUMN_WIDTH, "plain")]
    return [*([*one, *other] for one, other in zip_longest(left, right, fillvalue=empty)), symbols]


def _group_lines(name: str, keys: tuple[TableKey, ...]) -> list[list[StyledText]]:
    """Return the lines of a group, each as wide as a column, followed by an empty line."""
    lines: list[list[StyledText]] = [[(fit(name, _COLUMN_WIDTH), "group")]]
    for key in keys:
        description = fit(key.description, _COLUMN_WIDTH - _KEYS_WIDTH)
        lines.append([(fit(f" {key_label(key)}", _KEYS_WIDTH), "needs"), (description, "plain")])
    return [*lines, [(" " * _COLUMN_WIDTH, "plain")]]


class HelpScreen(ModalScreen[None]):
    """Shows the help. Any key that does not scroll closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen Container {
        width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        border: round $primary; background: $background;
    }
    HelpScreen TextLines { max-width: 100%; max-height: 100%; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._lines = TextLines(palette, follows_end=False)

    def compose(self) -> ComposeResult:
        """Yield the text in a box."""
        with Container():
            yield self._lines

    def on_resize(self, event: Resize) -> None:
        """Lay out the text for the new size."""
        lines = help_lines(event.size.width - 5)
        self._lines.styles.height = min(len(lines), max(1, event.size.height - 2))
        self._lines.styles.width = 1 + max(cell_width("".join(text for text, _ in line)) for line in lines)
        self._lines.show(lines)

    def on_key(self, event: Key) -> None:
        """Scroll the help, or close it."""
        event.stop()
        event.prevent_default()
        if event.key in _SCROLL:
            self._lines.scroll_to_line(self._lines.top + _SCROLL[event.key])
        else:
            self.dismiss()

    def on_click(self, _event: Click) -> None:
        """Close the help."""
        self.dismiss()
