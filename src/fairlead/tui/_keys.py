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
        Key(("n", "tab"), "next_need", "next one that needs you", "next"),
        Key(("N", "shift+tab"), "previous_need", "the one before that needs you"),
    ),
    "Fold": (
        Key(("h", "left"), "fold", "close, or go to the line above it"),
        Key(("l", "right"), "unfold", "open, or go into it"),
        Key(("z a", "space"), "turn", "open or close"),
        Key(("z M",), "fold_all", "close all"),
        Key(("z R",), "unfold_all", "open all"),
    ),
    "Session": (
        Key(("enter",), "go", "go to its tmux pane; opens or closes a group", "go"),
        Key(("p",), "peek", "the last lines of its pane", "peek"),
        Key(("t",), "timeline", "its events", "timeline"),
        Key(("y",), "copy", "copy its id"),
    ),
    "View": (
        Key(("/",), "filter", "show only what has these words", "filter"),
        Key(("s",), "sort", "sort by name, state, activity, cost, context", "sort"),
        Key(("e",), "ended", "show or hide those that have ended", "ended"),
        Key(("escape",), "back", "close the panel, then clear the filter"),
        Key(("?",), "help", "this help", "help"),
        Key(("q", "ctrl+c"), "leave", "leave", "quit"),
    ),
}

_ACTIONS = {name: key.does for group in GROUPS.values() for key in group for name in key.keys}
_BEGINNINGS = {name.split()[0] for name in _ACTIONS if " " in name}
_SHOWN = {"down": "↓", "up": "↑", "left": "←", "right": "→", "pagedown": "PgDn", "pageup": "PgUp", "enter": "Enter"}


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
    return name.replace(" ", "") if " " in name or len(name) == 1 else name.capitalize().replace("+", "-")


def hints(cells: int, sort: str) -> str:
    """Give the last line: as many hints as have room, the help among them."""
    last = "? help"
    parts: list[str] = []
    used = len(last) + 1
    for key in (key for group in GROUPS.values() for key in group if key.hint and key.does != "help"):
        said = f"{key.hint}: {sort}" if key.does == "sort" else key.hint
        part = f"{_shown(key.keys[0])} {said}"
        if used + len(part) + 3 > cells:
            continue
        parts.append(part)
        used += len(part) + 3
    return " " + "   ".join([*parts, last])
