"""Statements that are compiled once and run by the driver. SQLAlchemy takes four to ten times as long for each run."""

from __future__ import annotations

from collections import namedtuple
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Select, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Delete, Dialect, Insert, Table, Update
    from sqlalchemy.types import TypeEngine

    Processor = Callable[[Any], Any]
    Statement = Select[Any] | Insert | Update | Delete


class PreparedStatement:
    """A statement with named parameters, none of them a list.

    It runs in the connection's transaction. Without one, each query is a transaction, and two queries may see different
    states.
    """

    def __init__(self, statement: Statement, columns: Sequence[str] | None = None) -> None:
        """Store the statement, which is compiled when it first runs. `columns` are the columns that an insert sets."""
        self._statement = statement
        self._columns = columns
        self._compiled: _Compiled | None = None

    def rows(self, connection: Connection, parameters: Mapping[str, object]) -> Sequence[Any]:
        """Return all rows of a query."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, parameters).all()
        compiled = self._compile(connection.dialect)
        cursor = _driver(connection).execute(compiled.text, compiled.values(parameters))
        return [compiled.row(values) for values in cursor]

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> int:
        """Run a statement without results for each row of parameters. Return how many rows it changed."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, rows).rowcount
        compiled = self._compile(connection.dialect)
        cursor = _driver(connection).executemany(compiled.text, [compiled.values(row) for row in rows])
        return int(cursor.rowcount)

    def _compile(self, dialect: Dialect) -> _Compiled:
        if self._compiled is None:
            self._compiled = _compiled(self._statement, dialect, self._columns)
        return self._compiled


def ids_among(connection: Connection, table: Table, ids: Sequence[str]) -> Iterable[str]:
    """Return which of some ids a table has. They must be few enough for one statement."""
    if connection.dialect.name != "sqlite":
        return connection.execute(select(table.c.id).where(table.c.id.in_(ids))).scalars()
    marks = ", ".join("?" * len(ids))
    rows = _driver(connection).execute(f"SELECT id FROM {table.name} WHERE id IN ({marks})", ids)  # noqa: S608 - a name of ours
    return [name for (name,) in rows]


class _Compiled(NamedTuple):
    """The SQL text of a statement, with SQLAlchemy's conversions of its parameters and results."""

    text: str
    parameters: tuple[tuple[str, object, Processor | None], ...]
    """Name, default value, and the conversion for the driver."""
    get_all: Callable[[Mapping[str, object]], Sequence[object]]
    """Returns the parameters of a mapping that has all of them, before the conversions."""
    converted: tuple[tuple[int, Processor], ...]
    """The parameters that have to be converted."""
    make_row: Callable[[Iterable[Any]], Any]
    columns: tuple[tuple[int, Processor], ...]
    """The columns whose values have to be converted."""

    def values(self, given: Mapping[str, object]) -> list[object]:
        """Return the parameters in the order of the text."""
        try:
            values = list(self.get_all(given))
        except KeyError:
            values = [given.get(name, value) for name, value, _ in self.parameters]
        for at, convert in self.converted:
            values[at] = convert(values[at])
        return values

    def row(self, values: Sequence[Any]) -> Any:
        """Return a row as a named tuple of converted values."""
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
    """Return a function that gets the values of several keys from a mapping."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: [given[name] for name in names]


def _implementation(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
