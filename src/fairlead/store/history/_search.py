"""The trigram index for the search in the history. It is updated in the same transaction as the texts.

Without the index, and for a search for one or two characters, every text is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Integer, bindparam, column, literal_column, table
from sqlalchemy.exc import OperationalError

from fairlead.store import _trigrams
from fairlead.store.history._tables import texts

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, FromClause

TABLE = "history_search"
CREATE = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5(text, content='history_texts', content_rowid='id', "
    "tokenize='trigram', detail='none')"
)

_index = table(TABLE, column("rowid", Integer))
_ADD = "INSERT INTO history_search (rowid, text) SELECT id, text FROM history_texts WHERE id > ?"
_REMOVE = (
    "INSERT INTO history_search (history_search, rowid, text) "
    "SELECT 'delete', id, text FROM history_texts WHERE id IN (SELECT value FROM json_each(?))"
)


def create_index(connection: Connection) -> None:
    """Create the index, which is empty. Do nothing if the database does not support it."""
    _trigrams.create_index(connection, CREATE)


def rebuild_index(connection: Connection) -> None:
    """Rebuild the index, if there is one, from the texts, because no check of SQLite finds all damage to it."""
    if not has_index(connection):
        return
    connection.exec_driver_sql(f"DROP TABLE {TABLE}")
    create_index(connection)
    connection.exec_driver_sql(f"INSERT INTO {TABLE} ({TABLE}) VALUES ('rebuild')")


def has_index(connection: Connection) -> bool:
    """Return whether the database has the index, and the SQLite of this process can use it."""
    return _trigrams.has_index(connection, TABLE)


def erase_deleted(connection: Connection) -> None:
    """Make the index erase texts as soon as they are removed. Before SQLite 3.42, only its next merge erases them."""
    try:
        connection.exec_driver_sql(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('secure-delete', 1)")
    except OperationalError:  # before SQLite 3.42
        return


def add_after(connection: Connection, number: int) -> None:
    """Add the texts whose id is greater than `number` to the index."""
    connection.exec_driver_sql(_ADD, (number,))


def remove(connection: Connection, numbers: list[int]) -> None:
    """Remove the texts with the ids `numbers` from the index. Call it before they are deleted."""
    connection.exec_driver_sql(_REMOVE, (str(numbers),))


def candidates(trigrams: str) -> tuple[FromClause, ColumnElement[int], tuple[ColumnElement[bool], ...]]:
    """Return the table to search, its column with the ids of the texts, and the conditions for its rows.

    `trigrams` is the query of `trigram_query`; for "" the table has all texts, and there are no conditions. The ids
    come from the index if it is used: it yields its rows in their order, so reading one page does not read all matches.
    """
    if not trigrams:
        return texts, texts.c.id, ()
    joined = _index.join(texts, texts.c.id == _index.c.rowid)
    return joined, _index.c.rowid, (literal_column(TABLE).op("MATCH")(bindparam("trigrams", trigrams)),)


def like_pattern(text: str) -> str:
    """Return the LIKE pattern for values that contain a text. The escape character is a backslash."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
