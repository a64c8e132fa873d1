"""The seam: all that differs between one database and another. Everything else is written once, for all of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fairlead.store._errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine, Table

    from fairlead.store._errors import StoreError


WRITES = "fairlead_writes"
"""The option of a connection that is going to write: SQLite must know it when a transaction begins."""

IDS_AT_ONCE = 500
"""So many values fit into one statement of any database."""

_Item = TypeVar("_Item")


class Backend(Protocol):
    """One kind of database. `_sqlite.py` is the first; another is another file, and a line in `_urls.py`."""

    where: str
    """What messages call it: the file, or the URL without its password."""

    engine: Engine

    def prepare(self) -> tuple[str, ...]:
        """Make it ready and bring it to the newest revision, one process at a time. Give what a person must know."""

    def own(self) -> AbstractContextManager[None]:
        """Within it, no other process and nobody else in this one owns it; it ends with the process, too."""

    def settling(self, connection: Connection) -> AbstractContextManager[None]:
        """Within it, the end of a transaction makes it and all before it outlive a power failure."""

    def explain(self, error: Exception) -> StoreError | None:
        """Say in our words what an error of the driver means; None if it is none of the driver's."""

    def used(self, connection: Connection) -> int:
        """Give the bytes that hold something."""

    def free(self, connection: Connection) -> int:
        """Give the bytes that hold nothing, and could be given back."""

    def give_back(self) -> int:
        """Give a part of the free bytes back to the disk, and say how many."""

    def problems(self, connection: Connection) -> tuple[str, ...]:
        """Look at all of it, and say what is broken."""


def insert_or_ignore(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Insert rows, and leave out those that are there: the one statement that has no common form."""
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def parts(items: Sequence[_Item], size: int = IDS_AT_ONCE) -> Iterator[Sequence[_Item]]:
    """Cut items into parts that fit into a statement."""
    return (items[start : start + size] for start in range(0, len(items), size))


@contextmanager
def writing(backend: Backend) -> Iterator[Connection]:
    """Open a transaction that writes: all of it is kept, or nothing."""
    with backend.engine.connect() as connection:
        connection.execution_options(**{WRITES: True})
        with connection.begin():
            yield connection


@contextmanager
def translated(backend: Backend) -> Iterator[None]:
    """Turn the errors of drivers into ours. What is a mistake of this package stays what it is."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreBusy(f"{backend.where}: all connections are in use; try again") from error
    except Exception as error:
        cause = error.orig if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else error
        if (ours := backend.explain(cause)) is None:
            raise
        raise ours from error
