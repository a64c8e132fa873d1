"""A SQLite file in WAL mode, so that readers and the writer do not wait for each other."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from fairlead.store import _files
from fairlead.store._database import WRITES, translate_errors, write_transaction
from fairlead.store._errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreUnwritable, StoreURLError
from fairlead.store._head import HEAD_REVISION
from fairlead.store._revisions import known_revisions, revision_of, upgrade
from fairlead.store._salvage import salvage
from fairlead.store.history._search import rebuild_index
from fairlead.store.mail._search import reset_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, Connection, Engine

    from fairlead.store._salvage import Salvage

MAX_FULLY_CHECKED_BYTES = 16 * 1024 * 1024
"""Up to this size the indexes are compared with their tables on opening. Queries miss a row that an index lacks."""
MAX_CHECKED_BYTES = 256 * 1024 * 1024
"""Up to this size every page is checked on opening, which takes about 0.1 s per 100 MB.

A larger database is checked only if damage was found while it was open.
"""

_YIELD_STEPS = 500
"""Instructions of SQLite after which a statement yields the processor. They take some microseconds."""
_LOCK_TIMEOUT = 10.0
"""Seconds to wait for another connection that writes."""

_PAGES_PER_STEP = 500
"""Pages released in one transaction. Others can write between two such transactions."""

_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",  # survives the end of the process; `durable` is for power failures
    "PRAGMA journal_size_limit = 16777216",
    "PRAGMA trusted_schema = OFF",
)
_decode = partial(str, encoding="utf-8", errors="replace")
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_PRIMARY_CODE = 0xFF
"""The bits of an extended error code that hold the primary one."""


class SQLite:
    """The SQLite file behind a `Database`: its creation, checks, salvage, locks and errors."""

    def __init__(self, url: URL) -> None:
        """Use the file that a URL names, without opening it. Raise `StoreURLError` if the URL names no file."""
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise StoreURLError(f"{url}: the store needs a file; use sqlite:///PATH")
        self._url = url
        self.is_damaged = False
        """Whether an error since `prepare` was caused by damage."""
        self.file = Path(url.database).absolute()
        self.location = str(self.file)
        """The file, for messages."""
        self.engine = _create_engine(url.set(database=self.location))

    def prepare(self) -> tuple[str, ...]:
        """Create or upgrade the file, one process at a time. Return warnings for the user.

        A damaged file is salvaged and set aside. Raise `StoreDamaged` if its replacement is damaged too.
        """
        with _files.prepare_lock(self.file):
            try:
                self._prepare()
            except StoreDamaged as damage:
                self.engine.dispose()
                saved = self._salvage()
                aside = _files.set_aside(self.file, time.time())
                self._prepare()
                self.is_damaged = False
                place = f"; {saved.holes} places could not be read" if saved.holes else ""
                new = f"a new one was created, with {saved.rows} rows of it{place}"
                return (f"{damage}; it was set aside as {aside}, and {new}",)
        return ()

    def _salvage(self) -> Salvage:
        """Copy the readable rows of the damaged database to a new one. Return the numbers of rows and of holes.

        The new database replaces the damaged one when that has been set aside.
        """
        new = _files.unfinished_file(self.file)
        with translate_errors(self), _files.translate_os_errors(self.file):
            _files.create(new)
            engine = _create_engine(self._url.set(database=str(new)))
            try:
                with engine.connect() as connection:
                    connection.execution_options(**{WRITES: True})
                    with connection.begin():
                        upgrade(connection, self.location)
            finally:
                engine.dispose()
            saved = salvage(self.file, new)
            new.rename(_files.salvaged_file(self.file))
        return saved

    def hold_owner_lock(self) -> AbstractContextManager[None]:
        """Return a context that holds the lock of the file's only owner.

        Entering it raises `StoreBusy` if another process holds the lock. A killed process releases it.
        """
        return _files.owner_lock(self.file)

    def yield_often(self) -> None:
        """Have statements yield the processor every `_YIELD_STEPS` instructions. Must be called before `prepare`."""
        event.listen(self.engine, "connect", _yield_often)

    @contextmanager
    def durable(self, connection: Connection) -> Iterator[None]:
        """Return a context in which a commit syncs the log: this and all earlier commits survive a power failure."""
        # Not through SQLAlchemy, which would begin the transaction.
        driver: Any = connection.connection.driver_connection
        driver.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            driver.execute("PRAGMA synchronous = NORMAL")

    def sync(self) -> None:
        """Make all commits survive a power failure, by syncing the log. Does not block transactions.

        Commits that a checkpoint has moved out of the log were synced by the checkpoint.
        """
        log_file = Path(f"{self.file}-wal")
        with _files.translate_os_errors(self.file), suppress(FileNotFoundError), log_file.open("rb") as log:
            os.fsync(log.fileno())

    def translate_error(self, error: Exception) -> StoreError | None:
        """Return the `StoreError` for a driver's error, by its code, never its text; None for any other exception.

        Damage is recorded in `is_damaged`, and by a marker file for the next opening.
        """
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code in _DAMAGED:
            self.is_damaged = True
            with suppress(OSError):
                _files.suspect_marker(self.file).touch(mode=0o600)
            return StoreDamaged(f"{self.location} is damaged ({error})")
        if code == sqlite3.SQLITE_FULL:
            return StoreFull(
                f"{self.location}: the disk is full; free some space, and the journal's events are stored then"
            )
        if code == sqlite3.SQLITE_IOERR:
            return StoreFull(f"{self.location}: the disk cannot be read or written ({error}); is it full or failing?")
        if code in _UNWRITABLE:
            return StoreUnwritable(f"{self.location}: the store cannot be opened for writing ({error})")
        if code in _LOCKED:
            return StoreBusy(f"{self.location}: another process has locked the store; try again")
        return StoreError(f"{self.location}: {error}") if isinstance(error, sqlite3.Error) else None

    def used_bytes(self, connection: Connection) -> int:
        """Return the size in bytes of the pages in use, in the file or in its log."""
        return _pragma(connection, "page_count") * _pragma(connection, "page_size") - self.free_bytes(connection)

    def free_bytes(self, connection: Connection) -> int:
        """Return the size in bytes of the free pages."""
        return _pragma(connection, "freelist_count") * _pragma(connection, "page_size")

    def release_space(self) -> int:
        """Release up to `_PAGES_PER_STEP` free pages to the file system. Return how many bytes were released."""
        with self.engine.connect() as connection:
            before = self.free_bytes(connection)
            connection.rollback()
            if before:
                driver: Any = connection.connection.driver_connection
                # `execute` would free only one page.
                driver.executescript(f"PRAGMA incremental_vacuum({_PAGES_PER_STEP})")
            return before - self.free_bytes(connection)

    def _prepare(self) -> None:
        with translate_errors(self), _files.translate_os_errors(self.file):
            is_new = _files.create_if_missing(self.file)
            is_empty = self.file.stat().st_size == 0
        if is_empty and not is_new:  # SQLite would treat it as a new file, and delete its log
            raise StoreDamaged(f"{self.location} is damaged (it is empty)")
        with translate_errors(self):
            if not is_new:
                self._check()
            with write_transaction(self) as connection:
                upgrade(connection, self.location)
                if _files.suspect_marker(self.file).exists():
                    reset_index(connection)
                    rebuild_index(connection)
        with _files.translate_os_errors(self.file):
            _files.suspect_marker(self.file).unlink(missing_ok=True)

    def _check(self) -> None:
        """Raise `StoreDamaged` if an existing file is damaged. How much is checked depends on its size.

        The connection is read-only, because closing the last writable one would delete the log. A file that a newer
        version has written is not checked.
        """
        engine = create_engine("sqlite://", creator=self._connect_read_only, poolclass=NullPool)
        with engine.connect() as connection:
            revision = revision_of(connection, self.location)
            if revision != HEAD_REVISION and revision not in known_revisions():
                return
            used = self.used_bytes(connection)
            if _files.suspect_marker(self.file).exists() or used <= MAX_FULLY_CHECKED_BYTES:
                problems = _run_check(connection, "PRAGMA integrity_check(1)")
            elif used <= MAX_CHECKED_BYTES:
                problems = _run_check(connection, "PRAGMA quick_check(1)")
            else:
                problems = ()
        if problems:
            raise StoreDamaged(f"{self.location} is damaged ({problems[0]})")

    def _connect_read_only(self) -> sqlite3.Connection:
        """Connect read-only, or writable if there is a rollback journal, which SQLite must apply before reading."""
        mode = "rw" if Path(f"{self.file}-journal").exists() else "ro"
        return sqlite3.connect(f"file:{quote(self.location)}?mode={mode}", uri=True, timeout=_LOCK_TIMEOUT)


def _create_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _LOCK_TIMEOUT})
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _yield_often(connection: sqlite3.Connection, _: object) -> None:
    if hasattr(os, "sched_yield"):
        connection.set_progress_handler(os.sched_yield, _YIELD_STEPS)


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.text_factory = _decode  # one bad byte in a text must not hide all messages beside it
    connection.isolation_level = None  # the driver would begin transactions on its own, but not around DDL
    try:
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
    except sqlite3.Error:
        connection.close()
        raise


def _begin(connection: Connection) -> None:
    """Begin a transaction, with the write lock if it will write: SQLite does not wait when it upgrades a read lock."""
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _pragma(connection: Connection, name: str) -> int:
    value: Any = connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
    return int(value)


def _run_check(connection: Connection, check: str) -> tuple[str, ...]:
    """Return the problems that the PRAGMA `check` finds. If damage makes the check fail, its error is one of them."""
    problems: list[str] = []
    try:
        lines = connection.exec_driver_sql(check).scalars()
        problems.extend(" ".join(str(line).split()) for line in lines)
    except DBAPIError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY_CODE not in _DAMAGED:
            raise
        problems.append(str(error.orig))
    return tuple(line for line in problems if line != "ok")
