"""Revision 2: leases, and a version for each project that has some. The version before it does not look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0002"
down_revision = "0001"

_SCHEMA = "fairlead"


def upgrade(op: Operations) -> None:
    """Create both tables."""
    op.create_table(
        "leases",
        sa.Column("host", sa.Text, primary_key=True, nullable=False),
        sa.Column("id", sa.Text, primary_key=True, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary, nullable=False),
        schema=_SCHEMA,
    )
    op.create_index("leases_by_project", "leases", ["project"], schema=_SCHEMA)
    op.create_table(
        "lease_versions",
        sa.Column("project", sa.Text, primary_key=True, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        schema=_SCHEMA,
    )
