"""The tables of the mail, as they are at the newest revision. They share the revisions of all the others."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Double, Index, Integer, SmallInteger, Table, Text, text
from sqlalchemy.types import TypeDecorator

from fairlead.store.events._tables import metadata

_MARK = "\uffff"
"""No character, by Unicode's own word: it can stand for what a database does not take."""


class AnyText(TypeDecorator[str]):
    """Text as it came, also with NUL in it: PostgreSQL does not take that, and SQLite searches only up to it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:  # noqa: ARG002 - SQLAlchemy's
        """Write NUL as two characters."""
        if value is None or ("\0" not in value and _MARK not in value):
            return value
        return value.replace(_MARK, f"{_MARK}1").replace("\0", f"{_MARK}0")

    def process_result_value(self, value: str | None, dialect: object) -> str | None:  # noqa: ARG002 - likewise
        """Make it NUL again."""
        if value is None or _MARK not in value:
            return value
        return value.replace(f"{_MARK}0", "\0").replace(f"{_MARK}1", _MARK)


MESSAGE_ID = BigInteger().with_variant(Integer, "sqlite")
"""In SQLite, this and no other name makes it the key of the rows themselves."""

QUEUED = text("stage = 'queued'")
URGENT = text("stage = 'queued' AND urgent = 1")
OWED = text("owed = 1")
AT_EVENT = text("event_id IS NOT NULL")
KEYED = text("key IS NOT NULL")
"""What is asked for in these very words is found by an index that holds nothing else."""


def _some(name: str, *columns: str, where: Any, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


agents = Table(
    "mail_agents",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", AnyText, nullable=False),
    Column("session", AnyText, nullable=False),
    Column("project", AnyText, nullable=False),
    Column("parent", Integer, nullable=False),
    Column("agent_id", AnyText, nullable=False),
    Column("created", Double, nullable=False),
    Column("seen", Double, nullable=False),
    Column("ended", Double, nullable=False),
    Column("saved", AnyText, nullable=False),
)

formers = Table(
    "mail_formers",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("text", AnyText, primary_key=True),
    Column("agent", Integer, nullable=False),
)
"""Names and session ids that agents had before."""

subscriptions = Table(
    "mail_subscriptions",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("agent", Integer, primary_key=True),
    Column("number", Integer, nullable=False),
)
"""The number keeps the order in which they came."""

messages = Table(
    "mail_messages",
    metadata,
    Column("id", MESSAGE_ID, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("sender", Integer, nullable=False),
    Column("addressed", AnyText, nullable=False),
    Column("subject", AnyText, nullable=False),
    Column("priority", Text, nullable=False),
    Column("intent", Text, nullable=False),
    Column("thread", MESSAGE_ID, nullable=False),
    Column("reply_to", MESSAGE_ID, nullable=False),
    Column("deadline", Double, nullable=False),
    Column("project", AnyText, nullable=False),
    Column("key", AnyText),
    Column("body", AnyText, nullable=False),
    Index("mail_messages_by_time", "at", "id"),
    Index("mail_messages_by_thread", "thread", "id"),
    Index("mail_messages_by_sender", "sender", "id"),
    _some("mail_messages_by_key", "sender", "key", where=KEYED, unique=True),
)
"""The body comes last: SQLite then finds every other column without walking through it."""

letters = Table(
    "mail_letters",
    metadata,
    Column("message", MESSAGE_ID, primary_key=True, autoincrement=False),
    Column("recipient", Integer, primary_key=True, autoincrement=False),
    Column("sender", Integer, nullable=False),
    Column("stage", Text, nullable=False),
    Column("urgent", SmallInteger, nullable=False),
    Column("owed", SmallInteger, nullable=False),
    Column("told", SmallInteger, nullable=False),
    Column("queued", Double, nullable=False),
    Column("shown", Double, nullable=False),
    Column("event", AnyText, nullable=False),
    Column("event_id", AnyText),
    Column("read", Double, nullable=False),
    Column("answered", Double, nullable=False),
    Column("bounced", Double, nullable=False),
    Column("why", AnyText, nullable=False),
    Index("mail_letters_by_stage", "recipient", "stage", "message"),
    _some("mail_letters_urgent", "recipient", "stage", "message", where=URGENT),
    _some("mail_letters_owed_by", "recipient", "message", where=OWED),
    _some("mail_letters_owed_to", "sender", "message", where=OWED),
    _some("mail_letters_at_event", "event_id", where=AT_EVENT),
    sqlite_with_rowid=False,
)
"""The ledger. Sender, urgent and owed are the message's: so the indexes can go by them.

No other index of all letters begins with the recipient: SQLite has no statistics, and would take the wrong one.
"""

marks = Table(
    "mail_marks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""`last_message`: the highest id among the messages that were deleted. No id is given twice."""
