"""The last editors of files. Two sessions that change the same file within minutes are notified of each other."""

from __future__ import annotations

from typing import NamedTuple

WINDOW = 600.0
"""Seconds within which two changes of a file may conflict. Two sessions are notified once within that time."""
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
        self._notified: dict[tuple[str, str, str], float] = {}
        """When two sessions were last notified of each other, by both sessions and the file."""

    def record(self, path: str, editor: Editor) -> tuple[Editor, ...]:
        """Record a change of a file. Returns the editors of other sessions within the last minutes."""
        before = self._editors.pop(path, ())
        if len(self._editors) >= _MAX_FILES:
            del self._editors[next(iter(self._editors))]  # the least recently changed file
        others = tuple([other for other in before if other.session != editor.session])
        self._editors[path] = (*others[-_MAX_EDITORS + 1 :], editor)
        return tuple([other for other in others if editor.at - other.at < WINDOW]) if others else ()

    def must_notify(self, path: str, editor: Editor, other: Editor) -> bool:
        """Return whether two sessions must be notified of each other because of a file, and record it."""
        first, second = sorted((editor.session, other.session))
        key, now = (first, second, path), max(editor.at, other.at)
        last = self._notified.get(key)
        if last is not None and now - last < WINDOW:
            return False
        if len(self._notified) >= _MAX_PAIRS:
            self._notified.clear()
        self._notified[key] = now
        return True
