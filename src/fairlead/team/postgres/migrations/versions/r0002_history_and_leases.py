"""Revision 2: signed events and sessions for the history of the team, and leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0002"
down_revision = "0001"

_SCHEMA = "fairlead"


def upgrade(op: Operations) -> None:
    """Add tables, and columns with defaults. All statements of hosts that expect revision 1 still work."""
    _add_history(op)
    _add_leases(op)


def _add_history(op: Operations) -> None:
    """Add signatures of events, sessions with their statistics, and the positions up to which journals are copied."""
    for name, kind, default in (
        ("stage", sa.SmallInteger, "0"),
        ("text", sa.Text, "''"),
        ("signature", sa.LargeBinary, "'\\x'"),
    ):
        column = sa.Column(name, kind, nullable=False, server_default=sa.text(default))
        op.add_column("events", column, schema=_SCHEMA)
    op.create_index("events_by_session", "events", ["host", "session", "at"], schema=_SCHEMA)
    op.create_table(
        "history",
        *_columns(sa.Text, "host", "session", key=True),
        *_columns(sa.Double, "started", "last"),
        *_columns(sa.Text, "folder"),
        *_columns(sa.BigInteger, "version"),
        *_columns(sa.LargeBinary, "body", "signature"),
        schema=_SCHEMA,
    )
    op.create_index("history_by_time", "history", ["last"], schema=_SCHEMA)
    op.create_table(
        "marks",
        *_columns(sa.Text, "host", key=True),
        *_columns(sa.BigInteger, "segment", "position"),
        schema=_SCHEMA,
    )


def _add_leases(op: Operations) -> None:
    """Add leases, and a version for each project that has leases."""
    op.create_table(
        "leases",
        *_columns(sa.Text, "host", "id", key=True),
        *_columns(sa.Text, "project"),
        *_columns(sa.Double, "until"),
        *_columns(sa.LargeBinary, "body", "signature"),
        schema=_SCHEMA,
    )
    op.create_index("leases_by_project", "leases", ["project"], schema=_SCHEMA)
    op.create_table(
        "lease_versions",
        *_columns(sa.Text, "project", key=True),
        *_columns(sa.BigInteger, "version"),
        *_columns(sa.Double, "at"),
        schema=_SCHEMA,
    )


def _columns(kind: type[Any], *names: str, key: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, primary_key=key, nullable=False) for name in names]
