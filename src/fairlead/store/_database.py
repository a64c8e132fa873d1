"""`Database`, the base class of the event store and the mail store, and what both do with a SQLite file.

`PreparedStatement` is compiled once and run by the driver. Nothing here knows a table.
"""

from __future__ import annotations

import threading
from collections import namedtuple
from contextlib import contextmanager, nullcontext
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from sqlalchemy import Select
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fairlead.store._errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Delete, Dialect, Insert, Table, Update
    from sqlalchemy.types import TypeEngine

    from fairlead.store._sqlite import SQLite

    Processor = Callable[[Any], Any]
    Statement = Select[Any] | Insert | Update | Delete

WRITES = "fairlead_writes"
"""Execution option of a connection that will write: it takes the write lock when the transaction begins."""

BATCH_SIZE = 500
"""The maximum number of values that one statement gets as a list."""

_Item = TypeVar("_Item")


def insert_or_ignore(table: Table) -> sqlite.Insert:
    """Return an insert into a table that skips rows whose key the table has already."""
    return sqlite.insert(table).on_conflict_do_nothing()


def batches(items: Sequence[_Item], size: int = BATCH_SIZE) -> Iterator[Sequence[_Item]]:
    """Yield the items in their order, as sequences of at most `size` items."""
    return (items[start : start + size] for start in range(0, len(items), size))


@contextmanager
def write_transaction(backend: SQLite, *, durable: bool = False) -> Iterator[Connection]:
    """Open a transaction that writes. Commit it at the end of the block, or roll it back if the block raises.

    With `durable`, this commit and all earlier ones survive a power failure.
    """
    with backend.engine.connect() as connection:
        connection.execution_options(**{WRITES: True})
        with backend.durable(connection) if durable else nullcontext(), connection.begin():
            yield connection


@contextmanager
def translate_errors(backend: SQLite) -> Iterator[None]:
    """Raise the driver's errors within the block as `StoreError`. Other exceptions are bugs, and pass unchanged."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreBusy(f"{backend.location}: all connections are in use; try again") from error
    except Exception as error:
        cause = error.orig if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else error
        if (translated := backend.translate_error(cause)) is None:
            raise
        raise translated from error


class Database:
    """An open database. Thread-safe; writers wait for each other.

    Raises `StoreError`s, which a subclass may translate.
    """

    warnings: Final[tuple[str, ...]]
    """What the user should know about the opening, for instance that a damaged database was set aside."""

    def __init__(self, backend: SQLite, warnings: tuple[str, ...]) -> None:
        """Use a database that `open` of a subclass has prepared. `warnings` are those of the preparation."""
        self._backend = backend
        self._write_lock = threading.Lock()
        self.warnings = warnings

    def close(self) -> None:
        """Close the connections that are not in use. The others are closed when they are released."""
        self._backend.engine.dispose()

    @property
    def is_damaged(self) -> bool:
        """Whether damage was found while the database was open. Opening it again salvages the readable rows."""
        return self._backend.is_damaged

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
        """Open a `write_transaction`. Other threads that write to this database wait until it ends."""
        transaction = write_transaction(self._backend, durable=durable)
        with self._write_lock, self._translate_errors(), transaction as connection:
            yield connection


class PreparedStatement:
    """A statement that is compiled once. Through SQLAlchemy each run would take four to ten times as long.

    Its parameters are named, and none of them is a list. It runs in the transaction of the connection. If none was
    begun, each query is a transaction of its own, so two queries may see different states.
    """

    def __init__(self, statement: Statement, columns: Sequence[str] | None = None) -> None:
        """Keep the statement, which is compiled when it first runs.

        `columns` are the columns that an insert or an update sets; `None` for those that the statement itself names.
        """
        self._statement = statement
        self._columns = columns
        self._compiled: _Compiled | None = None

    def rows(self, connection: Connection, parameters: Mapping[str, object]) -> Sequence[Any]:
        """Run a query and return all its rows, as named tuples."""
        compiled = self._compile(connection.dialect)
        cursor = _driver(connection).execute(compiled.text, compiled.values(parameters))
        return [compiled.row(values) for values in cursor]

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> int:
        """Run a statement other than a query once for each mapping of parameters. Return how many rows were changed."""
        compiled = self._compile(connection.dialect)
        cursor = _driver(connection).executemany(compiled.text, [compiled.values(row) for row in rows])
        return int(cursor.rowcount)

    def _compile(self, dialect: Dialect) -> _Compiled:
        if self._compiled is None:
            self._compiled = _compiled(self._statement, dialect, self._columns)
        return self._compiled


def ids_among(connection: Connection, table: Table, ids: Sequence[str]) -> Iterable[str]:
    """Return which of `ids` a table has, in any order. `ids` may have at most `BATCH_SIZE` items."""
    marks = ", ".join("?" * len(ids))
    rows = _driver(connection).execute(f"SELECT id FROM {table.name} WHERE id IN ({marks})", ids)
    return [name for (name,) in rows]


class _Compiled(NamedTuple):
    """The SQL text of a statement, with SQLAlchemy's conversions of its parameters and results."""

    text: str
    parameters: tuple[tuple[str, object, Processor | None], ...]
    """For each parameter its name, its default value, and its conversion for the driver; `None` if it needs none.

    In the order of the text.
    """
    get_all: Callable[[Mapping[str, object]], Sequence[object]]
    """Returns the values of a mapping in the order of the text, not converted. Raises `KeyError` if one is missing."""
    converted: tuple[tuple[int, Processor], ...]
    """The parameters that have to be converted, as index and conversion."""
    make_row: Callable[[Iterable[Any]], Any]
    """Returns a named tuple of a row's values."""
    columns: tuple[tuple[int, Processor], ...]
    """The columns of a row that have to be converted, as index and conversion."""

    def values(self, given: Mapping[str, object]) -> list[object]:
        """Return the converted values of the parameters in the order of the text.

        Missing ones get their default values.
        """
        try:
            values = list(self.get_all(given))
        except KeyError:
            values = [given.get(name, value) for name, value, _ in self.parameters]
        for at, convert in self.converted:
            values[at] = convert(values[at])
        return values

    def row(self, values: Sequence[Any]) -> Any:
        """Return the values of a row, as the driver returned them, as a named tuple of converted values."""
        row = list(values)
        for at, convert in self.columns:
            row[at] = convert(row[at])
        return self.make_row(row)


def _compiled(statement: Statement, dialect: Dialect, columns: Sequence[str] | None) -> _Compiled:
    compiled: Any = statement.compile(dialect=dialect, column_keys=columns)
    binds = [(name, compiled.binds[name]) for name in compiled.positiontup or ()]
    selected = list(statement.selected_columns) if isinstance(statement, Select) else []
    names = [str(column.key) for column in selected]
    row: Any = namedtuple("Row", names)  # type: ignore[misc]  # noqa: PYI024 - the names are known only here
    converters = enumerate(_implementation(column.type, dialect).result_processor(dialect, None) for column in selected)
    parameters = [
        (name, bind.value, _implementation(bind.type, dialect).bind_processor(dialect)) for name, bind in binds
    ]
    return _Compiled(
        str(compiled),
        tuple(parameters),
        _getter([name for name, _, _ in parameters]),
        tuple((at, convert) for at, (_, _, convert) in enumerate(parameters) if convert is not None),
        row._make,
        tuple((at, converter) for at, converter in converters if converter is not None),
    )


def _getter(names: Sequence[str]) -> Callable[[Mapping[str, object]], Sequence[object]]:
    """Return a function that returns a mapping's values of `names`, as a sequence also for one name or none."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: [given[name] for name in names]


def _implementation(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
