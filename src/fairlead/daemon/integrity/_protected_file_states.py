"""The last known state of a project's protected files. Bounded: files beyond the limits are reported, not checked."""

from __future__ import annotations

import os
from collections import deque
from stat import S_ISLNK
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

from fairlead.daemon.integrity._file_state import CLOCK_TICK, DetectedChange, FileState, describe, follow, read_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.policy import ProtectedFiles, SearchRoot

MAX_FILES = 5_000
MAX_FOLDERS = 1_000
"""Folders in which new files are noticed."""
MAX_ENTRIES = 50_000
"""Files and folders that are visited in search of protected ones."""
MAX_COPIES = 32 * 1024 * 1024
"""Bytes of all copies of one project. They are in memory, because an agent could read a copy on disk."""

_MAX_SMALL = 48
"""The maximum number of files and folders of a project that is checked in the event loop, as the policy files are."""
_INSTALLED = frozenset({"node_modules", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".cache"})
"""Folders that are searched after all others, and in which new files are not noticed: large, and written by tools."""
_LEFT_OUT = ".git"
"""git itself changes its files all the time; no copy of one of them may be put back."""


class _Folder(NamedTuple):
    """The state of a folder at one time."""

    changed_at: int
    inode: int
    names: frozenset[str]
    """The names of all entries; names of folders end with a slash."""
    is_racy: bool
    """As in `FileState`."""


class ProtectedFileStates:
    """The last known state of a project's protected files. Not for several threads at once."""

    def __init__(self, protected: ProtectedFiles) -> None:
        self._protected = protected
        self._keep_copies = protected.mode == "restore"
        self._files: dict[str, FileState] = {}
        self._links: set[str] = set()
        self._folders: dict[str, tuple[SearchRoot, _Folder]] = {}
        self._visited = 0
        self.copied = 0
        """Bytes of the copies."""
        self.limits: set[str] = set()
        """The limits that were reached, in words."""

    def __len__(self) -> int:
        return len(self._files)

    def scan(self) -> None:
        """Find all protected files, and read their states. Called once, before anything else."""
        for path in self._protected.files:
            self._add(path)
        for root in self._protected.roots:
            for path in self._search(root, (root.folder,)):
                self._add(path)

    def state(self, path: str) -> FileState | None:
        """Return the last known state of a file; `None` for an unknown one."""
        return self._files.get(path)

    def find_changes(self) -> list[DetectedChange]:
        """Return the changes since the last check, and record the current state as the known one."""
        self._visited = 0
        suspects = [*self._changed_files(), *self._changed_targets(), *self._new_files()]
        changes = []
        for path in dict.fromkeys(suspects):
            before = self._files.get(path)
            after = self.refresh(path)
            what = describe(before, after)
            if what is not None:
                changes.append(DetectedChange(path, what, before, after))
        return changes

    @property
    def is_small(self) -> bool:
        """Whether a check that finds no change takes less than a tenth of a millisecond."""
        return len(self._files) + len(self._folders) <= _MAX_SMALL

    def is_unchanged(self) -> bool:
        """Return whether nothing has changed since the last check. Reads no file and no folder."""
        return not (self._changed_files() or self._changed_targets() or self._changed_folders())

    def refresh(self, path: str) -> FileState | None:
        """Record the current state of a file as its known state, and return it; `None` if there is no file."""
        before = self._files.pop(path, None)
        self._links.discard(path)
        if before is not None and before.content is not None:
            self.copied -= len(before.content)
        return self._add(path)

    # -- files -----------------------------------------------------------------------------------------

    def _changed_files(self) -> list[str]:
        """Return the files that are missing, or have another inode or change time than before."""
        lstat, suspects = os.lstat, []
        for path, known in self._files.items():
            try:
                status = lstat(path)
            except OSError:
                suspects.append(path)
                continue
            if status.st_ctime_ns != known.changed_at or status.st_ino != known.inode or known.is_racy:
                suspects.append(path)
        return suspects

    def _changed_targets(self) -> list[str]:
        return [path for path in self._links if follow(path) != self._files[path].followed]

    def _add(self, path: str) -> FileState | None:
        if len(self._files) >= MAX_FILES:
            self.limits.add(f"more than {MAX_FILES} protected files")
            return None
        state = read_state(path, keep_copy=self._keep_copies and self.copied < MAX_COPIES)
        if state is None:
            return None
        if state.content is not None:
            self.copied += len(state.content)
        elif self._keep_copies and state.target is None:
            self.limits.add("files without a copy, because they are too large or cannot be read")
        if S_ISLNK(state.mode):
            self._links.add(path)
        self._files[path] = state
        return state

    # -- folders ---------------------------------------------------------------------------------------

    def _changed_folders(self) -> list[tuple[str, SearchRoot]]:
        """Return the folders in which something was added or removed."""
        lstat, changed = os.lstat, []
        for folder, (root, known) in self._folders.items():
            try:
                status = lstat(folder)
            except OSError:
                changed.append((folder, root))
                continue
            if status.st_ctime_ns != known.changed_at or status.st_ino != known.inode or known.is_racy:
                changed.append((folder, root))
        return changed

    def _new_files(self) -> list[str]:
        """Return protected files that are not known yet, from the folders that have changed."""
        found = [path for path in self._protected.files if path not in self._files]
        for folder, root in self._changed_folders():
            found += self._search(root, (folder,))
        return found

    def _search(self, root: SearchRoot, folders: Iterable[str]) -> Iterator[str]:
        """Yield the protected files that are new in folders, and below new folders."""
        waiting, installed = deque(folders), deque[str]()
        while waiting or installed:
            is_watched = bool(waiting)
            folder = (waiting or installed).popleft()
            for name in self._new_names(root, folder, is_watched=is_watched):
                path = f"{folder.rstrip('/')}/{name}"
                if not name.endswith("/"):
                    if path not in self._files and self._protected.contains(path):
                        yield path
                elif _is_searched(root, path[:-1]) and path[:-1] not in self._folders:
                    (waiting if is_watched and name[:-1] not in _INSTALLED else installed).append(path[:-1])

    def _new_names(self, root: SearchRoot, folder: str, *, is_watched: bool) -> frozenset[str]:
        """Return the names that are new in a folder since it was last listed.

        Return none if it cannot be listed, or beyond `MAX_ENTRIES`. With `is_watched`, the list is stored, so that
        later new files are noticed.
        """
        known, seen = self._folders.pop(folder, None), _list(folder)
        if seen is None:
            return frozenset()
        if is_watched and len(self._folders) < MAX_FOLDERS:
            self._folders[folder] = root, seen
        elif is_watched:
            self.limits.add(f"more than {MAX_FOLDERS} folders: new files in the others are not noticed")
        names = seen.names - known[1].names if known else seen.names
        self._visited += len(names)
        if self._visited <= MAX_ENTRIES:
            return names
        if is_watched:
            self.limits.add(f"more than {MAX_ENTRIES} files: the others were not searched")
        return frozenset()


def _is_searched(root: SearchRoot, folder: str) -> bool:
    return not folder.endswith(f"/{_LEFT_OUT}") and root.may_contain(folder.removeprefix(root.folder).strip("/"))


def _list(folder: str) -> _Folder | None:
    seen_at = time_ns()
    try:
        status = os.lstat(folder)
        with os.scandir(folder) as entries:
            names = frozenset(
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name for entry in entries
            )
    except OSError:
        return None
    return _Folder(status.st_ctime_ns, status.st_ino, names, status.st_ctime_ns > seen_at - CLOCK_TICK)
