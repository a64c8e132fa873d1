"""Who changed which file last: two sessions that change one file within minutes should know of each other."""

from __future__ import annotations

from typing import NamedTuple

WINDOW = 600.0
"""Seconds within which two changes of a file may be in each other's way, and in which a pair is told of it once."""
_MAX_FILES = 4096
_MAX_PAIRS = 4096
_MAX_EDITORS = 4


class Editor(NamedTuple):
    """Who changed a file, and when."""

    session: str
    agent_id: str
    at: float


class RecentEdits:
    """The last editors of the files that were changed last."""

    def __init__(self) -> None:
        self._editors: dict[str, tuple[Editor, ...]] = {}
        self._told: dict[tuple[str, str, str], float] = {}
        """When two sessions were told of each other, by both of them and the file."""

    def note(self, path: str, editor: Editor) -> tuple[Editor, ...]:
        """Note that a file is changed. Returns the editors of other sessions within the last minutes."""
        before = self._editors.pop(path, ())
        if len(self._editors) >= _MAX_FILES:
            del self._editors[next(iter(self._editors))]  # the one that was not changed for longest
        others = tuple([one for one in before if one.session != editor.session])
        self._editors[path] = (*others[-_MAX_EDITORS + 1 :], editor)
        return tuple([one for one in others if editor.at - one.at < WINDOW]) if others else ()

    def is_news(self, path: str, one: Editor, other: Editor) -> bool:
        """Return whether two sessions must be told of each other because of a file, and record that they are."""
        first, second = sorted((one.session, other.session))
        key, now = (first, second, path), max(one.at, other.at)
        last = self._told.get(key)
        if last is not None and now - last < WINDOW:
            return False
        if len(self._told) >= _MAX_PAIRS:
            self._told.clear()
        self._told[key] = now
        return True
