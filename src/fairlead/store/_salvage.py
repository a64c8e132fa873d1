"""Copies the readable rows of a damaged SQLite database to a new one.

Only tables are read: the indexes of the new database are built from the rows. A table is read in the order of its key.
After an error, reading continues at the next readable key. A row whose values do not have the declared types comes from
a damaged page, and is not copied.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

SKIPPED = frozenset({"fairlead_revision", "positions"})
"""Tables that are not copied.

The new database has its own revision. Without a position, it is filled again from the start of the journal.
"""

SALVAGED_MARK = "salvaged"
"""The name of a row in `mail_marks` that a salvaged database has until agents were notified of lost messages."""

_NOT_COPIED = ("mail_search", "history_search", "sqlite_")
_HEADER_BYTES = 100
_FILE_PAGES, _FREE_PAGES = slice(28, 32), slice(32, 40)
_MAX_KEY = 2**62
_MAX_HOLES = 10_000
_TYPES = {"TEXT": str, "INTEGER": int, "BIGINT": int, "SMALLINT": int, "BOOLEAN": int, "BLOB": bytes}

_MARKS = (
    f"INSERT OR REPLACE INTO mail_marks (name, value) VALUES ('{SALVAGED_MARK}', 1)",
    "DELETE FROM mail_marks WHERE name = 'unindexed'",
    "INSERT INTO mail_marks (name, value) SELECT 'unindexed', id FROM mail_messages ORDER BY id DESC LIMIT 1",
)
"""Statements that make the mail store report lost messages and fill the search index when it is next opened."""

_REBUILD = "INSERT INTO history_search (history_search) VALUES ('rebuild')"

_Row = tuple[Any, ...]


class Salvage(msgspec.Struct, frozen=True):
    """The result of a salvage."""

    rows: int
    """Rows that were copied."""
    holes: int
    """Places in the tables at which rows could not be read."""


def salvage(damaged: Path, new: Path) -> Salvage:
    """Copy the rows of a damaged database that can be read to a new one, whose tables exist and are empty.

    The damaged file is not changed. In the new one, marks make the mail store report lost messages and fill its search
    index when it is next opened.
    """
    rows = holes = 0
    with closing(sqlite3.connect(new, isolation_level=None)) as target:
        target.execute("PRAGMA trusted_schema = OFF")
        target.execute("BEGIN IMMEDIATE")
        triggers = _drop_triggers(target)
        with _Source(damaged, new) as source:
            for table in _tables(target):
                reader = _TableReader(source.connection, target, table)
                for row in reader.read():
                    rows += reader.copy(row)
                holes += reader.holes
        for statement in (*_MARKS, *triggers):
            target.execute(statement)
        with suppress(sqlite3.OperationalError):  # a SQLite without FTS5 has no index
            target.execute(_REBUILD)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return Salvage(rows, holes)


class _Source:
    """A read-only connection to a damaged database.

    If the header of the database cannot be read, the connection is to a copy with the header of the new database. As a
    context manager it closes the connection and deletes the copy.
    """

    def __init__(self, damaged: Path, new: Path) -> None:
        self._copy = Path(f"{new}.source")
        if damaged.stat().st_size == 0:  # SQLite would delete its log
            self.connection = _connect(_with_header_of(new, damaged, self._copy))
            return
        self.connection = _connect(damaged)
        try:
            self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError:
            self.connection.close()
            self.connection = _connect(_with_header_of(new, damaged, self._copy))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._copy}{suffix}").unlink(missing_ok=True)


def _connect(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, isolation_level=None)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    with suppress(sqlite3.DatabaseError):
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA writable_schema = ON")  # tolerates broken entries of the schema
    return connection


def _with_header_of(new: Path, damaged: Path, copy: Path) -> Path:
    """Copy a damaged database and its log to `copy`, replace the header with that of the new one, and return `copy`.

    This is possible because both databases have the same settings.
    """
    shutil.copyfile(damaged, copy)
    with suppress(FileNotFoundError):
        shutil.copyfile(f"{damaged}-wal", f"{copy}-wal")
    with new.open("rb") as file:
        header = bytearray(file.read(_HEADER_BYTES))
    page_size = int.from_bytes(header[16:18], "big") or 4096
    header[_FILE_PAGES] = (os.stat(copy).st_size // page_size).to_bytes(4, "big")
    header[_FREE_PAGES] = bytes(8)
    with copy.open("r+b") as file:
        file.write(header)
    return copy


def _drop_triggers(connection: sqlite3.Connection) -> list[str]:
    """Drop the triggers, so that no copied delivery is sent to another host again. Return statements to create them."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in rows:
        connection.execute(f'DROP TRIGGER "{name}"')
    return [sql for _, sql in rows]


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the tables to copy, without those of the search indexes, which are built from the texts."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [name for name in names if name not in SKIPPED and not name.startswith(_NOT_COPIED)]


class _TableReader:
    """Copies one table of a damaged database, and skips the parts that cannot be read. `holes` counts these."""

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> None:
        self._source = source
        self._target = target
        self._table = table
        self.holes = 0
        columns = target.execute(f'PRAGMA table_info("{table}")').fetchall()
        self._types = [_TYPES.get(column[2].upper(), float) for column in columns]
        self._may_be_null = [not column[3] and not column[5] for column in columns]
        self._columns = ", ".join(f'"{column[1]}"' for column in columns)
        self._places = ", ".join("?" * len(columns))
        keys = [column[1] for column in sorted(columns, key=lambda column: column[5]) if column[5]]
        self._key, self._second = ("rowid", "") if self._has_rowid() else (f'"{keys[0]}"', f'"{keys[1]}"')

    def read(self) -> Iterator[_Row]:
        """Yield the rows that can be read, in the order of their keys. Stop after `_MAX_HOLES` unreadable places."""
        after: tuple[Any, ...] | None = None
        while self.holes < _MAX_HOLES:
            try:
                for row in self._rows_after(after):
                    after = row[: 2 if self._second else 1]
                    yield row[2 if self._second else 1 :]
            except sqlite3.DatabaseError:
                self.holes += 1
                after = self._next_readable(after)
                if after is None:
                    return
            else:
                return

    def copy(self, row: _Row) -> int:
        """Insert a row into the new database. Return 1, or 0 if the row is invalid or its key is there already."""
        if not all(map(self._is_valid, row, self._types, self._may_be_null)):
            return 0
        try:
            return self._target.execute(
                f'INSERT OR IGNORE INTO "{self._table}" ({self._columns}) VALUES ({self._places})',
                row,
            ).rowcount
        except sqlite3.IntegrityError:
            return 0

    @staticmethod
    def _is_valid(value: object, kind: type, may_be_null: bool) -> bool:  # noqa: FBT001 - mapped over a row
        if value is None:
            return may_be_null
        return isinstance(value, int | float) if kind is float else isinstance(value, kind)

    def _has_rowid(self) -> bool:
        try:
            self._target.execute(f'SELECT rowid FROM "{self._table}" LIMIT 0')
        except sqlite3.OperationalError:
            return False
        return True

    def _rows_after(self, after: tuple[Any, ...] | None) -> Iterator[_Row]:
        """Yield the rows after a key, or all for `None`. Each row begins with the one or two columns of its key."""
        key, second = self._key, self._second
        keys = f"{key}, {second}" if second else key
        where = ""
        if after is not None:
            where = f"WHERE ({keys}) > ({', '.join('?' * len(after))})" if second else f"WHERE {key} > ?"
        statement = f'SELECT {keys}, {self._columns} FROM "{self._table}" NOT INDEXED {where} ORDER BY {keys}'
        yield from self._source.execute(statement, after or ())

    def _next_readable(self, after: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        """Return a key after a damaged place such that the next row can be read; `None` if there is no such key.

        `after` is the key of the last row that was read, or `None` if there was none.
        """
        last = int(after[0]) if after is not None else -1
        step = 1
        while not self._is_readable(last + step):
            step *= 2
            if last + step > _MAX_KEY:
                return None
        low, high = step // 2, step  # `low` is not readable, `high` is
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_readable(last + middle) else (middle, high)
        return (last + high, -1) if self._second else (last + high,)

    def _is_readable(self, key: int) -> bool:
        """Return whether there is a row after a key, and it can be read."""
        try:
            row = next(self._rows_after((key, -1) if self._second else (key,)), None)
        except sqlite3.DatabaseError:
            return False
        return row is not None
