"""Revision 3: a trigram index for the search in mail. The daemon adds the messages that exist already."""

from __future__ import annotations

from alembic import op
from sqlalchemy.exc import OperationalError

revision = "0003"
down_revision = "0002"

_CREATE = (
    "CREATE VIRTUAL TABLE mail_search USING fts5(subject, body, content='mail_messages', content_rowid='id', "
    "tokenize='trigram', detail='none')"
)


def upgrade() -> None:
    """Create the index, and mark the existing messages as not indexed.

    The daemon adds them while it runs, because that can take minutes.
    """
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    try:
        connection.exec_driver_sql(_CREATE)
    except OperationalError:  # a SQLite without FTS5, or older than 3.34: the search reads every message
        return
    connection.exec_driver_sql(
        "INSERT INTO mail_marks (name, value) SELECT 'unindexed', id FROM mail_messages ORDER BY id DESC LIMIT 1"
    )
