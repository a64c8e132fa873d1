"""Revision 2: mail between agents, with a ledger of every delivery."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the mail tables."""
    op.create_table(
        "mail_agents",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("parent", sa.Integer, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
        sa.Column("ended", sa.Double, nullable=False),
        sa.Column("saved", sa.Text, nullable=False),
    )
    op.create_table(
        "mail_formers",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, primary_key=True),
        sa.Column("agent", sa.Integer, nullable=False),
    )
    op.create_table(
        "mail_subscriptions",
        sa.Column("topic", sa.Text, primary_key=True),
        sa.Column("agent", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
    )
    op.create_table(
        "mail_marks",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    _create_messages()
    _create_deliveries()


def _create_messages() -> None:
    op.create_table(
        "mail_messages",
        sa.Column("id", _ID, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("sender", sa.Integer, nullable=False),
        sa.Column("addressed", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("intent", sa.Text, nullable=False),
        sa.Column("thread", _ID, nullable=False),
        sa.Column("reply_to", _ID, nullable=False),
        sa.Column("deadline", sa.Double, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("mail_messages_by_time", "mail_messages", ["at", "id"])
    op.create_index("mail_messages_by_thread", "mail_messages", ["thread", "id"])
    op.create_index("mail_messages_by_sender", "mail_messages", ["sender", "id"])
    _create_partial_index("mail_messages_by_key", "mail_messages", ["sender", "key"], "key IS NOT NULL", unique=True)


def _create_deliveries() -> None:
    op.create_table(
        "mail_letters",
        sa.Column("message", _ID, primary_key=True, autoincrement=False),
        sa.Column("recipient", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sender", sa.Integer, nullable=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("urgent", sa.SmallInteger, nullable=False),
        sa.Column("owed", sa.SmallInteger, nullable=False),
        sa.Column("told", sa.SmallInteger, nullable=False),
        sa.Column("queued", sa.Double, nullable=False),
        sa.Column("shown", sa.Double, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("event_id", sa.Text),
        sa.Column("read", sa.Double, nullable=False),
        sa.Column("answered", sa.Double, nullable=False),
        sa.Column("bounced", sa.Double, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("mail_letters_by_stage", "mail_letters", ["recipient", "stage", "message"])
    urgent = "stage = 'queued' AND urgent = 1"
    _create_partial_index("mail_letters_urgent", "mail_letters", ["recipient", "stage", "message"], urgent)
    _create_partial_index("mail_letters_owed_by", "mail_letters", ["recipient", "message"], "owed = 1")
    _create_partial_index("mail_letters_owed_to", "mail_letters", ["sender", "message"], "owed = 1")
    _create_partial_index("mail_letters_at_event", "mail_letters", ["event_id"], "event_id IS NOT NULL")


def _create_partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
