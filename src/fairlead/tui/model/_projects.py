"""The project, worktree and branch of a folder, from the files of git.

No process is started: `.git` is a folder, or a file with the path of one; in a worktree's, a file names the common one.
"""

from __future__ import annotations

import os
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_PARENTS = 40
_MAX_FILE_SIZE = 4096
_MAX_AGE = 5.0
"""Seconds after which a branch is read again."""


class Location(msgspec.Struct, frozen=True):
    """Where a session works."""

    project: str
    """The folder of the project, which all its worktrees share."""
    worktree: str
    """The folder that is checked out."""
    branch: str = ""
    """A short commit id if the head is detached; "" if this is no git repository."""


def unknown_location(folder: str) -> Location:
    """Return the location of a folder that was not looked up: the folder itself."""
    return Location(folder, folder)


def find_location(folder: str) -> Location:
    """Look up the location of a folder. What cannot be read counts as no repository."""
    if not folder.startswith("/"):
        return unknown_location(folder)
    current = os.path.normpath(folder)
    for _ in range(_MAX_PARENTS):
        if (location := _read_location(current)) is not None:
            return location
        parent = os.path.dirname(current)
        if parent == current:
            break
        current = parent
    return unknown_location(folder)


def _read_location(folder: str) -> Location | None:
    entry = f"{folder}/.git"
    if os.path.isdir(entry):
        return Location(folder, folder, _read_branch(entry)) if os.path.isfile(f"{entry}/HEAD") else None
    content = _read(entry)
    if not content.startswith("gitdir:"):
        return None
    git_folder = os.path.normpath(os.path.join(folder, content.removeprefix("gitdir:").strip()))
    common = _read(f"{git_folder}/commondir")
    if not common:  # a submodule, or a repository whose git folder is elsewhere
        return Location(folder, folder, _read_branch(git_folder))
    common = os.path.normpath(os.path.join(git_folder, common))
    project = os.path.dirname(common) if common.endswith("/.git") else common
    return Location(project, folder, _read_branch(git_folder))


def _read_branch(git_folder: str) -> str:
    head = _read(f"{git_folder}/HEAD")
    return head.removeprefix("ref: ").removeprefix("refs/heads/") if head.startswith("ref: ") else head[:8]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_SIZE).strip()
    except (OSError, ValueError):
        return ""


class ProjectLocator:
    """Looks folders up in a thread of its own: a disk that hangs must not block the view, or its end."""

    def __init__(self, report: Callable[[str, Location], None], find: Callable[[str], Location]) -> None:
        """Call `report` in the thread with every location that is new, as returned by `find`."""
        self._report = report
        self._find = find
        self._queue: SimpleQueue[str] = SimpleQueue()
        self._known: dict[str, Location] = {}
        self._requested_at: dict[str, float] = {}
        self._thread: Thread | None = None

    def request(self, folder: str, now: float) -> None:
        """Look a folder up, unless that was requested a moment ago."""
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
