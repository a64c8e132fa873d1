"""Files that only this user can read: replaced as a whole, and read only if no one else could write them."""

from __future__ import annotations

import os
import stat

from fairlead.lazy import suppress


def write_private(path: str, data: bytes, *, durable: bool = False) -> None:
    """Replace a file as a whole, with mode 0600. Raise `OSError`, which names this path, if that fails.

    A reader finds the old content or the new one, also if this process is killed. The content is written to a new file
    `PATH.RANDOM.tmp`, so writers in other processes and threads do not disturb each other: the last one wins. No link
    is followed: one at this path is replaced. If writing fails, the new file is removed; only a writer that is killed
    leaves it behind. The folder must exist.

    With `durable`, the new content survives a power failure once this returns; without, the old one may come back.
    """
    temporary = f"{path}.{os.urandom(6).hex()}.tmp"  # two namespaces may have the same pid at the same time
    try:
        _write_new(temporary, data, durable=durable)
        os.replace(temporary, path)
        if durable:
            sync_folder(os.path.dirname(path))
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):  # nobody knows the temporary name
            raise OSError(error.errno, error.strerror, path) from None
        raise


def read_private(path: str) -> bytes:
    """Return the content of a file that only this user can write.

    Raise `PermissionError` if others can write it or own it, or if it is no regular file, and `OSError` if it cannot be
    read. No link is followed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        others_may_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or others_may_write:
            raise PermissionError(path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def sync_folder(folder: str) -> None:
    """Write a folder to the disk, so that new and deleted names survive a power failure. Raise `OSError` on failure."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: str, data: bytes, *, durable: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(descriptor)
