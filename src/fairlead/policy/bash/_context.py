"""Reads the files that an analysis needs: scripts, task files and archives, limited in size and in number.

Records the version of each file, so that a result can be cached as long as none of them changes.
"""

from __future__ import annotations

import os
from stat import S_ISREG
from typing import Final, NamedTuple, TypeAlias

MAX_FILE_BYTES: Final = 256 * 1024
_MAX_FILES: Final = 48
_MAX_TOTAL_BYTES: Final = 1024 * 1024
_MAX_QUICK_BYTES: Final = 4 * 1024

Version: TypeAlias = tuple[int, int, int, int] | None
"""Inode, size, modification time and change time of a file; `None` if the file does not exist."""


class FileContents(NamedTuple):
    """A file that was read."""

    path: str
    """The absolute path."""
    data: bytes | None
    """Its contents; `None` if it cannot be read or is too large."""


class AnalysisContext:
    """Reads files for the analysis of one command."""

    __slots__ = ("_bytes_left", "_files_left", "cwd", "has_searched", "has_used_disk", "may_wait", "versions")

    def __init__(self, cwd: str, *, may_wait: bool = True) -> None:
        self.cwd = cwd
        self.may_wait = may_wait
        """Whether more than a few kilobytes may be read. If not, `NeedsThread` is raised instead."""
        self.versions: dict[str, Version] = {}
        """The versions of the files that the result depends on."""
        self.has_used_disk = False
        """Whether the disk was accessed at all."""
        self.has_searched = False
        """Whether folders were searched, so that a new file could change the result."""
        self._files_left, self._bytes_left = _MAX_FILES, _MAX_TOTAL_BYTES

    def absolute(self, path: str) -> str:
        """Return the absolute path of a path in the command, relative to `cwd`, with `~` expanded."""
        path = path.replace("\0", "")
        if path[:1] == "~":
            path = os.path.expanduser(path)
        return os.path.normpath(os.path.join(self.cwd, path))

    def read_file(self, path: str, limit: int = MAX_FILE_BYTES) -> FileContents | None:
        """Read a regular file; return `None` if there is none at the path.

        The data is `None` if the file cannot be read or is larger than `limit`, or if the analysis has read too much
        already. Raises `NeedsThread` if the context may not wait, and more than a few kilobytes would be read.
        """
        self.has_used_disk = True
        path = self.absolute(path)
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            self.versions[path] = None
            return None
        self.versions[path] = _version(status)
        if not S_ISREG(status.st_mode):
            return None
        self._files_left -= 1
        self._bytes_left -= status.st_size
        self._refuse_to_block(_MAX_TOTAL_BYTES - self._bytes_left)
        if status.st_size > limit or self._bytes_left < 0 or self._files_left < 0:
            return FileContents(path, None)
        try:
            with open(path, "rb", buffering=0) as file:
                return FileContents(path, file.read(limit))
        except OSError:
            return FileContents(path, None)

    def size_of(self, path: str) -> int | None:
        """Return the size of a regular file that the caller opens itself; `None` if there is none at the path.

        Raises `NeedsThread` if the context may not wait, and the file is larger than a few kilobytes.
        """
        self.has_used_disk = True
        path = self.absolute(path)
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            self.versions[path] = None
            return None
        self.versions[path] = _version(status)
        self._refuse_to_block(status.st_size)
        return status.st_size if S_ISREG(status.st_mode) else None

    def _refuse_to_block(self, size: int) -> None:
        if not self.may_wait and size > _MAX_QUICK_BYTES:
            from fairlead.errors import NeedsThread

            raise NeedsThread

    def repository_root(self, folder: str) -> str | None:
        """Return the root of the repository that contains a folder; `None` outside of a repository."""
        from fairlead.policy.paths._git_index import find_index

        self.has_used_disk = True
        index = find_index(f"{self.absolute(folder)}/.")
        return None if index is None else index.root

    def is_tracked(self, path: str) -> bool:
        """Return whether git tracks a file, and the file is unchanged since it was added to the index."""
        from fairlead.policy.paths._git_index import find_index, is_unchanged

        self.has_used_disk = True
        index = find_index(path)
        if index is None:
            return False
        self.versions[index.path] = version_of(index.path)
        return is_unchanged(path, index)


def version_of(path: str) -> Version:
    """Return the version of a file on the disk; `None` if it does not exist."""
    try:
        return _version(os.stat(path))
    except (OSError, ValueError):
        return None


def _version(status: os.stat_result) -> Version:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
