"""From messages, letters and agents to rows, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.mail import Agent, Delivery, Message, Owed

if TYPE_CHECKING:
    from sqlalchemy import Row

    from fairlead.mail import Post

_write_addresses = msgspec.json.Encoder().encode
_read_addresses = msgspec.json.Decoder(tuple[str, ...]).decode


def agent_row(agent: Agent) -> dict[str, Any]:
    """Give an agent's row."""
    return msgspec.structs.asdict(agent)


def agent_of(row: Row[Any]) -> Agent:
    """Read an agent."""
    return Agent(**row._asdict())


def message_row(post: Post) -> dict[str, Any]:
    """Give a message's row."""
    message = post.message
    return {
        "id": message.id,
        "at": message.at,
        "sender": post.sender,
        "addressed": _write_addresses(message.to).decode(),
        "subject": message.subject,
        "priority": message.priority,
        "intent": message.intent,
        "thread": message.thread,
        "reply_to": message.reply_to,
        "deadline": message.deadline,
        "project": message.project,
        "key": post.key or None,
        "body": message.body,
    }


def message_of(row: Row[Any]) -> Message:
    """Read a message, from a row with its sender's name."""
    return Message(
        id=row.id,
        at=row.at,
        sender=row.sender_name,
        to=_read_addresses(row.addressed),
        subject=row.subject,
        body=row.body,
        priority=row.priority,
        intent=row.intent,
        thread=row.thread,
        reply_to=row.reply_to,
        deadline=row.deadline,
        project=row.project,
    )


def letter_rows(post: Post) -> list[dict[str, Any]]:
    """Give the rows of a message's letters: queued, or bounced where the recipient has ended."""
    message, gone = post.message, set(post.gone)
    same = {
        "message": message.id,
        "sender": post.sender,
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
    waits = {**same, "stage": "queued", "bounced": 0.0, "why": ""}
    bounces = {**same, "stage": "bounced", "bounced": message.at, "why": post.why}
    return [{**(bounces if number in gone else waits), "recipient": number} for number in post.recipients]


def letter_of(row: Row[Any]) -> Delivery:
    """Read a letter, from a row with its recipient's name."""
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


def owed_of(row: Row[Any]) -> Owed:
    """Read a request that was not answered, from a row of message and letter."""
    return Owed(
        message=message_of(row),
        letter=letter_of(row),
        sender=row.sender,
        recipient=row.recipient,
        told=row.told,
    )
