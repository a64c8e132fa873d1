"""Statements that are compiled once and run by the driver. SQLAlchemy takes four to ten times as long for each run."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Delete, Dialect, Insert, Update
    from sqlalchemy.types import TypeEngine

    Processor = Callable[[Any], Any]
    Statement = Select[Any] | Insert | Update | Delete


class Prepared:
    """A statement with named parameters, none of them a list. Part of the connection's transaction if it has one.

    Without a transaction a query is one of its own: two of them may see different states.
    """

    def __init__(self, statement: Statement) -> None:
        """Take the statement; it is compiled when it is first run."""
        self._statement = statement
        self._compiled: _Compiled | None = None

    def rows(self, connection: Connection, parameters: Mapping[str, object]) -> Sequence[Any]:
        """Return all rows of a query."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, parameters).all()
        compiled = self._compile(connection.dialect)
        cursor = _driver(connection).execute(compiled.text, compiled.values(parameters))
        return [compiled.row(values) for values in cursor]

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Run a statement that returns nothing, once for each row of parameters."""
        if connection.dialect.name != "sqlite":
            connection.execute(self._statement, rows)
            return
        compiled = self._compile(connection.dialect)
        _driver(connection).executemany(compiled.text, [compiled.values(row) for row in rows])

    def _compile(self, dialect: Dialect) -> _Compiled:
        if self._compiled is None:
            self._compiled = _compiled(self._statement, dialect)
        return self._compiled


class _Compiled(NamedTuple):
    """The text of a statement, and what SQLAlchemy would do with its parameters and results."""

    text: str
    parameters: tuple[tuple[str, object, Processor | None], ...]
    """Name, value if none is given, and how the driver wants it."""
    make_row: Callable[[Iterable[Any]], Any]
    columns: tuple[tuple[int, Processor], ...]
    """The columns whose values have to be converted."""

    def values(self, given: Mapping[str, object]) -> list[object]:
        """Return the parameters in the order of the text."""
        values = ((given.get(name, value), convert) for name, value, convert in self.parameters)
        return [value if convert is None else convert(value) for value, convert in values]

    def row(self, values: Sequence[Any]) -> Any:
        """Return a row with the names of its columns."""
        row = list(values)
        for at, convert in self.columns:
            row[at] = convert(row[at])
        return self.make_row(row)


def _compiled(statement: Statement, dialect: Dialect) -> _Compiled:
    compiled: Any = statement.compile(dialect=dialect)
    binds = [(name, compiled.binds[name]) for name in compiled.positiontup or ()]
    selected = list(statement.selected_columns) if isinstance(statement, Select) else []
    names = [str(column.key) for column in selected]
    row: Any = namedtuple("Row", names)  # type: ignore[misc]  # noqa: PYI024 - the names are known only here
    converters = enumerate(_implementation(column.type, dialect).result_processor(dialect, None) for column in selected)
    return _Compiled(
        str(compiled),
        tuple((name, bind.value, _implementation(bind.type, dialect).bind_processor(dialect)) for name, bind in binds),
        row._make,
        tuple((at, converter) for at, converter in converters if converter is not None),
    )


def _implementation(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
