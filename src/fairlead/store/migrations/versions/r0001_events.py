"""Revision 1: events, the results of their commands, the daemon's records, and the journal position."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables of events, results of commands, daemon records and positions, with their indexes."""
    _create_events()
    op.create_table(
        "dones",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("exit", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("steps", sa.Text, nullable=False),
    )
    op.create_index("dones_by_time", "dones", ["at"])
    op.create_table(
        "turns",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
    )
    op.create_index("turns_by_time", "turns", ["at"])
    op.create_table(
        "positions",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.Column("offset", sa.BigInteger, nullable=False),
        sa.Column("settled", sa.BigInteger, nullable=False),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("cwd", sa.Text, nullable=False),
        sa.Column("road", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("exit", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("steps", sa.BigInteger, nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("cut", sa.Boolean, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
    )
    op.create_index("events_by_time", "events", ["at", "id"])
    op.create_index("events_by_session", "events", ["session", "at", "id"])
    op.create_index("events_by_kind", "events", ["event", "at", "id"])
