"""The files of a SQLite database: made for this user alone, locked while they are made ready, set aside if damaged.

No file of the database is opened here once it has its name: closing it would drop the locks that SQLite holds on it.
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

SIDES = ("", "-wal", "-shm", "-journal")
"""A database is all of these: a log that is left behind would be played into the next one."""

_LONGEST_WAIT = 60.0
_FOR_THE_LAST_OWNER = 2.0
"""Seconds in which an owner that is just ending may end."""
_TURN = 0.01


@contextmanager
def locked(file: Path, longest: float = _LONGEST_WAIT) -> Iterator[None]:
    """Hold the lock beside a file, so that one process at a time makes it ready. It ends with the process."""
    busy = StoreBusy(f"{file}: another process has been making it ready for too long; try again")
    with _held(file, f"{file}.lock", longest, busy):
        yield


@contextmanager
def owned(file: Path, longest: float = _FOR_THE_LAST_OWNER) -> Iterator[None]:
    """Hold the other lock beside a file, as its only owner. It ends with the process."""
    busy = StoreBusy(f"{file}: another process owns it, a second daemon perhaps; stop that one first")
    with _held(file, f"{file}.owner", longest, busy):
        yield


def make(file: Path) -> bool:
    """Make a database without tables that only this user can read, and say whether it was missing. Needs the lock.

    It is made beside and renamed: an empty file under its name was emptied, and does not come from one who was killed
    while making it. SQLite's logs follow its mode. What stands there but is no file is left alone.
    """
    if os.path.lexists(file):
        if not file.is_file():
            raise StoreUnwritable(f"{file} is not a file; move it away, or keep the store in another place")
        return False
    beside = Path(f"{file}.new")
    for side in SIDES:
        Path(f"{beside}{side}").unlink(missing_ok=True)
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(beside, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # later it would only cost a write
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    beside.rename(file)
    return True


def set_aside(file: Path, now: float) -> Path:
    """Rename a database and its logs so that a new one can be made, and nothing is lost that could be rescued."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    place = aside = Path(f"{file}.damaged-{stamp}")
    count = 1
    while os.path.lexists(place):
        count += 1
        place = Path(f"{aside}.{count}")
    with explained(file):
        for side in SIDES[::-1]:  # the database last: killed in between, it is found damaged again
            with suppress(FileNotFoundError):
                Path(f"{file}{side}").rename(f"{place}{side}")
    return place


def suspect(file: Path) -> Path:
    """Name the mark that says: this database broke while it was open, look at all of it before it is used again."""
    return Path(f"{file}.suspect")


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """Say what the system's errors mean for the store."""
    try:
        yield
    except OSError as error:
        why = "its folder is a file" if isinstance(error, FileExistsError) else error.strerror or str(error)
        raise StoreUnwritable(
            f"{file}: the store cannot be made or written there: {why}; "
            "make its folder writable, or set FAIRLEAD_HOME to one that is"
        ) from error


@contextmanager
def _held(file: Path, lock: str, longest: float, busy: StoreBusy) -> Iterator[None]:
    with explained(file):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(descriptor, time.monotonic() + longest, busy)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, deadline: float, busy: StoreBusy) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise busy from None
            time.sleep(_TURN)
        else:
            return
