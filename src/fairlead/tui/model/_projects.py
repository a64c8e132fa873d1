"""Looks up the projects and branches of folders in a background thread."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from fairlead.sessions import Location, find_location, unknown_location

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Location", "ProjectLocator", "find_location", "unknown_location"]

_MAX_AGE = 5.0
"""Seconds after which a folder may be looked up again, because its branch may have changed."""


class ProjectLocator:
    """Looks up folders in a background thread, because a disk that hangs must not block the view or its exit."""

    def __init__(self, report: Callable[[str, Location], None], find: Callable[[str], Location]) -> None:
        """`report` is called in the background thread with each new location that `find` returns."""
        self._report = report
        self._find = find
        self._queue: SimpleQueue[str] = SimpleQueue()
        self._known: dict[str, Location] = {}
        self._requested_at: dict[str, float] = {}
        self._thread: Thread | None = None

    def request(self, folder: str, now: float) -> None:
        """Look up a folder in the background, unless it is "" or was requested in the last `_MAX_AGE` seconds."""
        if not folder or abs(now - self._requested_at.get(folder, -_MAX_AGE)) < _MAX_AGE:
            return
        self._requested_at[folder] = now
        self._queue.put(folder)
        if self._thread is None:
            self._thread = Thread(target=self._run, name="fairlead-locations", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            folder = self._queue.get()
            location = self._find(folder)
            if self._known.get(folder) != location:
                self._known[folder] = location
                self._report(folder, location)
