"""The files of a SQLite database: created for this user only, locked while they are prepared, set aside if damaged.

No database file is opened here once it has its final name: closing it would drop the locks that SQLite holds on it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.store._errors import StoreBusy, StoreUnwritable

if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIXES = ("", "-wal", "-shm", "-journal")
"""What is appended to the name of a database for each of its files.

They are renamed and deleted together: a log that stays behind would be replayed into the next database.
"""

_PREPARE_TIMEOUT = 60.0
_OWNER_TIMEOUT = 2.0
"""Seconds to wait for a previous owner that is about to exit."""
_POLL_INTERVAL = 0.01


@contextmanager
def prepare_lock(file: Path, timeout: float = _PREPARE_TIMEOUT) -> Iterator[None]:
    """Hold a lock, so that only one process at a time prepares a database. Also released when the process ends.

    Raise `StoreBusy` if another process holds it for longer than `timeout` seconds, and `StoreUnwritable` if the file
    of the lock cannot be created.
    """
    busy = StoreBusy(f"{file}: another process has been preparing it for too long; try again")
    with _held(file, f"{file}.lock", timeout, busy):
        yield


@contextmanager
def owner_lock(file: Path, timeout: float = _OWNER_TIMEOUT) -> Iterator[None]:
    """Hold the lock of a database's only owner. Also released when the process ends.

    Raise `StoreBusy` if another owner holds it for longer than `timeout` seconds, and `StoreUnwritable` if the file of
    the lock cannot be created.
    """
    busy = StoreBusy(f"{file}: another process is using it, perhaps a second daemon; stop that one first")
    with _held(file, f"{file}.owner", timeout, busy):
        yield


def create_if_missing(file: Path) -> bool:
    """Create an empty database that only this user can read, and return whether one was created.

    Return `False` if the file exists, or if a salvaged copy was renamed to it. Raise `StoreUnwritable` if the path is
    not a file. The caller must hold the `prepare_lock`. The file is created under another name and then renamed: so an
    empty file with the final name is a truncated database, not one whose creation was interrupted.
    """
    if os.path.lexists(file):
        if not file.is_file():
            raise StoreUnwritable(f"{file} is not a file; move it away, or use another path for the store")
        return False
    if salvaged_file(file).exists():  # the process was killed after it had set the damaged file aside
        salvaged_file(file).rename(file)
        return False
    temporary = Path(f"{file}.new")
    create(temporary)
    temporary.rename(file)
    return True


def create(file: Path) -> None:
    """Create an empty database that only this user can read. An existing database of that name is deleted.

    SQLite gives the files of the log the same mode.
    """
    for suffix in SUFFIXES:
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # setting it later would rewrite the file
        connection.execute("PRAGMA journal_mode = WAL").fetchall()


def unfinished_file(file: Path) -> Path:
    """Return the path of the database into which the rows of a damaged one are copied."""
    return Path(f"{file}.salvaging")


def salvaged_file(file: Path) -> Path:
    """Return the path of the complete copy, which replaces the damaged database once that is set aside."""
    return Path(f"{file}.salvaged")


def set_aside(file: Path, now: float) -> Path:
    """Rename a damaged database with its logs, and return its new path. `now` is the time that the new name contains.

    Nothing is deleted, so that its data may still be recovered. Raise `StoreUnwritable` if a file cannot be renamed.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    target = base = Path(f"{file}.damaged-{stamp}")
    count = 1
    while os.path.lexists(target):
        count += 1
        target = Path(f"{base}.{count}")
    with translate_os_errors(file):
        for suffix in SUFFIXES[::-1]:  # the database last: if the process is killed, it is found damaged again
            with suppress(FileNotFoundError):
                Path(f"{file}{suffix}").rename(f"{target}{suffix}")
    return target


def suspect_marker(file: Path) -> Path:
    """Return the path of a marker file, which exists if damage was found while the database was open.

    The next opening then checks the whole database.
    """
    return Path(f"{file}.suspect")


@contextmanager
def translate_os_errors(file: Path) -> Iterator[None]:
    """Raise an `OSError` within the block as `StoreUnwritable`."""
    try:
        yield
    except OSError as error:
        why = "its folder is a file" if isinstance(error, FileExistsError) else error.strerror or str(error)
        raise StoreUnwritable(
            f"{file}: the store cannot be created or written there: {why}; "
            "make its folder writable, or set FAIRLEAD_HOME to a folder that is"
        ) from error


@contextmanager
def _held(file: Path, lock: str, timeout: float, busy: StoreBusy) -> Iterator[None]:
    with translate_os_errors(file):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, time.monotonic() + timeout, busy)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, deadline: float, busy: StoreBusy) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise busy from None
            time.sleep(_POLL_INTERVAL)
        else:
            return
