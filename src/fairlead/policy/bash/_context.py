"""The files that an analysis may read: scripts, task files and archives, bounded in size and in number.

Remembers which files it looked at and their versions, so that a result can be kept as long as none of them changes.
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
"""Inode, size, and the times of the last changes of a file; `None` if there is none."""


class FileContents(NamedTuple):
    """A file that was looked at."""

    path: str
    """Absolute."""
    data: bytes | None
    """Its contents; `None` if it cannot be read or is too large."""


class AnalysisContext:
    """The disk, as far as the analysis of one command may look at it."""

    __slots__ = ("_files_left", "_left", "cwd", "has_looked", "has_searched", "may_block", "versions")

    def __init__(self, cwd: str, *, may_block: bool = True) -> None:
        self.cwd = cwd
        self.may_block = may_block
        """Whether much may be read. If not, `NotCached` is raised rather than more than a small file."""
        self.versions: dict[str, Version] = {}
        """The files that were looked at."""
        self.has_looked = False
        """Whether anything on the disk was looked at."""
        self.has_searched = False
        """Whether folders were searched, so that a new file could change the result."""
        self._files_left, self._left = _MAX_FILES, _MAX_TOTAL_BYTES

    def absolute(self, path: str) -> str:
        """Return a path of the command as an absolute one."""
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(path.replace("\0", ""))))

    def read_file(self, path: str, limit: int = MAX_FILE_BYTES) -> FileContents | None:
        """Read a regular file; `None` if there is none."""
        self.has_looked = True
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
        self._left -= status.st_size
        self._refuse_to_block(_MAX_TOTAL_BYTES - self._left)
        if status.st_size > limit or self._left < 0 or self._files_left < 0:
            return FileContents(path, None)
        try:
            with open(path, "rb", buffering=0) as file:
                return FileContents(path, file.read(limit))
        except OSError:
            return FileContents(path, None)

    def size_of(self, path: str) -> int | None:
        """Return the size of a regular file, which something else than `read_file` reads; `None` if there is none."""
        self.has_looked = True
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
        if not self.may_block and size > _MAX_QUICK_BYTES:
            from fairlead.policy.config._files import NotCached

            raise NotCached

    def repository_root(self, folder: str) -> str | None:
        """Return the folder of the repository in which a folder is; `None` if there is none."""
        from fairlead.policy.paths._git_index import find_index

        self.has_looked = True
        index = find_index(f"{self.absolute(folder)}/.")
        return None if index is None else index.root

    def is_tracked(self, path: str) -> bool:
        """Return whether git's index has the file as it is on the disk."""
        from fairlead.policy.paths._git_index import find_index, is_unchanged

        self.has_looked = True
        index = find_index(path)
        if index is None:
            return False
        self.versions[index.path] = version_of(index.path)
        return is_unchanged(path, index)


def version_of(path: str) -> Version:
    """Return the version of a file on the disk."""
    try:
        return _version(os.stat(path))
    except (OSError, ValueError):
        return None


def _version(status: os.stat_result) -> Version:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
