"""The state of one file: enough to notice a change, to describe it, and to undo it."""

from __future__ import annotations

import os
from hashlib import blake2b
from stat import S_IMODE, S_ISLNK, S_ISREG
from time import time_ns
from typing import Literal, NamedTuple

MAX_COPY = 1024 * 1024
"""The largest size in bytes of a file of which a copy is kept."""
MAX_HASHED = 8 * 1024 * 1024
"""The largest size in bytes of a file whose contents are compared. Of a larger file, times and sizes are compared."""
CLOCK_TICK = 20_000_000
"""Nanoseconds within which a second change of a file may leave its times as they are."""

_CHUNK = 256 * 1024

ChangeKind = Literal["added", "removed", "changed", "replaced", "mode"]
"""How a file has changed; `replaced`: by a link, a folder or another thing that is not a file."""


class FileState(NamedTuple):
    """The state of a file at one time. Every change of the file changes `changed_at` or `inode`."""

    changed_at: int
    """The inode's change time, which no program can set."""
    inode: int
    modified_at: int
    size: int
    mode: int
    links: int
    digest: bytes | None
    """`None` if the contents were not read."""
    content: bytes | None
    """The copy, if one is kept."""
    target: str | None
    """Where a symbolic link leads; `None` for any other file."""
    followed: tuple[int, int] | None
    """The change time and inode of the link's target; `None` if there is none."""
    is_racy: bool
    """Whether the file was read within a clock tick after a change: a further change may leave its times unchanged."""


class DetectedChange(NamedTuple):
    """What happened to a protected file."""

    path: str
    what: ChangeKind
    before: FileState | None
    """`None` if there was no file."""
    after: FileState | None
    """`None` if there is no file any more."""


def read_state(path: str, *, keep_copy: bool = False) -> FileState | None:
    """Return the state of a file; `None` if there is none. With `keep_copy`, it has the content of a small file."""
    seen_at = time_ns()
    try:
        status = os.lstat(path)
    except OSError:
        return None
    digest, content, target, followed = None, None, None, None
    if S_ISLNK(status.st_mode):
        target, digest, followed = _read_link(path)
    elif S_ISREG(status.st_mode) and status.st_size <= MAX_HASHED:
        digest, content = _read(path, keep_copy=keep_copy and status.st_size <= MAX_COPY)
    return FileState(
        status.st_ctime_ns,
        status.st_ino,
        status.st_mtime_ns,
        status.st_size,
        status.st_mode,
        status.st_nlink,
        digest,
        content,
        target,
        followed,
        is_racy=max(status.st_ctime_ns, followed[0] if followed else 0) > seen_at - CLOCK_TICK,
    )


def describe(before: FileState | None, after: FileState | None) -> ChangeKind | None:
    """Return how a file has changed between two states; `None` if its contents and permissions are the same."""
    if before is None or after is None:
        return None if before is after else "added" if before is None else "removed"
    if S_ISREG(before.mode) != S_ISREG(after.mode) or before.target != after.target:
        return "replaced"
    if not _has_same_content(before, after):
        return "changed"
    return "mode" if S_IMODE(before.mode) != S_IMODE(after.mode) else None


def _has_same_content(before: FileState, after: FileState) -> bool:
    """Return whether contents are the same, by hashes or, if these are unknown, by size, times, inode and links."""
    if before.digest is not None and after.digest is not None:
        return before.digest == after.digest
    if (before.size, before.modified_at) != (after.size, after.modified_at):
        return False
    is_explained = (before.mode, before.links, before.inode) != (after.mode, after.links, after.inode)
    return is_explained or before.changed_at == after.changed_at


def follow(path: str) -> tuple[int, int] | None:
    """Return the change time and the inode of a link's target; `None` if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ctime_ns, status.st_ino


def _read(path: str, *, keep_copy: bool) -> tuple[bytes | None, bytes | None]:
    """Return the hash of a file, and its contents if `keep_copy` is set and they fit in `MAX_COPY`, else `None`.

    Return `None` for both if it cannot be read, or is not a regular file.
    """
    hashed, content = blake2b(digest_size=20), []
    left = MAX_COPY if keep_copy else 0
    try:
        # Without O_NONBLOCK, opening a named pipe that has taken the file's place would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb", buffering=0) as file:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                return None, None
            read = 0
            while read <= MAX_HASHED and (chunk := file.read(_CHUNK)):
                read += len(chunk)
                hashed.update(chunk)
                content.append(chunk if read <= left else b"")
    except OSError:
        return None, None
    return hashed.digest(), b"".join(content) if keep_copy and read <= left else None


def _read_link(path: str) -> tuple[str | None, bytes | None, tuple[int, int] | None]:
    """Return the target of a link, the target's hash, and its change time with its inode.

    Each is `None` if it cannot be read, and the hash also if the file is larger than `MAX_HASHED`.
    """
    try:
        target, real = os.readlink(path), os.path.realpath(path)
    except OSError:
        return None, None, None
    try:
        is_small = os.stat(real).st_size <= MAX_HASHED
    except OSError:
        return target, None, None
    return target, _read(real, keep_copy=False)[0] if is_small else None, follow(path)
