"""Keeps what each policy file said when it was last right: read faster than YAML, and there when the file breaks."""

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
TRUSTED_AGE = 100_000_000
"""In nanoseconds. Two changes within one tick of the disk's clock leave the same stamp, so a young file has none."""


class CachedPolicy(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of one file."""

    version: str
    file: str
    stamp: Stamp
    document: dict[str, Any]
    tried: bool = False
    """A person has only had it checked: no event was decided by it, so it does not hold if the file goes."""


def stamp_of(status: os.stat_result) -> Stamp:
    """Give what changes whenever the file does. The change time is there because nobody can set it back."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


def recall_policy(folder: str, file: str) -> CachedPolicy | None:
    """Find what is kept of a file. Whatever is not ours, or not of this version, is not there."""
    try:
        data = _read_own(place_of(folder, file))
        entry = msgspec.msgpack.decode(data, type=CachedPolicy)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return entry if entry.version == _VERSION and entry.file == os.path.realpath(file) else None


def remember_policy(  # noqa: PLR0913 - what is kept, and where
    folder: str, file: str, status: os.stat_result, document: dict[str, Any], now: int, *, tried: bool = False
) -> None:
    """Keep what a file says. Raises `OSError` if it cannot."""
    stamp = stamp_of(status) if now - status.st_ctime_ns > TRUSTED_AGE else ()
    entry = CachedPolicy(_VERSION, os.path.realpath(file), stamp, document, tried)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _write_whole(place_of(folder, file), msgspec.msgpack.encode(entry))


def place_of(folder: str, file: str) -> str:
    """Name the entry. Two files with one name would only take it from each other: the entry says whose it is."""
    path = os.fsencode(os.path.realpath(file))
    return f"{folder}/{crc32(path):08x}{crc32(path[::-1], 1):08x}.msgpack"


def _read_own(path: str) -> bytes:
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


def _write_whole(path: str, data: bytes) -> None:
    """Write a file so that a reader sees all of it, or what was there before."""
    draft = f"{path}.{os.urandom(6).hex()}"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(draft, path)
    except OSError:
        _remove(draft)
        raise


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
