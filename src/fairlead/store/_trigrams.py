"""The index of the three-letter parts of texts (SQLite's FTS5), which the searches in mail and history share.

It finds the texts that have all parts of what is searched; they are then compared with the text itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import OperationalError

if TYPE_CHECKING:
    from sqlalchemy import Connection

_PART_LENGTH = 3
_MAX_PARTS = 24


def create_index(connection: Connection, statement: str) -> None:
    """Create an index, if this database can have one."""
    if connection.dialect.name != "sqlite":
        return
    try:
        connection.exec_driver_sql(statement)
    except OperationalError:  # a SQLite without FTS5, or older than 3.34
        return


def has_index(connection: Connection, table: str) -> bool:
    """Return whether the database has an index, and this process can use it."""
    if connection.dialect.name != "sqlite":
        return False
    try:
        connection.exec_driver_sql(f"SELECT rowid FROM {table} LIMIT 0")  # noqa: S608 - a constant
    except OperationalError:
        return False
    return True


def parts_of(text: str) -> str:
    """Return a query for all texts that have the parts of a text; "" if it has none."""
    parts = dict.fromkeys(text[at : at + _PART_LENGTH] for at in range(len(text) - _PART_LENGTH + 1))
    return " AND ".join('"' + part.replace('"', '""') + '"' for part in list(parts)[:_MAX_PARTS])
