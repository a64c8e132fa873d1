"""The trigram index (SQLite's FTS5) of the searches in mail and history.

The index finds the texts that contain all trigrams of the searched text, in any order. The caller then checks which of
them contain the text itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import OperationalError

if TYPE_CHECKING:
    from sqlalchemy import Connection

_LENGTH = 3
_MAX_TRIGRAMS = 24


def create_index(connection: Connection, statement: str) -> None:
    """Create an index by running `statement`. Do nothing if this process's SQLite does not support it."""
    try:
        connection.exec_driver_sql(statement)
    except OperationalError:  # a SQLite without FTS5, or older than 3.34
        return


def has_index(connection: Connection, table: str) -> bool:
    """Return whether the database has the index `table`, and the SQLite of this process can use it."""
    try:
        connection.exec_driver_sql(f"SELECT rowid FROM {table} LIMIT 0")
    except OperationalError:
        return False
    return True


def trigram_query(text: str) -> str:
    """Return an FTS5 query for all texts that contain the trigrams of a text; "" if it has fewer than 3 characters.

    Only the first 24 different trigrams are queried.
    """
    trigrams = dict.fromkeys(text[at : at + _LENGTH] for at in range(len(text) - _LENGTH + 1))
    return " AND ".join('"' + trigram.replace('"', '""') + '"' for trigram in list(trigrams)[:_MAX_TRIGRAMS])
