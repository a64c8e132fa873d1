"""Restores a protected file, and keeps the version that had replaced it. Raises an error before any content is lost."""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_IMODE, S_ISLNK, S_ISREG, S_IWUSR
from time import time_ns
from typing import TYPE_CHECKING

from fairlead.daemon.integrity._file_state import describe, read_state
from fairlead.errors import FairleadError
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from fairlead.daemon.integrity._file_state import DetectedChange, FileState

MAX_KEPT = 64 * 1024 * 1024
"""The largest size in bytes of a changed file that is kept. A larger one is left where it is."""
MAX_KEPT_FILES = 100


class RestoreError(FairleadError):
    """A file could not be restored. It stays as the tool has left it."""


def kept_folder() -> str:
    """Return the folder in which changed versions of restored files are kept."""
    return f"{state_folder()}/integrity"


def restore(change: DetectedChange) -> str:
    """Undo a change, and return the path at which the changed version is kept; "" if there is none.

    The changed version is kept first. The file is then replaced by one rename. A file with several hard links is
    written in place instead, because a new file would leave the other links as they are. Raise `RestoreError` if
    the file cannot be restored.
    """
    path, before = change.path, change.before
    if before is None:
        raise RestoreError("it was not there before")
    try:
        after = read_state(path)
        if describe(before, after) is None:  # another name of the same file was put back before
            return ""
        if change.what == "mode" and describe(before, after) == "mode":
            os.chmod(path, S_IMODE(before.mode))
            return ""
        return _restore_version(path, before, after)
    except OSError as error:
        raise RestoreError(str(error)) from None


def _restore_version(path: str, before: FileState, after: FileState | None) -> str:
    if before.target is None and before.content is None:
        raise RestoreError("there is no copy of it: it is too large, or could not be read")
    if before.target is not None and after is not None and after.target == before.target:
        raise RestoreError("it is a link, and the file that it leads to has changed")
    folder = os.path.dirname(path)
    if os.path.realpath(folder) != folder:
        raise RestoreError(f"a folder above it was replaced by a link: {folder}")
    kept = "" if after is None else _keep(path, after)
    os.makedirs(folder, exist_ok=True)
    if after is not None and after.inode == before.inode and after.links > 1 and S_ISREG(after.mode):
        _write_in_place(path, before)
    else:
        _replace(path, before)
    return kept


def _keep(path: str, after: FileState) -> str:
    """Copy the current version to `kept_folder()`, and return its new path. A special file or a folder is moved."""
    folder = kept_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _drop_oldest(folder)
    kept = f"{folder}/{time_ns()}-{os.path.basename(path)[:100]}"
    if S_ISLNK(after.mode):
        os.symlink(os.readlink(path), kept)
    elif S_ISREG(after.mode):
        _copy(path, kept)
    else:
        os.rename(path, kept)
    return kept


def _copy(path: str, kept: str) -> None:
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(source, "rb") as file:
        content = file.read(MAX_KEPT + 1)
    if len(content) > MAX_KEPT:
        raise RestoreError(f"what is there now is too large to keep: more than {MAX_KEPT // 1024 // 1024} MB")
    try:
        _write_new(kept, content, 0o600)
    except OSError as error:
        with suppress(OSError):
            os.unlink(kept)
        raise RestoreError(f"what is there now cannot be kept: {error}") from None


def _replace(path: str, before: FileState) -> None:
    temporary = f"{path}.fairlead-{os.getpid()}"
    try:
        if before.target is not None:
            os.symlink(before.target, temporary)
        else:
            _write_new(temporary, before.content or b"", S_IMODE(before.mode))
            os.utime(temporary, ns=(before.modified_at, before.modified_at))
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _write_new(path: str, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _write_in_place(path: str, before: FileState) -> None:
    os.chmod(path, S_IMODE(before.mode) | S_IWUSR)
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "wb") as file:
        file.write(before.content or b"")
        file.truncate()
        os.fchmod(descriptor, S_IMODE(before.mode))


def _drop_oldest(folder: str) -> None:
    """Delete the oldest kept versions, to make room for one more. Their names begin with the time."""
    names = sorted(os.listdir(folder))
    for name in names[: max(0, len(names) - MAX_KEPT_FILES + 1)]:
        with suppress(OSError):
            os.unlink(f"{folder}/{name}")
