"""Caches the last valid version of each policy file. It is faster to read, and applies if the file breaks."""

from __future__ import annotations

import os
import sys
from binascii import crc32

from fairlead.files import read_private, write_private
from fairlead.paths import make_private
from fairlead.structs import LIGHT, Struct, decode_msgpack, encode_msgpack

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:  # msgspec reads the annotations
    from typing import Any

Stamp = tuple[int, ...]

_VERSION = f"{sys.modules['fairlead'].__version__} {sys.version_info[:2]}"  # only the command line imports `fairlead`
MIN_AGE = 100_000_000
"""The minimum age of a file's last change, in nanoseconds, for its stamp to be kept.

Two changes within a tick of the disk's clock leave the same stamp.
"""


class CachedPolicy(Struct, frozen=True, array_like=True):
    """The cached version of one policy file."""

    version: str
    file: str
    stamp: tuple[int, ...]
    """The result of `stamp_of`; empty if the file had just changed, so that it is read again."""
    document: dict[str, Any]
    only_validated: bool = False
    """Whether no event was decided by this version, so that it does not apply once the file is deleted."""
    digest: str = ""
    """SHA-256 of the file's bytes; empty in an entry of an earlier version."""


class PolicyFileContents(Struct, frozen=True):
    """The contents of a policy file, with its status when it was read."""

    document: dict[str, Any]
    status: os.stat_result
    digest: str


def stamp_of(status: os.stat_result) -> Stamp:
    """Return values that differ after the file has changed. They include the change time, which cannot be set back."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


def read_cached_policy(folder: str, file: str) -> CachedPolicy | None:
    """Return a file's entry in the cache folder; `None` if there is none.

    An entry that is damaged, or of another user or version, counts as missing.
    """
    try:
        data = read_private(cache_path(folder, file))
        entry = decode_msgpack(data, type=CachedPolicy)
    except (OSError, ValueError):
        return None
    return entry if entry.version == _VERSION and entry.file == os.path.realpath(file) else None


def write_cached_policy(
    folder: str, file: str, contents: PolicyFileContents, now: int, *, only_validated: bool = False
) -> None:
    """Write a file's entry into the cache folder. Raises `OSError` if that fails.

    `now` is the time in nanoseconds. `only_validated`: no event was decided by this version.
    """
    stamp = stamp_of(contents.status) if now - contents.status.st_ctime_ns > MIN_AGE else ()
    entry = CachedPolicy(_VERSION, os.path.realpath(file), stamp, contents.document, only_validated, contents.digest)
    make_private(folder)
    write_private(cache_path(folder, file), encode_msgpack(entry))


def cache_path(folder: str, file: str) -> str:
    """Return the path of a file's cache entry. The entry names its file, so a collision is only a cache miss."""
    return f"{folder}/{short_name(os.path.realpath(file))}.msgpack"


def short_name(text: str) -> str:
    """Return a file name for any text. Two texts may get the same name, so a cache entry must contain its text."""
    data = os.fsencode(text)
    return f"{crc32(data):08x}{crc32(data[::-1], 1):08x}"
