"""The table of all keys: their actions, their descriptions in the help, their hints in the last line of the view.

Also the effect of a key on a text that the user types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairlead.tui.model._view import View


class Key(NamedTuple):
    """One action, and the keys that perform it."""

    names: tuple[str, ...]
    """Textual's names of the keys. A sequence of two keys is separated by a space."""
    action: str
    description: str
    hint: str = ""
    """The hint in the last line of the view; "" if there is none."""


GROUPS: dict[str, tuple[Key, ...]] = {
    "Move": (
        Key(("j", "down"), "down", "next line"),
        Key(("k", "up"), "up", "previous line"),
        Key(("g g", "home"), "top", "first line"),
        Key(("G", "end"), "bottom", "last line"),
        Key(("ctrl+d", "pagedown"), "half_down", "half a screen down"),
        Key(("ctrl+u", "pageup"), "half_up", "half a screen up"),
        Key(("n", "tab"), "next_attention", "next that needs you", "next"),
        Key(("N", "shift+tab"), "previous_attention", "previous that needs you"),
    ),
    "Fold": (
        Key(("h", "left"), "fold", "close, or go to parent"),
        Key(("l", "right"), "unfold", "open, or go to child"),
        Key(("z a", "space"), "toggle", "open or close"),
        Key(("z M",), "fold_all", "close all"),
        Key(("z R",), "unfold_all", "open all"),
    ),
    "Session": (
        Key(("enter",), "go", "go to its tmux pane", "go"),
        Key(("a",), "answer", "answer its question", "answer"),
        Key(("p",), "peek", "show its tmux pane", "peek"),
        Key(("t",), "timeline", "show its events", "events"),
        Key(("y",), "copy", "copy its id"),
        Key(("o",), "transcript", "open its transcript"),
        Key(("m",), "mail", "write to it"),
        Key(("I",), "interrupt", "interrupt it"),
        Key(("X",), "end", "end it; asks twice"),
    ),
    "Panel (p, t), or what is asked": (
        Key(("J", "shift+down"), "panel_down", "a line down"),
        Key(("K", "shift+up"), "panel_up", "a line up"),
        Key(("ctrl+f",), "panel_page_down", "a page down"),
        Key(("ctrl+b",), "panel_page_up", "a page up"),
    ),
    "View": (
        Key(("/",), "filter", "filter by words", "filter"),
        Key(("s",), "sort", "change the order", "sort"),
        Key(("S",), "reverse", "reverse the order"),
        Key(("e",), "ended", "show ended sessions", "ended"),
        Key(("H",), "history", "history of all sessions"),
        Key(("M",), "inbox", "your mail: read, reply"),
        Key(("escape",), "back", "close panel or filter"),
        Key(("q",), "quit", "quit", "quit"),
        Key(("ctrl+c",), "cancel", "quit, exit code 130"),
        Key(("?",), "help", "this help", "help"),
    ),
}

_ACTIONS = {name: key.action for group in GROUPS.values() for key in group for name in key.names}
_PREFIXES = {name.split()[0] for name in _ACTIONS if " " in name}
_LABELS = {
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
    """Converts keys to actions. Remembers one key, because `g` may be the first key of `g g`."""

    def __init__(self) -> None:
        self._prefix = ""

    def read(self, name: str, character: str | None) -> str | None:
        """Return the action of a key or sequence; "" if the key may start a sequence; `None` if it has no action.

        `name` is Textual's name of the key, and `character` the text that it types, if any.
        """
        key = character if character and character.isprintable() and character != " " else name
        prefix, self._prefix = self._prefix, ""
        if prefix and (action := _ACTIONS.get(f"{prefix} {key}")):
            return action
        if key in _PREFIXES and not prefix:
            self._prefix = key
            return ""
        return _ACTIONS.get(key)


def key_label(key: Key) -> str:
    """Return the keys of an action as they are labelled on a keyboard."""
    return " ".join(map(_label, key.names))


def _label(name: str) -> str:
    if name in _LABELS:
        return _LABELS[name]
    if name.startswith("ctrl+"):
        return f"^{name[5:]}"
    return name.replace(" ", "") if " " in name or len(name) == 1 else name.capitalize()


def hints(cells: int, view: View) -> str:
    """Return the last line of the view: as many hints as fit. Help and quit have priority."""
    hinted = [key for group in GROUPS.values() for key in group if key.hint]
    always = [key for key in hinted if key.action in ("quit", "help")]
    order = f": {view.sort}{' ▲' if view.is_reversed else ''}"
    texts = {key: f"{_label(key.names[0])} {key.hint}{order if key.action == 'sort' else ''}" for key in hinted}
    shown: list[Key] = []
    room = cells - 1
    for key in (*reversed(always), *(key for key in hinted if key not in always)):
        if len(texts[key]) <= room:
            shown.append(key)
            room -= len(texts[key]) + 2
    return " " + "  ".join(texts[key] for key in hinted if key in shown)


def edit_text(text: str, key: str, character: str | None) -> str:
    """Return a text after a key was pressed at its end: the same text if the key edits nothing."""
    if key in ("backspace", "ctrl+h"):
        return text[:-1]
    if key == "ctrl+w":
        return text.rstrip().rpartition(" ")[0]
    if key == "ctrl+u":
        return ""
    return text + character if character and character.isprintable() else text
