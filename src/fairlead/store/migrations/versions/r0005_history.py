"""Revision 5: the history of sessions, with their costs and texts, and the index for the search in these texts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import OperationalError

revision = "0005"
down_revision = "0003"

_COUNTERS = ("events", "prompts", "tools", "blocked", "asked", "failures", "subagents")
_BLOCKED = "verdict IN ('blocked', 'failed')"
_CREATE = (
    "CREATE VIRTUAL TABLE history_search USING fts5(text, content='history_texts', content_rowid='id', "
    "tokenize='trigram', detail='none')"
)
_FILL = """
INSERT INTO history_sessions
SELECT session, max(client), max(cwd), min(at), max(at), max(CASE event WHEN 'SessionEnd' THEN at ELSE 0.0 END), '',
    count(*), sum(event = 'UserPromptSubmit'), sum(event = 'PreToolUse'), sum(verdict IN ('blocked', 'failed')),
    sum(event = 'PermissionRequest'), sum(event = 'PostToolUseFailure'), sum(event = 'SubagentStart'), 0.0, ''
FROM events WHERE session != '' GROUP BY session
"""


def upgrade() -> None:
    """Create the tables, and add the sessions of the events that are stored, but not the texts of these events."""
    op.create_table(
        "history_sessions",
        sa.Column("session", sa.Text, primary_key=True),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("started", sa.Double, nullable=False),
        sa.Column("last", sa.Double, nullable=False),
        sa.Column("ended", sa.Double, nullable=False),
        sa.Column("end_reason", sa.Text, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in _COUNTERS),
        sa.Column("usd", sa.Double, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
    )
    op.create_table(
        "history_costs",
        sa.Column("session", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, primary_key=True),
        sa.Column("usd", sa.Double, nullable=False),
    )
    op.create_table(
        "history_texts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("history_sessions_by_time", "history_sessions", ["last", "session"])
    op.create_index("history_costs_by_time", "history_costs", ["at"])
    op.create_index("history_texts_by_time", "history_texts", ["at"])
    where = sa.text(_BLOCKED)
    op.create_index("events_blocked", "events", ["at"], sqlite_where=where, postgresql_where=where)
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    connection.exec_driver_sql(_FILL)
    try:
        connection.exec_driver_sql(_CREATE)
    except OperationalError:  # a SQLite without FTS5, or older than 3.34: the search reads every text
        return
