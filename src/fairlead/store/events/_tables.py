"""The tables, as they are at the newest revision. A test holds them against what the migrations make."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text

REVISION_TABLE = "fairlead_revision"
"""Where Alembic notes the revision. Not its usual name: a database of another program must not pass for ours."""

metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("event", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("cwd", Text, nullable=False),
    Column("road", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("exit", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("steps", BigInteger, nullable=False),
    Column("caller", Text, nullable=False),
    Column("cut", Boolean, nullable=False),
    Column("payload", Text, nullable=False),
    Index("events_by_time", "at", "id"),
    Index("events_by_session", "session", "at", "id"),
    Index("events_by_kind", "event", "at", "id"),
)
"""The payload comes last: SQLite then finds every other column without walking through it."""

dones = Table(
    "dones",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("exit", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("steps", Text, nullable=False),
    Index("dones_by_time", "at"),
)
"""A table of its own, without a foreign key: how the commands ended may be told before the event itself is."""

turns = Table(
    "turns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("what", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Index("turns_by_time", "at"),
)
"""A turn has no id of its own; a digest of all of it keeps it from being taken twice."""

positions = Table(
    "positions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("segment", BigInteger, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("settled", BigInteger, nullable=False),
)
"""One row: how far the journal has been taken, and how often that was settled."""
