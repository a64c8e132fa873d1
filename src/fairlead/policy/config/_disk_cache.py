"""Caches each policy file as it was when last valid: faster to read than YAML, and there when the file breaks."""

from __future__ import annotations

import os
import stat
import sys
from binascii import crc32
from contextlib import suppress
from typing import Any

import msgspec

Stamp = tuple[int, ...]

_VERSION = f"{sys.modules['fairlead'].__version__} {sys.version_info[:2]}"  # only the command line may import the top
MIN_AGE = 100_000_000
"""In nanoseconds. Two changes within one tick of the disk's clock leave the same stamp, so a younger file has none."""


class CachedPolicy(msgspec.Struct, frozen=True, array_like=True):
    """One cached file."""

    version: str
    file: str
    stamp: Stamp
    document: dict[str, Any]
    only_validated: bool = False
    """No event was decided by it, so it does not apply once the file is deleted."""


def stamp_of(status: os.stat_result) -> Stamp:
    """Return values that differ once the file has changed. The change time is among them: it cannot be set back."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


def read_cached_policy(folder: str, file: str) -> CachedPolicy | None:
    """Read a cached file. An entry of another user or version counts as missing."""
    try:
        data = _read_own(cache_path(folder, file))
        entry = msgspec.msgpack.decode(data, type=CachedPolicy)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return entry if entry.version == _VERSION and entry.file == os.path.realpath(file) else None


def write_cached_policy(  # noqa: PLR0913 - an entry's fields, and its path
    folder: str, file: str, status: os.stat_result, document: dict[str, Any], now: int, *, only_validated: bool = False
) -> None:
    """Cache a file. Raises `OSError` if that fails."""
    stamp = stamp_of(status) if now - status.st_ctime_ns > MIN_AGE else ()
    entry = CachedPolicy(_VERSION, os.path.realpath(file), stamp, document, only_validated)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _write_atomically(cache_path(folder, file), msgspec.msgpack.encode(entry))


def cache_path(folder: str, file: str) -> str:
    """Return the path of a file's entry. The entry names its file, so a collision only costs the cache."""
    path = os.fsencode(os.path.realpath(file))
    return f"{folder}/{crc32(path):08x}{crc32(path[::-1], 1):08x}.msgpack"


def _read_own(path: str) -> bytes:
    """Read a file that nobody but this user can write."""
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


def _write_atomically(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.urandom(6).hex()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
