"""Every key, in one table: what the view does with it, what the help says, what the last line shows. No screen."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """One thing to do, and how to ask for it."""

    keys: tuple[str, ...]
    """As the terminal names them; two that follow one another have a space between."""
    does: str
    """The name of the action."""
    words: str
    hint: str = ""
    """Said in the last line of the view; "" if it has no place there."""


GROUPS: dict[str, tuple[Key, ...]] = {
    "Move": (
        Key(("j", "down"), "down", "next line"),
        Key(("k", "up"), "up", "line before"),
        Key(("g g", "home"), "top", "first line"),
        Key(("G", "end"), "bottom", "last line"),
        Key(("ctrl+d", "pagedown"), "half_down", "half a screen down"),
        Key(("ctrl+u", "pageup"), "half_up", "half a screen up"),
        Key(("n", "tab"), "next_need", "next that needs you", "next"),
        Key(("N", "shift+tab"), "previous_need", "previous that needs you"),
    ),
    "Fold": (
        Key(("h", "left"), "fold", "close, or go up a level"),
        Key(("l", "right"), "unfold", "open, or go in"),
        Key(("z a", "space"), "turn", "open or close"),
        Key(("z M",), "fold_all", "close all"),
        Key(("z R",), "unfold_all", "open all"),
    ),
    "Session": (
        Key(("enter",), "go", "go to its tmux pane", "go"),
        Key(("p",), "peek", "last lines of its pane", "peek"),
        Key(("t",), "timeline", "its events", "events"),
        Key(("y",), "copy", "copy its id"),
    ),
    "Panel (of p and t)": (
        Key(("J", "shift+down"), "panel_down", "a line down"),
        Key(("K", "shift+up"), "panel_up", "a line up"),
        Key(("ctrl+f",), "panel_page_down", "a page down"),
        Key(("ctrl+b",), "panel_page_up", "a page up"),
    ),
    "View": (
        Key(("/",), "filter", "show only these words", "filter"),
        Key(("s",), "sort", "sort by something else", "sort"),
        Key(("e",), "ended", "those that have ended", "ended"),
        Key(("escape",), "back", "close panel, then filter"),
        Key(("q", "ctrl+c"), "leave", "leave", "quit"),
        Key(("?",), "help", "this help", "help"),
    ),
}

_ACTIONS = {name: key.does for group in GROUPS.values() for key in group for name in key.keys}
_BEGINNINGS = {name.split()[0] for name in _ACTIONS if " " in name}
_SHOWN = {
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "shift+tab": "Shift-Tab",
    "shift+down": "Shift-↓",
    "shift+up": "Shift-↑",
    "escape": "Esc",
}


class KeyReader:
    """Turns keys into actions, one after the other: `g` may be the first half of `gg`."""

    def __init__(self) -> None:
        self._first = ""

    def read(self, name: str, character: str | None) -> str | None:
        """Give the action that a key completes; "" while it may become one; `None` if it means nothing."""
        word = character if character and character.isprintable() and character != " " else name
        first, self._first = self._first, ""
        if first and (found := _ACTIONS.get(f"{first} {word}")):
            return found
        if word in _BEGINNINGS and not first:
            self._first = word
            return ""
        return _ACTIONS.get(word)


def shown(key: Key) -> str:
    """Write the keys as a person knows them."""
    return " ".join(_shown(name) for name in key.keys)


def _shown(name: str) -> str:
    if name in _SHOWN:
        return _SHOWN[name]
    if name.startswith("ctrl+"):
        return f"^{name[5:]}"
    return name.replace(" ", "") if " " in name or len(name) == 1 else name.capitalize()


def hints(cells: int, sort: str) -> str:
    """Give the last line: as many hints as have room, how to get help and how to leave among them."""
    every = [key for group in GROUPS.values() for key in group if key.hint]
    last = [key for key in every if key.does in ("leave", "help")]
    said = {key: f"{_shown(key.keys[0])} {key.hint}{f': {sort}' if key.does == 'sort' else ''}" for key in every}
    kept: list[Key] = []
    left = cells - 1
    for key in (*reversed(last), *(key for key in every if key not in last)):
        if len(said[key]) <= left:
            kept.append(key)
            left -= len(said[key]) + 2
    return " " + "  ".join(said[key] for key in every if key in kept)
