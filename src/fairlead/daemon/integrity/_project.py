"""The protected files of one policy, looked at by one thread at a time."""

from __future__ import annotations

import os
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from fairlead.daemon.integrity._snapshot import Snapshot

if TYPE_CHECKING:
    from fairlead.daemon.integrity._file_state import Change
    from fairlead.daemon.integrity._report import Finding
    from fairlead.policy import ProtectedFiles

_MAX_WRITTEN = 256
FIRST_LOOK_TIMEOUT = 1.0
"""Seconds that a tool call waits for the first look. A launcher waits two for the daemon."""


class Project:
    """The files that one policy protects. The first look is taken in a thread of its own."""

    def __init__(self, protected: ProtectedFiles) -> None:
        self.protected = protected
        self.folders = tuple(dict.fromkeys(root.folder for root in protected.roots)) or tuple(
            file.rpartition("/")[0] for file in protected.files[:1]
        )
        self._snapshot = Snapshot(protected)
        self._lock = Lock()
        self._is_ready = Event()
        self._expected: set[str] = set()
        self._written: dict[str, None] = {}
        """Paths that file tools have written, with their links: they are resolved only if something has changed."""
        self.pending: list[Finding] = []
        """What was found when no call had ended, for the next answer."""
        self.problem = ""
        """Why the files could not be looked for."""
        Thread(target=self._take, name="integrity", daemon=True).start()

    def look(self) -> list[Change] | None:
        """Return what has changed since the last look; `None` if the first one has not ended in time.

        What a file tool was allowed to write is not among it.
        """
        if not self._is_ready.wait(FIRST_LOOK_TIMEOUT):
            return None
        with self._lock:
            changes = self._snapshot.look()
            written, self._written = self._written, {}
            for path in list(written) if changes else ():
                self.expect(os.path.realpath(path))
            expected, self._expected = self._expected, set()
        return [change for change in changes if change.path not in expected] if expected else changes

    def looked(self) -> list[Change]:
        """Return what `look` does right after `is_unchanged` was true: nothing."""
        self._expected, self._written = set(), {}
        return []

    def is_unchanged(self) -> bool:
        """Return whether a look would find nothing, if that is known without waiting."""
        if not self._is_ready.is_set() or not self._snapshot.is_small or not self._lock.acquire(blocking=False):
            return False
        try:
            return self._snapshot.is_unchanged()
        finally:
            self._lock.release()

    def expect(self, path: str) -> None:
        """Take the next change of a file for one that is known already, or that was allowed."""
        if any(path.startswith(folder) for folder in self.folders) or path in self.protected.files:
            self._expected.add(path)

    def expect_written(self, path: str) -> bool:
        """Note a path, which may have links, for the next look; return `False` if there are too many already."""
        if len(self._written) >= _MAX_WRITTEN:
            return False
        self._written[path] = None
        return True

    def take_pending(self) -> list[Finding]:
        """Return what is pending, once."""
        pending, self.pending = self.pending, []
        return pending

    def shown_path(self, path: str) -> str:
        """Return a path as people know it: relative to the project."""
        for folder in self.folders:
            if path.startswith(f"{folder.rstrip('/')}/"):
                return path[len(folder.rstrip("/")) + 1 :]
        return path

    def refresh(self, path: str) -> None:
        """Take a file as it is now."""
        with self._lock:
            self._snapshot.refresh(path)

    def status(self) -> dict[str, object]:
        """Return the state for people and programs."""
        return {
            "folders": list(self.folders),
            "mode": self.protected.mode,
            "files": len(self._snapshot),
            "copies": self._snapshot.copied,
            "ready": self._is_ready.is_set(),
            "limits": sorted(self._snapshot.limits),
            "problem": self.problem,
        }

    def _take(self) -> None:
        with self._lock:
            try:
                self._snapshot.take()
            except Exception as error:  # noqa: BLE001 - it is told with the next status, and must not end the thread
                self.problem = f"{type(error).__name__}: {error}"
            finally:
                self._is_ready.set()
