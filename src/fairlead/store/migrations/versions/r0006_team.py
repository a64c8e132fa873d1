"""Revision 6: mail between the hosts of a team."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_TRIGGERS = (
    """
    CREATE TRIGGER team_message_sent AFTER INSERT ON mail_letters WHEN NEW.recipient >= 1099511627776
    BEGIN
        INSERT INTO team_pending (kind, message, recipient) VALUES ('message', NEW.message, NEW.recipient);
    END
    """,
    """
    CREATE TRIGGER team_stage_changed AFTER UPDATE OF stage ON mail_letters
    WHEN NEW.sender >= 1099511627776 AND NEW.stage <> OLD.stage
    BEGIN
        INSERT INTO team_pending (kind, message, recipient) VALUES ('receipt', NEW.message, NEW.recipient);
    END
    """,
)


def upgrade() -> None:
    """Add the host of an agent, the tables of packets and hosts, and the triggers that fill `team_pending`."""
    op.add_column("mail_agents", sa.Column("host", sa.Text, nullable=False, server_default=""))
    op.add_column("mail_agents", sa.Column("remote", sa.Integer, nullable=False, server_default="0"))
    _create_parcels()
    _create_origins()
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for trigger in _TRIGGERS:
            connection.exec_driver_sql(trigger)


def _create_parcels() -> None:
    op.create_table(
        "team_pending",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.BigInteger, nullable=False),
        sa.Column("recipient", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "team_outbox",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "team_links",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("last_sent", sa.BigInteger, nullable=False),
        sa.Column("acknowledged", sa.BigInteger, nullable=False),
        sa.Column("applied", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "team_refused",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("team_pending_by_message", "team_pending", ["message"])
    op.create_index("team_outbox_by_seq", "team_outbox", ["target", "seq"], unique=True)
    op.create_index("team_outbox_by_message", "team_outbox", ["message"])


def _create_origins() -> None:
    op.create_table(
        "team_origins",
        sa.Column("message", _ID, primary_key=True, autoincrement=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("others", sa.Text, nullable=False),
    )
    op.create_table(
        "team_threads",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("thread", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "team_hosts",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("snapshot", sa.LargeBinary, nullable=False),
    )
    op.create_index("team_origins_by_number", "team_origins", ["host", "number"], unique=True)
    op.create_index("team_threads_by_thread", "team_threads", ["thread"])
