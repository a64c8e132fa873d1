"""The store in a SQLite file, in WAL mode: readers and the writer do not wait for each other."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from fairlead.store import _files
from fairlead.store._backend import WRITES, translated, writing
from fairlead.store._errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreUnwritable, StoreURLError
from fairlead.store._revisions import HEAD_REVISION, known_revisions, revision_of, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, Connection

CHECKED_WHOLE = 256 * 1024 * 1024
"""Up to this size every page is looked at when it is opened (some 0.1 s per 100 MB). A larger one is looked at if it
broke while it was open, and by the doctor."""

_PATIENCE = 10.0
"""Seconds to wait for another writer."""

_PAGES_AT_ONCE = 500
"""So many pages are given back in one transaction; others may write in between."""

_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",  # nothing is lost with the process; for a power failure there is `settle`
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA trusted_schema = OFF",
)
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_PRIMARY = 0xFF
"""The lower byte of an error's code is its kind."""


class SQLite:
    """A database in a file of this machine."""

    def __init__(self, url: URL) -> None:
        """Name the file; nothing is opened yet."""
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise StoreURLError(f"{url}: the store needs a file; use sqlite:///PATH")
        self.file = Path(url.database).absolute()
        self.where = str(self.file)
        self.engine = create_engine(url.set(database=self.where), connect_args={"timeout": _PATIENCE})
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "begin", _begin)

    def prepare(self) -> tuple[str, ...]:
        """Make the file ready, one process at a time. A damaged one is set aside, once."""
        with _files.locked(self.file):
            try:
                self._prepare()
            except StoreDamaged as damage:
                self.engine.dispose()
                aside = _files.set_aside(self.file, time.time())
                self._prepare()
                return (f"{damage}; it was set aside as {aside}, and a new one was begun",)
        return ()

    def own(self) -> AbstractContextManager[None]:
        """Hold a lock beside the file."""
        return _files.owned(self.file)

    @contextmanager
    def settling(self, connection: Connection) -> Iterator[None]:
        """Sync the log at the end of the transaction; all that was written before it is in the same log."""
        driver: Any = connection.connection.driver_connection  # a statement of ours would begin the transaction
        driver.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            driver.execute("PRAGMA synchronous = NORMAL")

    def explain(self, error: Exception) -> StoreError | None:
        """Go by SQLite's code, never by its words."""
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        if code in _DAMAGE:
            with suppress(OSError):
                _files.suspect(self.file).touch(mode=0o600)
            return StoreDamaged(f"{self.where} is damaged ({error})")
        if code == sqlite3.SQLITE_FULL:
            return StoreFull(f"{self.where}: the disk is full; make room, what is in the journal is then taken")
        if code == sqlite3.SQLITE_IOERR:
            return StoreFull(f"{self.where}: the disk does not take or give data ({error}); is it full or failing?")
        if code in _UNWRITABLE:
            return StoreUnwritable(f"{self.where}: the store cannot be opened for writing ({error})")
        if code in _LOCKED:
            return StoreBusy(f"{self.where}: another process holds the store; try again")
        return StoreError(f"{self.where}: {error}") if isinstance(error, sqlite3.Error) else None

    def used(self, connection: Connection) -> int:
        """Count the pages that hold something, in the file or in its log."""
        return _number(connection, "page_count") * _number(connection, "page_size") - self.free(connection)

    def free(self, connection: Connection) -> int:
        """Count the free pages."""
        return _number(connection, "freelist_count") * _number(connection, "page_size")

    def give_back(self) -> int:
        """Cut some free pages off the end."""
        with self.engine.connect() as connection:
            before = self.free(connection)
            connection.rollback()
            if before:
                driver: Any = connection.connection.driver_connection
                driver.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")  # `execute` frees only one page
            return before - self.free(connection)

    def problems(self, connection: Connection) -> tuple[str, ...]:
        """Look at every page and every index."""
        return _found(connection, "PRAGMA integrity_check(20)")

    def _prepare(self) -> None:
        with translated(self), _files.explained(self.file):
            new = _files.make(self.file)
            empty = self.file.stat().st_size == 0
        if empty and not new:  # SQLite would take it for a new one, and drop its log
            raise StoreDamaged(f"{self.where} is damaged (it is empty)")
        with translated(self):
            if not new:
                self._look()
            with writing(self) as connection:
                upgrade(connection, self.where)
        with _files.explained(self.file):
            _files.suspect(self.file).unlink(missing_ok=True)

    def _look(self) -> None:
        """Check what is there, without touching it: the last one to close a damaged database would clear its log away.

        The revision comes first: what a newer version has written is not ours to judge.
        """
        engine = create_engine("sqlite://", creator=self._connect_to_look, poolclass=NullPool)
        with engine.connect() as connection:
            revision = revision_of(connection, self.where)
            if revision != HEAD_REVISION and revision not in known_revisions():
                return
            if _files.suspect(self.file).exists():
                found = _found(connection, "PRAGMA integrity_check(1)")
            elif self.used(connection) <= CHECKED_WHOLE:
                found = _found(connection, "PRAGMA quick_check(1)")
            else:
                found = ()
        if found:
            raise StoreDamaged(f"{self.where} is damaged ({found[0]})")

    def _connect_to_look(self) -> sqlite3.Connection:
        """Connect read-only, unless a first write was interrupted: to read on, that one has to be undone."""
        mode = "rw" if Path(f"{self.file}-journal").exists() else "ro"
        return sqlite3.connect(f"file:{quote(self.where)}?mode={mode}", uri=True, timeout=_PATIENCE)


def _set_up(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # the driver would begin transactions by itself, but not around DDL
    try:
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
    except sqlite3.Error:
        connection.close()
        raise


def _begin(connection: Connection) -> None:
    """Lock at the start if it is going to write: who finds out later that it has to wait is refused at once instead."""
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _number(connection: Connection, pragma: str) -> int:
    value: Any = connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one()
    return int(value)


def _found(connection: Connection, check: str) -> tuple[str, ...]:
    """Run a check, and give what it found; it may itself break off where the damage is."""
    found: list[str] = []
    try:
        lines = connection.exec_driver_sql(check).scalars()
        found.extend(" ".join(str(line).split()) for line in lines)
    except DBAPIError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY not in _DAMAGE:
            raise
        found.append(str(error.orig))
    return tuple(line for line in found if line != "ok")
