"""Watches many folders for changes: one question to the kernel instead of one for each folder. Linux only.

The kernel queues what happens in a folder (inotify) before the call returns that has made it happen. So whoever reads
the queue after an event has arrived knows of every change that was made before it. What the queue does not have is not
left to it: changes of mounts are asked for in the same call, and folders of network file systems, or behind links, are
not watched.
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
"""The watch, what happened, a number that belongs to it, the length of the name behind it."""
_MOVED = 0xEC00
"""IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_Q_OVERFLOW, IN_IGNORED: a path may mean another folder from here on."""
_MASK = 0x1000FC4
"""IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF; IN_ONLYDIR."""
_LOCAL = frozenset({b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"tmpfs", b"f2fs", b"zfs", b"overlay", b"bcachefs"})
"""File systems that nobody changes but this kernel."""


class FolderWatch:
    """Counts the changes of folders. For one thread. Raises `OSError` if the system cannot watch."""

    def __init__(self, names: Iterable[str]) -> None:
        """Watch for files of these names; other files come and go all the time in a home or in `/tmp`."""
        self._own_names = frozenset(map(os.fsencode, names))
        self._names = set(self._own_names)
        """These, and the names of what is missing."""
        self._watches: dict[str, int] = {}
        self._added = 0
        self._whole: set[int] = set()
        """Folders in which every name matters."""
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
        """Watch no more."""
        self._changes.close()
        os.close(self._queue)
        os.close(self._mounts)

    def generation(self) -> int:
        """Return a number that is another one once anything has changed in the folders that are watched."""
        for descriptor, _ in self._changes.poll(0):
            if descriptor == self._mounts:
                self._types = []
                self._watches.clear()
                self._generation += 1
            elif self._read():
                self._generation += 1
        return self._generation

    def add(self, path: str, *, every_name: bool = False) -> bool:
        """Watch a folder, or where a path is missing the last folder above it. Return `False` if that cannot be.

        Changes of it are known from here on. With `every_name`, whatever changes in it counts.
        """
        try:
            if not S_ISDIR(os.lstat(path).st_mode):
                return False
        except FileNotFoundError:
            above, _, name = path.rpartition("/")
            self._names.add(os.fsencode(name))
            return self.add(above or "/")
        except (OSError, ValueError):
            return False
        if os.path.realpath(path) != path or not self._is_local(path):
            return False
        watch = self._watch(path)
        if watch >= 0 and every_name:
            self._whole.add(watch)
        # The folders above may be renamed, too.
        return watch >= 0 and (path == "/" or self.add(path.rpartition("/")[0] or "/"))

    def _watch(self, path: str) -> int:
        watch = self._watches.get(path, -1)
        if watch < 0:
            self._added += 1
            if max(self._added, len(self._names)) >= _MAX_WATCHES:
                self._start_again()
            watch = self._libc.inotify_add_watch(self._queue, os.fsencode(path), _MASK)
            if watch >= 0:
                self._watches[path] = watch
        return watch

    def _open_queue(self) -> int:
        queue: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if queue < 0:
            raise OSError(0, "inotify_init1 failed")
        return queue

    def _start_again(self) -> None:
        """Forget all folders: most of them are of projects that nobody works in any more."""
        os.close(self._queue)  # which also takes it out of `_changes`
        self._queue = self._open_queue()
        self._changes.register(self._queue, EPOLLIN)
        self._added = 0
        self._watches.clear()
        self._whole.clear()
        self._names = set(self._own_names)
        self._generation += 1

    def _read(self) -> bool:
        """Return whether something has happened that matters."""
        matters = False
        with suppress(BlockingIOError):
            while True:
                data, at = os.read(self._queue, _READ_SIZE), 0
                while at < len(data):
                    watch, what, _, length = _EVENT.unpack_from(data, at)
                    at += _EVENT.size + length
                    name = data[at - length : at].rstrip(b"\0")
                    matters = matters or not name or name in self._names or watch in self._whole
                    if what & _MOVED:
                        self._watches.clear()
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
        table[f"{os.fsdecode(point).rstrip('/')}/"] = more.split()[0]  # of two at one point, the later covers the other
    return sorted(table.items(), key=lambda mount: -len(mount[0]))


def _libc() -> CDLL:
    from ctypes import CDLL

    libc = CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        raise OSError(0, "this system has no inotify")
    return libc
