"""Which project, worktree and branch a folder is of, by reading the files of git. Never asked while drawing.

No process is started: `.git` is a folder, or a file that says where it is; a worktree's says where the common one is.
"""

from __future__ import annotations

import os
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_HIGHEST = 40
"""Folders that are looked at, upwards."""

_LONGEST = 4096
_FRESH = 5.0
"""Seconds after which a branch is looked at again."""


class Place(msgspec.Struct, frozen=True):
    """Where a session works."""

    project: str
    """The folder of the project: all its worktrees share it."""
    worktree: str
    """The folder that is checked out."""
    branch: str = ""
    """A short commit if the head is detached; "" if this is no git repository."""


def guess(folder: str) -> Place:
    """Give a place without looking: the folder itself."""
    return Place(folder, folder)


def find_place(folder: str) -> Place:
    """Look where a folder belongs. What cannot be read is taken for no repository."""
    if not folder.startswith("/"):
        return guess(folder)
    here = os.path.normpath(folder)
    for _ in range(_HIGHEST):
        if (found := _place(here)) is not None:
            return found
        above = os.path.dirname(here)
        if above == here:
            break
        here = above
    return guess(folder)


def _place(folder: str) -> Place | None:
    mark = f"{folder}/.git"
    if os.path.isdir(mark):
        return Place(folder, folder, _branch(mark)) if os.path.isfile(f"{mark}/HEAD") else None
    told = _read(mark)
    if not told.startswith("gitdir:"):
        return None
    own = os.path.normpath(os.path.join(folder, told.removeprefix("gitdir:").strip()))
    shared = _read(f"{own}/commondir")
    if not shared:  # a submodule, or a repository with its folder elsewhere
        return Place(folder, folder, _branch(own))
    common = os.path.normpath(os.path.join(own, shared))
    project = os.path.dirname(common) if common.endswith("/.git") else common
    return Place(project, folder, _branch(own))


def _branch(git: str) -> str:
    head = _read(f"{git}/HEAD")
    return head.removeprefix("ref: ").removeprefix("refs/heads/") if head.startswith("ref: ") else head[:8]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST).strip()
    except (OSError, ValueError):
        return ""


class ProjectLocator:
    """Looks folders up in a thread of its own: a disk that hangs must not hold the view, or its end."""

    def __init__(self, tell: Callable[[str, Place], None], look: Callable[[str], Place]) -> None:
        """Take what is told each place that is news, which is called in the thread, and how to look for one."""
        self._tell = tell
        self._look_at = look
        self._asked: SimpleQueue[str] = SimpleQueue()
        self._known: dict[str, Place] = {}
        self._at: dict[str, float] = {}
        self._thread: Thread | None = None

    def ask(self, folder: str, now: float) -> None:
        """Have a folder looked at, unless that was done a moment ago."""
        if not folder or abs(now - self._at.get(folder, -_FRESH)) < _FRESH:
            return
        self._at[folder] = now
        self._asked.put(folder)
        if self._thread is None:
            self._thread = Thread(target=self._look, name="fairlead-places", daemon=True)
            self._thread.start()

    def _look(self) -> None:
        while True:
            folder = self._asked.get()
            place = self._look_at(folder)
            if self._known.get(folder) != place:
                self._known[folder] = place
                self._tell(folder, place)
