"""Converts messages, deliveries and agents to rows and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.mail import Agent, Delivery, Message, UnansweredRequest

if TYPE_CHECKING:
    from sqlalchemy import Row

    from fairlead.mail import OutgoingMessage

_encode_addresses = msgspec.json.Encoder().encode
_decode_addresses = msgspec.json.Decoder(tuple[str, ...]).decode


def agent_row(agent: Agent) -> dict[str, Any]:
    """Return the row of an agent."""
    return msgspec.structs.asdict(agent)


def agent_from(row: Row[Any]) -> Agent:
    """Return the agent of a row."""
    return Agent(**row._asdict())


def message_row(outgoing: OutgoingMessage) -> dict[str, Any]:
    """Return the row of a message."""
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


def message_from(row: Row[Any]) -> Message:
    """Return the message of a row that includes the sender's name."""
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
    )


def addresses_from(text: str) -> tuple[str, ...]:
    """Decode the addresses of a message. An invalid value is returned as one address, so that the message is shown."""
    try:
        return _decode_addresses(text)
    except ValueError:
        return (text,)


def delivery_rows(outgoing: OutgoingMessage) -> list[dict[str, Any]]:
    """Return the rows of a message's deliveries: queued, or bounced if the recipient has ended."""
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
    """Return the unanswered request of a row that joins message and delivery."""
    return UnansweredRequest(
        message=message_from(row),
        delivery=delivery_from(row),
        sender=row.sender,
        recipient=row.recipient,
        notified=row.told,
    )
