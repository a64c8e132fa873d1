"""Where a record waits for the daemon if its event met none: one file each, written beside and renamed.

Whoever puts one lives for one event and pays for every import. The daemon takes them in when it comes, the oldest
first; it tells by the id which of them its predecessor had written into the journal before it was killed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EIO, EMFILE, ENFILE, ENOENT, ENOMEM
from time import time
from typing import TYPE_CHECKING

from fairlead.journal._errors import JournalError, SpoolFull
from fairlead.journal._folder import make_folder
from fairlead.journal._lines import LONGEST, decode, encode, name_of
from fairlead.journal._records import DaemonRecord
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.journal._records import CommandsRecord, EventRecord

MAX_SPOOL_FILES = 10_000
MOST_BYTES = 64 * 1024 * 1024
MOST_BROKEN = 100

_SUFFIX = ".json"
_BEGUN = ".tmp"
_ABANDONED = 60.0
"""Seconds after which a file that was begun will not be finished any more."""

_SMALL_FOLDER = 8192
"""Bytes of a folder that cannot hold too many files: every file system counts a byte or more for each name."""

_LOOKED_AT = 500
"""Files whose size is looked at; the others are taken to be like them."""

_LONGEST_ID = 100

_PASSING = (ENOENT, EMFILE, ENFILE, ENOMEM, EIO)
"""Errors that say nothing about a file: somebody took it, or the system has other troubles."""


def spool_folder() -> str:
    """Give the folder of this user's spool."""
    return f"{state_folder()}/spool"


def put(folder: str, record: EventRecord | CommandsRecord) -> None:
    """Leave a record for the daemon. Raises `SpoolFull` or another `JournalError`, and then nothing is written."""
    name = name_of(record) + _SUFFIX
    if not _is_plain(record.id):
        raise JournalError(f"{record.id[:_LONGEST_ID]!r} is no id of an event; nothing was recorded")
    begun = f"{folder}/.{name}.{os.getpid()}{_BEGUN}"
    try:
        _refuse_if_full(folder)
        _write(begun, encode(record))
        os.rename(begun, f"{folder}/{name}")
    except OSError as error:
        with suppress(OSError):
            os.unlink(begun)
        raise JournalError(f"{folder}: cannot be written: {error.strerror}; nothing was recorded") from error


def take(folder: str, *, now: float | None = None) -> Iterator[tuple[str, EventRecord | CommandsRecord]]:
    """Give what waits, the oldest first, and how an event's commands ended after the event.

    A file stays until `remove` is called with its name. One that holds no record is set aside into `broken/`, and one
    that was begun over a minute ago and not finished is removed.
    """
    names = _names(folder)
    _remove_abandoned(folder, names, time() if now is None else now)
    for name in sorted(_waiting(names), key=lambda name: name.removesuffix(_SUFFIX)):
        try:
            record = _read(f"{folder}/{name}")
        except (OSError, ValueError, RecursionError) as error:
            if getattr(error, "errno", None) not in _PASSING:
                _set_aside(folder, name)
            continue
        yield name, record


def remove(folder: str, name: str) -> None:
    """Remove a file that was taken."""
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/{name}")


def pending(folder: str) -> int:
    """Count what waits."""
    return len(_waiting(_names(folder)))


# -- putting -------------------------------------------------------------------------------------------


def _is_plain(name: str) -> bool:
    """Whether a name can be that of a file, and of none outside."""
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum() and len(name) <= _LONGEST_ID


def _refuse_if_full(folder: str) -> None:
    """Refuse if too much waits already. Costs one look at the folder, as long as it is small."""
    try:
        if os.stat(folder).st_size <= _SMALL_FOLDER:
            return
    except FileNotFoundError:
        make_folder(folder)
        return
    names = _names(folder)
    size = _size(folder, names) if len(names) * LONGEST > MOST_BYTES else 0
    if len(names) >= MAX_SPOOL_FILES or size >= MOST_BYTES:
        raise SpoolFull(
            f"{folder}: {len(names)} events wait for the daemon, and no more are kept; nothing was recorded; "
            "start it with `fairlead daemon start`"
        )


def _size(folder: str, names: list[str]) -> int:
    """Estimate how many bytes the files have; to look at each of thousands would take longer than to decide."""
    some = names[:: len(names) // _LOOKED_AT + 1]
    size = 0
    for name in some:
        with suppress(FileNotFoundError):
            size += os.stat(f"{folder}/{name}").st_size
    return size * len(names) // len(some)


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        written = os.write(file, data)
    finally:
        os.close(file)
    if written < len(data):
        raise OSError(0, f"only {written} of {len(data)} bytes fitted; is the disk full?")


# -- taking --------------------------------------------------------------------------------------------


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _waiting(names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]


def _read(path: str) -> EventRecord | CommandsRecord:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would block
    try:
        data = os.read(file, LONGEST + 1)
    finally:
        os.close(file)
    record = decode(data)
    if isinstance(record, DaemonRecord) or f"/{name_of(record)}{_SUFFIX}" != path[path.rfind("/") :]:
        raise ValueError("the file has the name of another record")
    return record


def _set_aside(folder: str, name: str) -> None:
    """Keep a file that holds no record, so that a person can look at it; of too many, the oldest go."""
    aside = f"{folder}/broken"
    with suppress(OSError):
        make_folder(aside)
        os.rename(f"{folder}/{name}", f"{aside}/{name}")
    for old in sorted(_names(aside))[:-MOST_BROKEN]:
        with suppress(OSError):
            os.unlink(f"{aside}/{old}")


def _remove_abandoned(folder: str, names: list[str], now: float) -> None:
    for name in names:
        if name.startswith(".") and name.endswith(_BEGUN):
            with suppress(FileNotFoundError):
                if os.stat(path := f"{folder}/{name}").st_mtime < now - _ABANDONED:
                    os.unlink(path)
