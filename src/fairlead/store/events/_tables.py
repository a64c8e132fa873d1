"""The event tables at the newest revision. A test compares them with what the migrations create."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text

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
"""The payload is the last column: SQLite then reads every other column without scanning it."""

commands = Table(
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
"""The results of an event's commands, under the id of the event.

There is no foreign key, because the results may be stored before the event.
"""

daemon_records = Table(
    "turns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("what", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Index("turns_by_time", "at"),
)
"""The daemon's records. They have no id, so the id of a row is a digest of its content, by which it is stored once."""

positions = Table(
    "positions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("segment", BigInteger, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("settled", BigInteger, nullable=False),
)
"""One row: the journal position up to which records are stored, and in `settled` how often that was synced."""
