"""Revision 1: the team and its hosts, packets, certificates, snapshots and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0001"
down_revision = None

_SCHEMA = "fairlead"


def upgrade(op: Operations) -> None:
    """Create all tables."""
    op.create_table(
        "team",
        sa.Column("single", sa.Boolean, primary_key=True, server_default=sa.text("true")),
        *_columns(sa.Text, "id"),
        *_columns(sa.Double, "founded"),
        sa.CheckConstraint("single", name="team_is_one"),
        schema=_SCHEMA,
    )
    op.create_table(
        "hosts",
        *_columns(sa.Text, "id", key=True),
        *_columns(sa.Text, "name"),
        *_columns(sa.LargeBinary, "key"),
        *_columns(sa.Text, "version", "boot"),
        *_columns(sa.Double, "joined", "seen"),
        sa.UniqueConstraint("name", name="hosts_name"),
        schema=_SCHEMA,
    )
    op.create_table(
        "certificates",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        *_columns(sa.Text, "host", "name"),
        *_columns(sa.LargeBinary, "key"),
        *_columns(sa.Text, "verdict", "by"),
        *_columns(sa.Double, "at"),
        *_columns(sa.LargeBinary, "signature"),
        sa.UniqueConstraint("signature", name="certificates_signature"),
        schema=_SCHEMA,
    )
    _create_contents(op)


def _create_contents(op: Operations) -> None:
    op.create_table(
        "parcels",
        *_columns(sa.Text, "target", "origin", key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        *_columns(sa.Text, "kind"),
        *_columns(sa.LargeBinary, "body", "signature"),
        *_columns(sa.Double, "at"),
        schema=_SCHEMA,
    )
    op.create_table(
        "progress",
        *_columns(sa.Text, "origin", "target", key=True),
        *_columns(sa.BigInteger, "seq"),
        schema=_SCHEMA,
    )
    op.create_table(
        "snapshots",
        *_columns(sa.Text, "host", "kind", key=True),
        *_columns(sa.BigInteger, "version"),
        *_columns(sa.LargeBinary, "body", "signature"),
        *_columns(sa.Double, "at"),
        schema=_SCHEMA,
    )
    op.create_table(
        "events",
        *_columns(sa.Text, "host", "id", key=True),
        *_columns(sa.Double, "at"),
        *_columns(sa.Text, "session", "event", "verdict"),
        *_columns(sa.LargeBinary, "body"),
        schema=_SCHEMA,
    )
    op.create_index("events_by_time", "events", ["at"], schema=_SCHEMA)
    op.create_index("events_by_host", "events", ["host", "at"], schema=_SCHEMA)


def _columns(kind: type[Any], *names: str, key: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, primary_key=key, nullable=False) for name in names]
