"""The protected files of one policy, checked by one thread at a time."""

from __future__ import annotations

import os
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from fairlead.daemon.integrity._protected_file_states import ProtectedFileStates

if TYPE_CHECKING:
    from fairlead.daemon.integrity._file_state import DetectedChange
    from fairlead.daemon.integrity._report import ReportedChange
    from fairlead.daemon.integrity._written_paths import WrittenPaths
    from fairlead.policy import ProtectedFiles

SCAN_TIMEOUT = 1.0
"""Seconds that a tool call waits for the first scan. A launcher waits two for the daemon."""


class CheckedProject:
    """The files that one policy protects. They are first scanned in a thread of its own."""

    def __init__(self, protected: ProtectedFiles, written: WrittenPaths) -> None:
        """Start the first scan. `written` are the paths that file tools write, in any project."""
        self.protected = protected
        self.folders = tuple(dict.fromkeys(root.folder for root in protected.roots)) or tuple(
            file.rpartition("/")[0] for file in protected.files[:1]
        )
        self._states = ProtectedFileStates(protected)
        self._lock = Lock()
        self._is_ready = Event()
        self._expected: set[str] = set()
        self._written = written
        """Paths with links: they are resolved only if something has changed."""
        self.seen = written.count
        """The number of the last written path that a check has taken into account."""
        self.pending: list[ReportedChange] = []
        """Findings of a check before a call, to be reported with the next answer."""
        self.problem = ""
        """Why the files could not be scanned; "" if they could."""
        Thread(target=self._scan, name="integrity", daemon=True).start()

    def find_changes(self) -> list[DetectedChange] | None:
        """Return the changes since the last check; `None` if the first scan has not ended in time.

        Changes that file tools were allowed to make are left out.
        """
        if not self._is_ready.wait(SCAN_TIMEOUT):
            return None
        with self._lock:
            changes = self._states.find_changes()
            before, self.seen = self.seen, self._written.count
            for path in self._written.since(before) if changes else ():
                self.expect(os.path.realpath(path))
            expected, self._expected = self._expected, set()
        return [change for change in changes if change.path not in expected] if expected else changes

    def note_unchanged(self) -> list[DetectedChange]:
        """Record a check that found no changes, and return `[]`.

        Call it instead of `find_changes` if `is_unchanged` is true.
        """
        self._expected, self.seen = set(), self._written.count
        return []

    def is_unchanged(self) -> bool:
        """Return whether no file has changed since the last check; `False` if that is not known without waiting."""
        if not self._is_ready.is_set() or not self._states.is_small or not self._lock.acquire(blocking=False):
            return False
        try:
            return self._states.is_unchanged()
        finally:
            self._lock.release()

    def expect(self, path: str) -> None:
        """Do not report the next change of a file: it is known already, or was allowed."""
        if any(path.startswith(folder) for folder in self.folders) or path in self.protected.files:
            self._expected.add(path)

    def take_pending(self) -> list[ReportedChange]:
        """Return and remove the pending findings."""
        pending, self.pending = self.pending, []
        return pending

    def shown_path(self, path: str) -> str:
        """Return a path as people know it: relative to the project if it is in it, else unchanged."""
        for folder in self.folders:
            if path.startswith(f"{folder.rstrip('/')}/"):
                return path[len(folder.rstrip("/")) + 1 :]
        return path

    def refresh(self, path: str) -> None:
        """Record the current state of a file as its known state."""
        with self._lock:
            self._states.refresh(path)

    def status(self) -> dict[str, object]:
        """Return the state of this project, for people and programs."""
        return {
            "folders": list(self.folders),
            "mode": self.protected.mode,
            "files": len(self._states),
            "copies": self._states.copied,
            "ready": self._is_ready.is_set(),
            "limits": sorted(self._states.limits),
            "problem": self.problem,
        }

    def _scan(self) -> None:
        with self._lock:
            try:
                self._states.scan()
            except Exception as error:  # shown in the status; it must not end the thread
                self.problem = f"{type(error).__name__}: {error}"
            finally:
                self._is_ready.set()
