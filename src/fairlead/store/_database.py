"""`Database`, the base class of the event store and the mail store, and `Backend`, what differs between databases.

Knows none of their tables. All code but the backends is written once for all databases.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fairlead.store._errors import StoreBusy
from fairlead.store._head import HEAD_REVISION
from fairlead.store._revisions import revision_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine, Table
    from sqlalchemy.dialects import postgresql

    from fairlead.store._errors import StoreError

WRITES = "fairlead_writes"
"""Execution option of a connection that will write: SQLite takes the write lock when the transaction begins."""

BATCH_SIZE = 500
"""How many values fit into one statement of any database."""

_Item = TypeVar("_Item")


class Backend(Protocol):
    """One kind of database. A new kind is a module like `_sqlite.py`, and an entry in `_urls.py`."""

    location: str
    """The file, or the URL without its password, for messages."""

    engine: Engine

    is_damaged: bool
    """Whether an error since `prepare` was caused by damage."""

    def prepare(self) -> tuple[str, ...]:
        """Create the database or upgrade it to the newest revision. Return warnings for the user.

        One process at a time prepares a database.
        """

    def hold_owner_lock(self) -> AbstractContextManager[None]:
        """Return a context that holds the owner lock. Only one holder can have it; released when the process ends."""

    def yield_often(self) -> None:
        """Interrupt statements often, so that other processes can run. Called before the database is prepared."""

    def durable(self, connection: Connection) -> AbstractContextManager[None]:
        """Return a context in which a commit makes itself and all earlier commits survive a power failure."""

    def sync(self) -> None:
        """Make all commits survive a power failure. Does not block transactions."""

    def translate_error(self, error: Exception) -> StoreError | None:
        """Return the `StoreError` for a driver's error; None for any other exception."""

    def used_bytes(self, connection: Connection) -> int:
        """Return the bytes that hold data."""

    def free_bytes(self, connection: Connection) -> int:
        """Return the allocated bytes that hold no data."""

    def release_space(self) -> int:
        """Release some free space to the file system. Return the number of bytes."""

    def integrity_problems(self, connection: Connection) -> tuple[str, ...]:
        """Check the whole database and return the problems."""


def dialect_insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return the dialect's insert, which supports ON CONFLICT. SQLAlchemy has no common form for that."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # slow to import

        return postgresql.insert(table)
    return sqlite.insert(table)


def insert_or_ignore(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an insert that skips existing rows."""
    return dialect_insert(dialect, table).on_conflict_do_nothing()


def batches(items: Sequence[_Item], size: int = BATCH_SIZE) -> Iterator[Sequence[_Item]]:
    """Yield the items in batches that fit into one statement."""
    return (items[start : start + size] for start in range(0, len(items), size))


@contextmanager
def write_transaction(backend: Backend, *, durable: bool = False) -> Iterator[Connection]:
    """Open a transaction that writes; a durable one survives a power failure."""
    with backend.engine.connect() as connection:
        connection.execution_options(**{WRITES: True})
        with backend.durable(connection) if durable else nullcontext(), connection.begin():
            yield connection


@contextmanager
def translate_errors(backend: Backend) -> Iterator[None]:
    """Raise driver errors as `StoreError`. Other exceptions are bugs and pass unchanged."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreBusy(f"{backend.location}: all connections are in use; try again") from error
    except Exception as error:
        cause = error.orig if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else error
        if (translated := backend.translate_error(cause)) is None:
            raise
        raise translated from error


class Health(msgspec.Struct, frozen=True):
    """Size, revision and integrity of a database."""

    location: str
    """The file, or the URL without its password."""
    revision: str
    head: str
    """The newest revision that this version knows."""
    size: int
    """Bytes on the disk."""
    free: int
    """Bytes of `size` that hold no data."""
    problems: tuple[str, ...] = ()
    """The problems that the integrity check found."""


class Database:
    """An open database. Thread-safe; writers wait for each other."""

    warnings: Final[tuple[str, ...]]
    """Warnings for the user about the opening, for instance that a damaged database was set aside."""

    def __init__(self, backend: Backend, warnings: tuple[str, ...]) -> None:
        """Use a prepared database. The `open` methods of the subclasses prepare it."""
        self._backend = backend
        self._write_lock = threading.Lock()
        self.warnings = warnings

    def close(self) -> None:
        """Close all connections to the database."""
        self._backend.engine.dispose()

    @property
    def is_damaged(self) -> bool:
        """Whether damage was found while the database was open. Opening it again salvages the readable rows."""
        return self._backend.is_damaged

    def health(self) -> Health:
        """Check every page and return the result. This is slow."""
        backend = self._backend
        with self._reading() as connection:
            free = backend.free_bytes(connection)
            return Health(
                location=backend.location,
                revision=revision_of(connection, backend.location) or "",
                head=HEAD_REVISION,
                size=backend.used_bytes(connection) + free,
                free=free,
                problems=backend.integrity_problems(connection),
            )

    def _translate_errors(self) -> AbstractContextManager[None]:
        return translate_errors(self._backend)

    def _sync(self) -> None:
        with self._translate_errors():
            self._backend.sync()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._translate_errors(), self._backend.engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self, *, durable: bool = False) -> Iterator[Connection]:
        """Open a transaction that writes; a durable one survives a power failure."""
        transaction = write_transaction(self._backend, durable=durable)
        with self._write_lock, self._translate_errors(), transaction as connection:
            yield connection
