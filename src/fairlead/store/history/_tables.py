"""The tables of the history at the newest revision. They belong to the same revisions as the event tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, Table, Text, exists, or_, text

from fairlead.store.events._tables import events, metadata

_ROW_ID = BigInteger().with_variant(Integer, "sqlite")
"""The type of a primary key that the database assigns. In SQLite only an INTEGER is the rowid."""

IS_BLOCKED = text("verdict IN ('blocked', 'failed')")

sessions = Table(
    "history_sessions",
    metadata,
    Column("session", Text, primary_key=True),
    Column("client", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("started", Double, nullable=False),
    Column("last", Double, nullable=False),
    Column("ended", Double, nullable=False),
    Column("end_reason", Text, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("prompts", BigInteger, nullable=False),
    Column("tools", BigInteger, nullable=False),
    Column("blocked", BigInteger, nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("subagents", BigInteger, nullable=False),
    Column("usd", Double, nullable=False),
    Column("prompt", Text, nullable=False),
    Index("history_sessions_by_time", "last", "session"),
)
"""One row for each session, which each batch of its events updates. `ended` is 0 while no end is known."""

costs = Table(
    "history_costs",
    metadata,
    Column("session", Text, primary_key=True),
    Column("at", Double, primary_key=True),
    Column("usd", Double, nullable=False),
    Index("history_costs_by_time", "at"),
)

texts = Table(
    "history_texts",
    metadata,
    Column("id", _ROW_ID, primary_key=True, autoincrement=True),
    Column("session", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Index("history_texts_by_time", "at"),
)
"""The searchable texts. Their index is created in `_search`, because only SQLite has it."""

HAS_COST = or_(sessions.c.usd != 0, exists().where(costs.c.session == sessions.c.session)).label("has_cost")
"""Whether the cost of a session is known, because the client has reported it. It may be $0.00."""

blocked_events = Index("events_blocked", events.c.at, sqlite_where=IS_BLOCKED)
"""The index of the blocked events. A query must use the text of `IS_BLOCKED` to be served by it."""
