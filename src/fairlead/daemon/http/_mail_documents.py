"""Mail as JSON: what the daemon tells of messages, letters and agents. Every key is always there."""

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

_ACTIVE = 300.0
_OFFLINE = 1800.0
"""Seconds without a sign of life. Who waits for mail gives none, so one whose process lives is never offline."""
_PREVIEW = 200
_NONE = MailCounts()


def presence(agent: Agent, session: Session | None, now: float) -> Presence:
    """Tell whether somebody is there, by the last event and by what is known of the session."""
    quiet = now - max(agent.seen, session.last_activity if session else 0.0)
    if agent.id == USER.id:
        return "active" if quiet < _ACTIVE else "idle"
    if has_ended(agent, session):
        return "offline"
    if quiet < _ACTIVE or (session is not None and not isinstance(session.state, Idle)):
        return "active"
    return "idle" if session is not None or quiet < _OFFLINE else "offline"


def has_ended(agent: Agent, session: Session | None) -> bool:
    """Tell whether somebody is gone: the registry hears it first, and the mail a moment later."""
    return bool(agent.ended) or (session is not None and session.ended is not None)


def session_of(agent: Agent, sessions: Sessions) -> Session | None:
    """Find the session of an agent, or of a subagent."""
    return sessions(f"{agent.session}/{agent.agent_id}" if agent.agent_id else agent.session)


def agent_row(agent: Agent, standing: MailCounts, session: Session | None, now: float) -> dict[str, Any]:
    """Tell of an agent."""
    return {
        "name": agent.name,
        "presence": presence(agent, session, now),
        "session": agent.session,
        "agent_id": agent.agent_id,
        "project": agent.project,
        "created": agent.created,
        "seen": max(agent.seen, session.last_activity if session else 0.0),
        "ended": agent.ended,
        "queued": standing.queued,
        "unread": standing.unread,
        "owes": standing.owes,
        "owed": standing.owed,
        "is": msgspec.to_builtins(session) if session else None,
    }


def agent_rows(
    agents: Iterable[Agent], standings: dict[int, MailCounts], sessions: Sessions, now: float
) -> list[dict[str, Any]]:
    """Tell of agents."""
    return [agent_row(one, standings.get(one.id, _NONE), session_of(one, sessions), now) for one in agents]


def message_row(message: Message, *, whole: bool) -> dict[str, Any]:
    """Tell of a message; if not the whole, the beginning of its body."""
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


def letter_row(letter: Delivery) -> dict[str, Any]:
    """Tell how a message fares with a recipient."""
    return msgspec.structs.asdict(letter)


def inbox_row(letter: Delivery, message: Message) -> dict[str, Any]:
    """Tell of a message in an inbox."""
    told = ("recipient", "stage", "queued", "shown", "event", "read", "answered", "bounced", "why")
    return message_row(message, whole=False) | {key: getattr(letter, key) for key in told}


def sent_row(sent: SendResult, sessions: Sessions, now: float) -> dict[str, Any]:
    """Tell what became of a draft."""
    return {
        "id": sent.message.id,
        "thread": sent.message.thread,
        "new": sent.is_new,
        "from": sent.message.sender,
        "recipients": [
            {"name": one.name, "presence": presence(one, session_of(one, sessions), now)} for one in sent.recipients
        ],
    }
