"""The search for a text in messages.

SQLite has a trigram index of all texts (FTS5). It finds the messages that contain all trigrams of a text, and the query
then checks which of them contain the text itself. Without the index, and for a text of one or two characters, every
message is read. The index is updated in the same transaction as the messages. `add_some` adds messages that were stored
before there was an index, the newest first.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Select,
    bindparam,
    column,
    delete,
    func,
    insert,
    literal_column,
    select,
    table,
    union,
)
from sqlalchemy.exc import DatabaseError

from fairlead.store import _trigrams
from fairlead.store.mail import _queries as queries
from fairlead.store.mail._tables import AnyText, counters, deliveries, messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Row

TABLE = "mail_search"
_CREATE = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5(subject, body, content='mail_messages', content_rowid='id', "
    "tokenize='trigram', detail='none')"
)
_UNINDEXED = "unindexed"
"""The name of the counter whose value is the highest id of the messages that are not in the index yet."""
_FEW_MESSAGES = 2000
"""If a reader has sent and received fewer messages than this, their texts are read, without the index.

That is faster than to check for each match whether the reader may see it.
"""

_index = table(TABLE, column("rowid"), column("subject"), column("body"))
_ADD = "INSERT INTO mail_search (rowid, subject, body) SELECT id, subject, body FROM mail_messages WHERE id = ?"
_REMOVE = (
    "INSERT INTO mail_search (mail_search, rowid, subject, body) "
    "SELECT 'delete', id, subject, body FROM mail_messages WHERE id = ? AND id > ?"
)


def create_index(connection: Connection) -> None:
    """Create the index, which is empty. Do nothing if the database does not support it."""
    _trigrams.create_index(connection, _CREATE)


def reset_index(connection: Connection) -> None:
    """Replace the index, if there is one, with an empty one, which the daemon fills.

    This repairs it in any case, because no check of SQLite finds all damage to an index.
    """
    if not has_index(connection):
        return
    connection.exec_driver_sql(f"DROP TABLE {TABLE}")
    create_index(connection)
    connection.execute(delete(counters).where(counters.c.name == _UNINDEXED))
    last = connection.execute(queries.LAST_MESSAGE).scalar_one()
    if last:
        connection.execute(insert(counters).values(name=_UNINDEXED, value=last))


def has_index(connection: Connection) -> bool:
    """Return whether the database has the index, and the SQLite of this process can use it."""
    return _trigrams.has_index(connection, TABLE)


def add(connection: Connection, numbers: Sequence[int]) -> None:
    """Add the messages with the ids `numbers` to the index. Call it after they were inserted."""
    with _resetting(connection):
        driver: Any = connection.connection.driver_connection
        driver.executemany(_ADD, [(number,) for number in numbers])


def remove(connection: Connection, numbers: Sequence[int]) -> None:
    """Remove the messages with the ids `numbers` from the index. Call it before they are deleted."""
    unindexed = last_unindexed(connection)
    with _resetting(connection):
        for number in numbers:
            connection.exec_driver_sql(_REMOVE, (number, unindexed))


@contextmanager
def _resetting(connection: Connection) -> Iterator[None]:
    """If the block finds the index damaged, reset it instead of raising the error. The messages are not affected."""
    try:
        yield
    except (DatabaseError, sqlite3.DatabaseError) as error:
        if not _is_index_damage(error):
            raise
        reset_index(connection)


def _is_index_damage(error: DatabaseError | sqlite3.DatabaseError) -> bool:
    cause = error.orig if isinstance(error, DatabaseError) else error
    return getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB


def add_some(connection: Connection, limit: int) -> bool:
    """Add up to `limit` messages that are not in the index to it, newest first. Return whether some may be left."""
    last = last_unindexed(connection)
    if not last:
        return False
    query = select(messages.c.id).where(messages.c.id <= last).order_by(messages.c.id.desc()).limit(limit)
    numbers = connection.execute(query).scalars().all()
    add(connection, numbers)
    connection.execute(delete(counters).where(counters.c.name == _UNINDEXED))
    if len(numbers) < limit:
        return False
    connection.execute(insert(counters).values(name=_UNINDEXED, value=numbers[-1] - 1))
    return True


def last_unindexed(connection: Connection) -> int:
    """Return the highest id of the messages that are not in the index yet; 0 if all are."""
    return connection.execute(queries.COUNTER, {"counter": _UNINDEXED}).scalar_one_or_none() or 0


def find(
    connection: Connection, text: str, reader: int, *, limit: int, before: int, is_indexed: bool
) -> list[Row[Any]]:
    """Return messages that contain a text and that a reader wrote or received, newest first; reader 0 sees all.

    Only messages with an id below `before` are returned. `is_indexed` tells whether the database has the index.
    """
    parameters = {"before": before, "limit": limit}
    if reader and _has_few(connection, reader):
        return list(connection.execute(_among_own(text, reader), parameters))
    trigrams = trigram_query(text) if is_indexed else ""
    if not trigrams:
        return list(connection.execute(queries.search(text, reader), parameters))
    last = last_unindexed(connection)
    try:
        rows = list(connection.execute(_indexed(text, reader), {**parameters, "trigrams": trigrams, "after": last}))
    except DatabaseError as error:
        if not _is_index_damage(error):
            raise
        return list(connection.execute(queries.search(text, reader), parameters))
    if last and len(rows) < limit:
        rest = {"before": min(before, last + 1), "limit": limit - len(rows)}
        rows += connection.execute(queries.search(text, reader), rest)
    return rows


def trigram_query(text: str) -> str:
    """Return an FTS5 query for messages that contain all trigrams of a text; "" if it has fewer than 3 characters."""
    return _trigrams.trigram_query(AnyText().process_bind_param(text, None) or "")


def _indexed(text: str, reader: int) -> Select[Any]:
    matches = literal_column(TABLE).op("MATCH")(bindparam("trigrams"))
    return (
        select(*queries.MESSAGE_COLUMNS)
        .select_from(_index.join(messages, messages.c.id == _index.c.rowid).join(*queries.JOINED_SENDERS))
        .where(matches, _index.c.rowid < bindparam("before"), _index.c.rowid > bindparam("after"))
        .where(queries.contains(text), queries.is_visible_to(reader))
        .order_by(_index.c.rowid.desc())
        .limit(bindparam("limit"))
    )


def _among_own(text: str, reader: int) -> Select[Any]:
    received = select(deliveries.c.message).where(deliveries.c.recipient == reader)
    sent = select(messages.c.id).where(messages.c.sender == reader)
    return queries.all_with(text).where(messages.c.id.in_(union(received, sent)))


def _has_few(connection: Connection, reader: int) -> bool:
    received = select(deliveries.c.message).where(deliveries.c.recipient == reader).limit(_FEW_MESSAGES).subquery()
    sent = select(messages.c.id).where(messages.c.sender == reader).limit(_FEW_MESSAGES).subquery()
    counts = (connection.execute(select(func.count()).select_from(some)).scalar_one() for some in (received, sent))
    return all(count < _FEW_MESSAGES for count in counts)
