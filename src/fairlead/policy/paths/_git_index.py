"""Finds out whether a file matches git's index, by its size and time, as git itself does. Starts no process."""

from __future__ import annotations

import os
from stat import S_ISLNK
from typing import Final, NamedTuple

_MAX_INDEX_BYTES: Final = 16 * 1024 * 1024
_HEADER: Final = 62
"""Bytes of an entry before its path: times, numbers, size, hash, flags."""
_EXTENDED: Final = 0x4000
_LENGTH: Final = 0xFFF
_BILLION: Final = 1_000_000_000


class GitIndex(NamedTuple):
    """The index of a repository."""

    root: str
    """The folder that its names are relative to."""
    path: str


def find_index(path: str) -> GitIndex | None:
    """Return the index of the repository that contains a file; `None` if there is none."""
    folder = os.path.dirname(path)
    while folder.strip("/"):  # `//bin` is below `//`, whose parent it is itself
        git = f"{folder}/.git"
        if os.path.isdir(git):
            return GitIndex(folder, f"{git}/index")
        if os.path.isfile(git):  # a worktree or a submodule
            return GitIndex(folder, f"{_linked_folder(git)}/index")
        folder = os.path.dirname(folder)
    return None


def _linked_folder(pointer: str) -> str:
    try:
        with open(pointer, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(4096)
    except OSError:
        text = ""
    return os.path.join(os.path.dirname(pointer), text.removeprefix("gitdir:").strip())


def is_unchanged(path: str, index: GitIndex) -> bool:
    """Return whether the index lists a file with the size and time that it has on the disk.

    Only an index that was written after the file proves it: git calls any other entry racy, and reads the file.
    Return `False` for a link, too, and if the index is too large or cannot be read.
    """
    try:
        status, index_status = os.lstat(path), os.stat(index.path)
        if S_ISLNK(status.st_mode) or index_status.st_size > _MAX_INDEX_BYTES:
            return False
        if status.st_mtime_ns >= index_status.st_mtime_ns:
            return False
        with open(index.path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    offset = _find_entry(data, os.fsencode(path[len(index.root) + 1 :]))
    if offset < 0:
        return False
    seconds, nanoseconds = _number(data, offset + 8), _number(data, offset + 12)
    same_time = seconds == status.st_mtime_ns // _BILLION and nanoseconds in {0, status.st_mtime_ns % _BILLION}
    return same_time and _number(data, offset + 36) == status.st_size & 0xFFFFFFFF


def _find_entry(data: bytes, name: bytes) -> int:
    """Return where the entry of a file starts; -1 if there is none."""
    offset = data.find(name + b"\0")
    while offset >= 0:
        for header in (_HEADER, _HEADER + 2):
            start = offset - header
            flags = int.from_bytes(data[start + 60 : start + 62], "big") if start >= 0 else 0
            extended = bool(flags & _EXTENDED)
            if flags & _LENGTH == min(len(name), _LENGTH) and extended == (header > _HEADER):
                return start
        offset = data.find(name + b"\0", offset + 1)
    return -1


def _number(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "big")
