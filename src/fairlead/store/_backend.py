"""The `Backend` protocol: everything that differs between databases. All other code is written once for all of them."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar

from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fairlead.store._errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine, Table
    from sqlalchemy.dialects import postgresql

    from fairlead.store._errors import StoreError


WRITES = "fairlead_writes"
"""Execution option of a connection that will write: SQLite must know it when a transaction begins."""

BATCH_SIZE = 500
"""How many values fit into one statement of any database."""

_Item = TypeVar("_Item")


class Backend(Protocol):
    """One kind of database. `_sqlite.py` is the first; another is a new file and a line in `_urls.py`."""

    location: str
    """How messages name it: the file, or the URL without its password."""

    engine: Engine

    is_damaged: bool
    """Whether an error was due to damage since it was prepared."""

    def prepare(self) -> tuple[str, ...]:
        """Create or upgrade it to the newest revision, one process at a time. Return warnings for the user."""

    def hold_owner_lock(self) -> AbstractContextManager[None]:
        """Return a context in which no other process, and no one else in this one, owns it. Ends with the process."""

    def durable(self, connection: Connection) -> AbstractContextManager[None]:
        """Return a context in which a commit, with all earlier ones, survives a power failure."""

    def sync(self) -> None:
        """Have all commits survive a power failure. No transaction waits for it."""

    def translate_error(self, error: Exception) -> StoreError | None:
        """Return the `StoreError` for an error of the driver; None if it is not one."""

    def used_bytes(self, connection: Connection) -> int:
        """Return the bytes that hold data."""

    def free_bytes(self, connection: Connection) -> int:
        """Return the allocated bytes that hold no data."""

    def release_space(self) -> int:
        """Return some free space to the file system, and how many bytes that was."""

    def integrity_problems(self, connection: Connection) -> tuple[str, ...]:
        """Check everything and return what is broken."""


def dialect_insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an insert that can say what to do with existing rows: the one statement without a common form."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # takes as long to load as much of the rest

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
