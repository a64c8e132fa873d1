"""The spool: keeps the records of events that no daemon has recorded, a file for each, until a daemon reads them.

A file is written under a temporary name and renamed. This module imports little, because the process that writes
handles a single event. The daemon reads the spool when it starts, oldest record first. By their ids it recognizes
records that an earlier daemon wrote to the journal before it was killed.
"""

from __future__ import annotations

import os
from errno import EIO, EMFILE, ENFILE, ENOENT, ENOMEM
from time import time

from fairlead.journal._errors import JournalError, SpoolFull
from fairlead.journal._lines import MAX_LINE_BYTES, decode, encode, record_key
from fairlead.journal._records import CostRecord, DaemonRecord
from fairlead.lazy import suppress
from fairlead.paths import make_private, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.journal._records import CommandsRecord, EventRecord

MAX_SPOOL_FILES = 10_000
MAX_SPOOL_BYTES = 64 * 1024 * 1024
MAX_BROKEN_FILES = 100

_SUFFIX = ".json"
_TEMPORARY = ".tmp"
_ABANDONED_AFTER = 60.0
"""Seconds after which a temporary file counts as one that will never be finished."""

_SMALL_FOLDER_BYTES = 8192
"""A folder of at most this size cannot contain too many files, because each name adds at least a byte to its size."""

_SIZE_SAMPLES = 500
"""The approximate number of files whose size is measured. The others are assumed to be of the same size on average."""

_MAX_ID_LENGTH = 100

_TRANSIENT_ERRORS = (ENOENT, EMFILE, ENFILE, ENOMEM, EIO)
"""Errors that do not mean that a file is invalid: another process took it, or the system is short of a resource."""


def spool_folder() -> str:
    """Return the path of this user's spool, a folder."""
    return f"{state_folder()}/spool"


def spool_record(folder: str, record: EventRecord | CommandsRecord) -> None:
    """Write a record to the spool.

    Raise `SpoolFull` if the spool has reached its limit, another `JournalError` if the id of the record is invalid or
    the file cannot be written.
    """
    name = record_key(record) + _SUFFIX
    if not _is_safe_id(record.id):
        raise JournalError(f"{record.id[:_MAX_ID_LENGTH]!r} is not a valid event id; nothing was recorded")
    temporary = f"{folder}/.{name}.{os.getpid()}{_TEMPORARY}"
    try:
        _raise_if_full(folder)
        _write(temporary, encode(record))
        os.rename(temporary, f"{folder}/{name}")
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise JournalError(f"{folder}: cannot be written: {error.strerror}; nothing was recorded") from error


def read_spool(folder: str, *, now: float | None = None) -> Iterator[tuple[str, EventRecord | CommandsRecord]]:
    """Yield the name of each file and its record, oldest first; a `CommandsRecord` comes after the record of its event.

    A file stays until `remove_spooled` is called with its name. A file that is not a record is moved to the subfolder
    `broken`, and a temporary file that is over a minute old at the Unix time `now` is deleted. A file that cannot be
    read for now is skipped.
    """
    names = _names(folder)
    _remove_abandoned(folder, names, time() if now is None else now)
    for name in sorted(_complete(names), key=lambda name: name.removesuffix(_SUFFIX)):
        try:
            record = _read(f"{folder}/{name}")
        except (OSError, ValueError, RecursionError) as error:
            if getattr(error, "errno", None) not in _TRANSIENT_ERRORS:
                _move_to_broken(folder, name)
            continue
        yield name, record


def remove_spooled(folder: str, name: str) -> None:
    """Delete the file of a record, by the name that `read_spool` has yielded. It may be gone already."""
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/{name}")


def count_spooled(folder: str) -> int:
    """Return how many records are in the spool."""
    return len(_complete(_names(folder)))


def has_spooled(folder: str) -> bool:
    """Return whether there is a record in the spool. Of a large folder, only the first names are read."""
    try:
        with os.scandir(folder) as entries:
            return any(_complete([entry.name]) for entry in entries)
    except FileNotFoundError:
        return False


# -- writing -------------------------------------------------------------------------------------------


def _is_safe_id(name: str) -> bool:
    """Return whether an id can be part of a file name in the spool, and cannot be a path to another folder."""
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum() and len(name) <= _MAX_ID_LENGTH


def _raise_if_full(folder: str) -> None:
    """Raise `SpoolFull` if the spool has reached its limit. Create the folder if it is missing.

    For a small folder, this takes a single `stat`.
    """
    try:
        if os.stat(folder).st_size <= _SMALL_FOLDER_BYTES:
            return
    except FileNotFoundError:
        make_private(folder)
        return
    names = _names(folder)
    size = _estimated_size(folder, names) if len(names) * MAX_LINE_BYTES > MAX_SPOOL_BYTES else 0
    if len(names) >= MAX_SPOOL_FILES or size >= MAX_SPOOL_BYTES:
        raise SpoolFull(
            f"{folder}: the spool is full ({len(names)} events wait for the daemon); nothing was recorded; "
            "start the daemon with `fairlead daemon start`"
        )


def _estimated_size(folder: str, names: list[str]) -> int:
    """Return the approximate size of all files in bytes, from a sample: to `stat` thousands of files is too slow."""
    sample = names[:: len(names) // _SIZE_SAMPLES + 1]
    size = 0
    for name in sample:
        with suppress(FileNotFoundError):
            size += os.stat(f"{folder}/{name}").st_size
    return size * len(names) // len(sample)


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        written = os.write(file, data)
    finally:
        os.close(file)
    if written < len(data):
        raise OSError(0, f"only {written} of {len(data)} bytes were written; is the disk full?")


# -- reading -------------------------------------------------------------------------------------------


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _complete(names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]


def _read(path: str) -> EventRecord | CommandsRecord:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would block
    try:
        data = os.read(file, MAX_LINE_BYTES + 1)
    finally:
        os.close(file)
    record = decode(data)
    if isinstance(record, DaemonRecord | CostRecord) or f"/{record_key(record)}{_SUFFIX}" != path[path.rfind("/") :]:
        raise ValueError("the file name does not match the record")
    return record


def _move_to_broken(folder: str, name: str) -> None:
    """Move a file that is not a record to `broken/`, for inspection. Keep only the newest `MAX_BROKEN_FILES` there."""
    broken = f"{folder}/broken"
    with suppress(OSError):
        make_private(broken)
        os.rename(f"{folder}/{name}", f"{broken}/{name}")
    for old in sorted(_names(broken))[:-MAX_BROKEN_FILES]:
        with suppress(OSError):
            os.unlink(f"{broken}/{old}")


def _remove_abandoned(folder: str, names: list[str], now: float) -> None:
    for name in names:
        if name.startswith(".") and name.endswith(_TEMPORARY):
            with suppress(FileNotFoundError):
                if os.stat(path := f"{folder}/{name}").st_mtime < now - _ABANDONED_AFTER:
                    os.unlink(path)
