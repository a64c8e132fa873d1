"""The mail tables at the newest revision, and their rows as messages, deliveries and agents.

The tables belong to the same revisions as the event tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, Column, Double, Index, Integer, SmallInteger, Table, Text, text
from sqlalchemy.types import TypeDecorator

from fairlead.mail import Agent, Delivery, Message, UnansweredRequest
from fairlead.store.events._tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Row

    from fairlead.mail import OutgoingMessage

_ESCAPE = "\uffff"
"""The character that begins an escape sequence: a noncharacter of Unicode, which texts hardly contain."""


class AnyText(TypeDecorator[str]):
    """Text that may contain NUL, which PostgreSQL rejects and at which a search in SQLite ends."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:  # noqa: ARG002 - the signature is SQLAlchemy's
        """Return the text with NUL and the escape character escaped, as two characters each; `None` for `None`."""
        if value is None or ("\0" not in value and _ESCAPE not in value):
            return value
        return value.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")

    def process_result_value(self, value: str | None, dialect: object) -> str | None:  # noqa: ARG002 - the signature is SQLAlchemy's
        """Return the text without the escapes of `process_bind_param`; `None` for `None`."""
        if value is None or _ESCAPE not in value:
            return value
        return value.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)


MESSAGE_ID = BigInteger().with_variant(Integer, "sqlite")
"""The type of the ids of messages. In SQLite only an INTEGER primary key is the rowid."""

QUEUED = text("stage = 'queued'")
URGENT = text("stage = 'queued' AND urgent = 1")
UNANSWERED = text("owed = 1")
SHOWN_AT_EVENT = text("event_id IS NOT NULL")
HAS_KEY = text("key IS NOT NULL")
"""The conditions of the partial indexes. A query must contain exactly this text to be served by the index."""


def _partial_index(name: str, *columns: str, where: Any, unique: bool = False) -> Index:
    # Without `postgresql_where`: it would load that dialect, which takes as long as most of the daemon.
    return Index(name, *columns, unique=unique, sqlite_where=where)


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
    Column("host", Text, nullable=False, server_default=""),
    Column("remote", Integer, nullable=False, server_default="0"),
)

aliases = Table(
    "mail_formers",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("text", AnyText, primary_key=True),
    Column("agent", Integer, nullable=False),
)
"""Former names and session ids of agents. `kind` is `name` or `session`."""

subscriptions = Table(
    "mail_subscriptions",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("agent", Integer, primary_key=True),
    Column("number", Integer, nullable=False),
)
"""The subscriptions to topics. `number` increases with each, and so keeps their order."""

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
    _partial_index("mail_messages_by_key", "sender", "key", where=HAS_KEY, unique=True),
)
"""The body is the last column: SQLite then reads every other column without scanning it."""

deliveries = Table(
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
    _partial_index("mail_letters_urgent", "recipient", "stage", "message", where=URGENT),
    _partial_index("mail_letters_owed_by", "recipient", "message", where=UNANSWERED),
    _partial_index("mail_letters_owed_to", "sender", "message", where=UNANSWERED),
    _partial_index("mail_letters_at_event", "event_id", where=SHOWN_AT_EVENT),
    sqlite_with_rowid=False,
)
"""The ledger. `sender`, `urgent` and `owed` repeat values of the message, so that indexes can use them.

No other full index starts with the recipient: SQLite has no statistics, and would choose the wrong one.
"""

counters = Table(
    "mail_marks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""Numbers by name: `last_message` (the highest id of deleted messages), `unindexed`, and marks, which are 1 if set."""


_encode_addresses = msgspec.json.Encoder().encode
_decode_addresses = msgspec.json.Decoder(tuple[str, ...]).decode


def agent_row(agent: Agent) -> dict[str, Any]:
    """Return the row of an agent, as a mapping from columns to values."""
    return msgspec.structs.asdict(agent)


def agent_from(row: Row[Any]) -> Agent:
    """Return the agent of a row."""
    return Agent(**row._asdict())


def message_row(outgoing: OutgoingMessage) -> dict[str, Any]:
    """Return the row of a message, as a mapping from columns to values."""
    message = outgoing.message
    return {
        "id": message.id,
        "at": message.at,
        "sender": outgoing.sender,
        "addressed": _encode_addresses(message.to).decode(),
        "subject": message.subject,
        "priority": message.priority,
        "intent": message.intent,
        "thread": message.thread,
        "reply_to": message.reply_to,
        "deadline": message.deadline,
        "project": message.project,
        "key": outgoing.key or None,
        "body": message.body,
    }


def message_from(row: Row[Any], *, may_repeat: bool = False) -> Message:
    """Return the message of a row with the columns `queries.MESSAGE_COLUMNS`, which include the sender's name."""
    return Message(
        id=row.id,
        at=row.at,
        sender=row.sender_name,
        to=addresses_from(row.addressed),
        subject=row.subject,
        body=row.body,
        priority=row.priority,
        intent=row.intent,
        thread=row.thread,
        reply_to=row.reply_to,
        deadline=row.deadline,
        project=row.project,
        may_repeat=may_repeat,
    )


def addresses_from(text: str) -> tuple[str, ...]:
    """Return the addresses that a column holds as JSON. An invalid value is returned as the only address.

    So a message with damaged addresses can still be shown.
    """
    try:
        return _decode_addresses(text)
    except ValueError:
        return (text,)


def delivery_rows(outgoing: OutgoingMessage) -> list[dict[str, Any]]:
    """Return the rows of a message's deliveries, in the order of its recipients.

    Those to ended recipients are bounced.
    """
    message, ended = outgoing.message, set(outgoing.ended_recipients)
    common = {
        "message": message.id,
        "sender": outgoing.sender,
        "urgent": int(message.priority == "urgent"),
        "owed": int(message.intent == "request"),
        "told": 0,
        "queued": message.at,
        "shown": 0.0,
        "event": "",
        "event_id": None,
        "read": 0.0,
        "answered": 0.0,
    }
    queued = {**common, "stage": "queued", "bounced": 0.0, "why": ""}
    bounced = {**common, "stage": "bounced", "bounced": message.at, "why": outgoing.bounce_reason}
    return [{**(bounced if number in ended else queued), "recipient": number} for number in outgoing.recipients]


def delivery_from(row: Row[Any]) -> Delivery:
    """Return the delivery of a row that includes the recipient's name."""
    return Delivery(
        message=row.message,
        recipient=row.recipient_name,
        stage=row.stage,
        queued=row.queued,
        shown=row.shown,
        event=row.event,
        read=row.read,
        answered=row.answered,
        bounced=row.bounced,
        why=row.why,
    )


def unanswered_from(row: Row[Any]) -> UnansweredRequest:
    """Return the unanswered request of a row that has the columns of a message and of a delivery, with both names."""
    return UnansweredRequest(
        message=message_from(row),
        delivery=delivery_from(row),
        sender=row.sender,
        recipient=row.recipient,
        notified=row.told,
    )
