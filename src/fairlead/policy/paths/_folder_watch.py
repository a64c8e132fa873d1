"""Watches many folders for changes with one system call, instead of one for each folder. Linux only.

The kernel queues a change of a folder (inotify) before the system call that made it returns. So a process that reads
the queue after an event has arrived knows every change that was made before the event. Changes that inotify does not
report are handled separately: changes of mounts are polled in the same call, and folders on network file systems, or
behind links, are not watched.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from select import EPOLLERR, EPOLLIN, EPOLLPRI, epoll
from stat import S_ISDIR
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ctypes import CDLL

_MAX_WATCHES = 2048
_READ_SIZE = 64 * 1024
_EVENT = struct.Struct("iIII")
"""The head of an inotify event: the watch, the mask of what happened, a cookie, the length of the name that follows."""
_MOVED = 0xEC00
"""IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_Q_OVERFLOW, IN_IGNORED: a path may lead to another folder now."""
_MASK = 0x3000FC4
"""IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF.

With IN_ONLYDIR and IN_DONT_FOLLOW: neither files nor links can be watched."""
_MAX_DEPTH = 100
_LOCAL = frozenset({b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"tmpfs", b"f2fs", b"zfs", b"overlay", b"bcachefs"})
"""File systems that only this kernel changes."""


class FolderWatch:
    """Counts the changes of folders. For use in one thread. Creating it raises `OSError` if the system cannot watch."""

    def __init__(self, names: Iterable[str]) -> None:
        """Watch for files with these names. Other files come and go all the time in a home folder or in `/tmp`."""
        self._own_names = frozenset(map(os.fsencode, names))
        self._names = set(self._own_names)
        """The names to watch for, and the names of missing files and folders."""
        self._watches: dict[str, int] = {}
        self._complete: set[str] = set()
        """The watched folders of which all folders above are watched, too."""
        self._folder_names: set[bytes] = set()
        """The names of the watched folders. The kernel reports the end of a folder only when no process uses it any
        more, but the change of its name in the folder above at once."""
        self._added = 0
        self._whole: set[int] = set()
        """The watches of folders in which changes of all names count."""
        self._libc = _libc()
        self._types: list[tuple[str, bytes]] = []
        """Mount points and the types of their file systems, the longest first."""
        self._generation = 1
        self._queue = self._open_queue()
        self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._changes = epoll(2)
        self._changes.register(self._queue, EPOLLIN)
        self._changes.register(self._mounts, EPOLLPRI | EPOLLERR)

    def close(self) -> None:
        """Stop watching."""
        self._changes.close()
        os.close(self._queue)
        os.close(self._mounts)

    def generation(self) -> int:
        """Return a number that differs once anything has changed in the watched folders."""
        for descriptor, _ in self._changes.poll(0):
            if descriptor == self._mounts:
                self._types = []
                self._forget()
                self._generation += 1
            elif self._read():
                self._generation += 1
        return self._generation

    def add(self, path: str, *, every_name: bool = False) -> bool:
        """Watch a folder, or the nearest folder above a missing path. Return `False` if it cannot be watched.

        With `every_name`, changes of all names in the folder count.
        """
        if path in self._complete and (not every_name or self._watches[path] in self._whole):
            return True
        above, _, name = path.rpartition("/")
        try:
            if not S_ISDIR(os.lstat(path).st_mode) or path.count("/") > _MAX_DEPTH or not self._is_local(path):
                return False
        except FileNotFoundError:
            self._names.add(os.fsencode(name))
            return self.add(above or "/")
        except (OSError, ValueError):
            return False
        return self._add_existing(path, every_name=every_name)

    def _add_existing(self, path: str, *, every_name: bool) -> bool:
        watch = self._watch(path)
        if watch < 0 or os.path.realpath(path) != path:  # it was watched first: a later change is reported
            return False
        if every_name:
            self._whole.add(watch)
        if path != "/" and not self.add(path.rpartition("/")[0] or "/"):  # the folders above may be renamed, too
            return False
        if path not in self._watches:
            return self.add(path, every_name=every_name)  # there were too many watches meanwhile
        self._complete.add(path)
        return True

    def _watch(self, path: str) -> int:
        watch = self._watches.get(path, -1)
        if watch < 0:
            self._added += 1
            if max(self._added, len(self._names)) >= _MAX_WATCHES:
                self._start_again()
            watch = self._libc.inotify_add_watch(self._queue, os.fsencode(path), _MASK)
            if watch >= 0:
                self._watches[path] = watch
                self._folder_names.add(os.fsencode(path.rpartition("/")[2]))
        return watch

    def _open_queue(self) -> int:
        queue: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if queue < 0:
            raise OSError(0, "inotify_init1 failed")
        return queue

    def _start_again(self) -> None:
        """Stop watching all folders, because they are too many: most belong to projects that are no longer in use."""
        os.close(self._queue)  # which also takes it out of `_changes`
        self._queue = self._open_queue()
        self._changes.register(self._queue, EPOLLIN)
        self._added = 0
        self._forget()
        self._folder_names.clear()
        self._whole.clear()
        self._names = set(self._own_names)
        self._generation += 1

    def _forget(self) -> None:
        """Forget which paths are watched, so that each is checked again: it may lead to another folder now."""
        self._watches.clear()
        self._complete.clear()

    def _read(self) -> bool:
        """Read the queue. Return whether anything relevant has changed."""
        matters = False
        with suppress(BlockingIOError):
            while True:
                data, offset = os.read(self._queue, _READ_SIZE), 0
                while offset < len(data):
                    watch, what, _, length = _EVENT.unpack_from(data, offset)
                    offset += _EVENT.size + length
                    name = data[offset - length : offset].rstrip(b"\0")
                    is_folder = name in self._folder_names
                    matters = matters or not name or is_folder or name in self._names or watch in self._whole
                    if is_folder or what & _MOVED:
                        self._forget()
        return matters

    def _is_local(self, path: str) -> bool:
        self._types = self._types or _read_mounts(self._mounts)
        below = f"{path.rstrip('/')}/"
        return next((kind for point, kind in self._types if below.startswith(point)), b"") in _LOCAL


def _read_mounts(mounts: int) -> list[tuple[str, bytes]]:
    os.lseek(mounts, 0, os.SEEK_SET)
    table: dict[str, bytes] = {}
    text = b""
    while data := os.read(mounts, _READ_SIZE):
        text += data
    for line in text.splitlines():
        fields, _, more = line.partition(b" - ")
        point = fields.split()[4].decode("unicode_escape").encode("latin-1")  # a blank in it is written as `\040`
        table[f"{os.fsdecode(point).rstrip('/')}/"] = more.split()[0]  # a later mount covers an earlier one
    return sorted(table.items(), key=lambda mount: -len(mount[0]))


def _libc() -> CDLL:
    from ctypes import CDLL

    libc = CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        raise OSError(0, "this system has no inotify")
    return libc
