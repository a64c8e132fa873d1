"""The index for the search in the history: the three-letter parts of all texts (FTS5), as for the search in mail.

It finds the texts that have all parts of what is searched; they are then compared with the text itself. Without the
index, and for one or two letters, every text is read. It changes in the same transaction as the texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Integer, bindparam, column, literal_column, table
from sqlalchemy.exc import OperationalError

from fairlead.store.history._tables import texts

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, FromClause

TABLE = "history_search"
CREATE = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5(text, content='history_texts', content_rowid='id', "
    "tokenize='trigram', detail='none')"
)
_PART_LENGTH = 3
_MAX_PARTS = 24

_index = table(TABLE, column("rowid", Integer))
_ADD = "INSERT INTO history_search (rowid, text) SELECT id, text FROM history_texts WHERE id > ?"
_REMOVE = (
    "INSERT INTO history_search (history_search, rowid, text) "
    "SELECT 'delete', id, text FROM history_texts WHERE id IN (SELECT value FROM json_each(?))"
)


def create_index(connection: Connection) -> None:
    """Create the index, if this database can have one."""
    if connection.dialect.name != "sqlite":
        return
    try:
        connection.exec_driver_sql(CREATE)
    except OperationalError:  # a SQLite without FTS5, or older than 3.34
        return


def rebuild_index(connection: Connection) -> None:
    """Create the index again from the texts: it may be damaged where no check looks."""
    if not has_index(connection):
        return
    connection.exec_driver_sql(f"DROP TABLE {TABLE}")
    create_index(connection)
    connection.exec_driver_sql(f"INSERT INTO {TABLE} ({TABLE}) VALUES ('rebuild')")  # noqa: S608 - a constant


def has_index(connection: Connection) -> bool:
    """Return whether the database has the index, and this process can use it."""
    if connection.dialect.name != "sqlite":
        return False
    try:
        connection.exec_driver_sql(f"SELECT rowid FROM {TABLE} LIMIT 0")  # noqa: S608 - a constant
    except OperationalError:
        return False
    return True


def erase_deleted(connection: Connection) -> None:
    """Have the index drop the parts of deleted texts at once, and not when it is next merged."""
    try:
        connection.exec_driver_sql(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('secure-delete', 1)")  # noqa: S608 - a constant
    except OperationalError:  # before SQLite 3.42
        return


def add_after(connection: Connection, number: int) -> None:
    """Add the texts after a number."""
    connection.exec_driver_sql(_ADD, (number,))


def remove(connection: Connection, numbers: list[int]) -> None:
    """Remove texts that are about to be deleted."""
    connection.exec_driver_sql(_REMOVE, (str(numbers),))


def parts_of(text: str) -> str:
    """Return a query for all texts that have the parts of a text; "" if it has none."""
    parts = dict.fromkeys(text[at : at + _PART_LENGTH] for at in range(len(text) - _PART_LENGTH + 1))
    return " AND ".join('"' + part.replace('"', '""') + '"' for part in list(parts)[:_MAX_PARTS])


def among(parts: str) -> tuple[FromClause, ColumnElement[int], tuple[ColumnElement[bool], ...]]:
    """Return where to read texts from: all that have these parts, or all. With the number of a text, and a condition.

    The index yields its rows in the order of their numbers, so that a page is read without the rest.
    """
    if not parts:
        return texts, texts.c.id, ()
    joined = _index.join(texts, texts.c.id == _index.c.rowid)
    return joined, _index.c.rowid, (literal_column(TABLE).op("MATCH")(bindparam("parts", parts)),)


def contains(text: str) -> str:
    """Return a pattern for LIKE that finds a text within another."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
