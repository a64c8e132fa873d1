"""Converts messages, deliveries and agents to JSON documents. Every key is always present."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fairlead.mail import USER, MailCounts
from fairlead.sessions import Idle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.mail import Agent, Delivery, Message, SendResult
    from fairlead.sessions import Session

    Sessions = Callable[[str], Session | None]

Presence = Literal["active", "idle", "offline"]

DeliveryTime = Literal["now", "at its next event", "at its next prompt", "gone"]
"""When an agent is shown a message. In this order: it waits for mail, works, is idle, or has ended."""

_ACTIVE = 300.0
_OFFLINE = 1800.0
"""Seconds without activity after which an agent without a known session is offline.

An agent that waits for mail has no activity, so one whose session is alive is never offline.
"""
_PREVIEW = 200
_NONE = MailCounts()


def presence(agent: Agent, session: Session | None, now: float) -> Presence:
    """Return the presence of an agent, by its last event and the state of its session."""
    quiet = now - max(agent.seen, session.last_activity if session else 0.0)
    if agent.id == USER.id:
        return "active" if quiet < _ACTIVE else "idle"
    if has_ended(agent, session):
        return "offline"
    if quiet < _ACTIVE or (session is not None and not isinstance(session.state, Idle)):
        return "active"
    return "idle" if session is not None or quiet < _OFFLINE else "offline"


def delivery_time(agent: Agent, session: Session | None, *, is_listening: bool) -> DeliveryTime:
    """Return when an agent is shown a message that is sent now. A person sees it at once in `fairlead watch`."""
    if agent.id == USER.id or (is_listening and not has_ended(agent, session)):
        return "now"
    if has_ended(agent, session):
        return "gone"
    is_working = session is not None and (session.in_turn or not isinstance(session.state, Idle))
    return "at its next event" if is_working else "at its next prompt"


def has_ended(agent: Agent, session: Session | None) -> bool:
    """Return whether an agent has ended. The session shows it first, and the mail a moment later."""
    return bool(agent.ended) or (session is not None and session.ended is not None)


def session_of(agent: Agent, sessions: Sessions) -> Session | None:
    """Return the session of an agent or a subagent."""
    return sessions(f"{agent.session}/{agent.agent_id}" if agent.agent_id else agent.session)


def agent_document(
    agent: Agent, counts: MailCounts, session: Session | None, now: float, *, is_listening: bool = False
) -> dict[str, Any]:
    """Return the document of an agent."""
    return {
        "name": agent.name,
        "presence": presence(agent, session, now),
        "reach": delivery_time(agent, session, is_listening=is_listening),
        "session": agent.session,
        "agent_id": agent.agent_id,
        "project": agent.project,
        "created": agent.created,
        "seen": max(agent.seen, session.last_activity if session else 0.0),
        "ended": agent.ended,
        "queued": counts.queued,
        "unread": counts.unread,
        "owes": counts.owes,
        "owed": counts.owed,
        "is": msgspec.to_builtins(session) if session else None,
    }


def agent_documents(
    agents: Iterable[Agent],
    counts: dict[int, MailCounts],
    sessions: Sessions,
    now: float,
    is_listening: Callable[[int], bool],
) -> list[dict[str, Any]]:
    """Return the documents of agents."""
    return [
        agent_document(
            one, counts.get(one.id, _NONE), session_of(one, sessions), now, is_listening=is_listening(one.id)
        )
        for one in agents
    ]


def message_document(message: Message, *, whole: bool) -> dict[str, Any]:
    """Return the document of a message, with its body if `whole`, else with the beginning of the body."""
    row = {
        "id": message.id,
        "at": message.at,
        "from": message.sender,
        "to": list(message.to),
        "subject": message.subject,
        "priority": message.priority,
        "intent": message.intent,
        "thread": message.thread,
        "reply_to": message.reply_to,
        "deadline": message.deadline,
        "project": message.project,
    }
    return row | ({"body": message.body} if whole else {"preview": message.body[:_PREVIEW], "size": len(message.body)})


def delivery_document(delivery: Delivery) -> dict[str, Any]:
    """Return the delivery status of a message for one recipient."""
    return msgspec.structs.asdict(delivery)


def inbox_document(delivery: Delivery, message: Message) -> dict[str, Any]:
    """Return the document of a message in an inbox."""
    keys = ("recipient", "stage", "queued", "shown", "event", "read", "answered", "bounced", "why")
    return message_document(message, whole=False) | {key: getattr(delivery, key) for key in keys}


def sent_document(
    sent: SendResult, sessions: Sessions, now: float, is_listening: Callable[[int], bool]
) -> dict[str, Any]:
    """Return the document of a sent message."""
    return {
        "id": sent.message.id,
        "thread": sent.message.thread,
        "new": sent.is_new,
        "from": sent.message.sender,
        "recipients": [
            _recipient_document(one, session_of(one, sessions), now, is_listening=is_listening(one.id))
            for one in sent.recipients
        ],
    }


def _recipient_document(agent: Agent, session: Session | None, now: float, *, is_listening: bool) -> dict[str, Any]:
    return {
        "name": agent.name,
        "presence": presence(agent, session, now),
        "reach": delivery_time(agent, session, is_listening=is_listening),
    }
