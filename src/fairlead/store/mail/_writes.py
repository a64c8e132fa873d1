"""How the mail is changed: each a part of a transaction that somebody else begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, select, tuple_, update

from fairlead.mail import Waiting
from fairlead.store._backend import parts
from fairlead.store.mail import _queries as queries
from fairlead.store.mail._rows import agent_row, letter_rows, message_row
from fairlead.store.mail._tables import agents, formers, letters, marks, messages, subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from fairlead.mail import Agent, Former, Post, Stage

_TELL = (
    update(letters)
    .where(letters.c.recipient == bindparam("agent"), letters.c.message == bindparam("number"))
    .values(told=letters.c.told.bitwise_or(bindparam("reason")))
)
_LAST = "last_message"


def put_agents(connection: Connection, changed: Sequence[Agent], former: Sequence[Former]) -> None:
    """Keep agents, and what they were called before."""
    numbers = [agent.id for agent in changed]
    for part in parts(numbers):
        connection.execute(delete(agents).where(agents.c.id.in_(part)))
    connection.execute(insert(agents), [agent_row(agent) for agent in changed])
    for one in former:
        connection.execute(delete(formers).where(tuple_(formers.c.kind, formers.c.text) == (one.kind, one.text)))
        connection.execute(insert(formers).values(kind=one.kind, text=one.text, agent=one.agent))


def subscribe(connection: Connection, topic: str, agent: int) -> None:
    """Let an agent listen to a topic, as the last one of all."""
    unsubscribe(connection, topic, agent)
    last = connection.execute(select(func.max(subscriptions.c.number))).scalar_one() or 0
    connection.execute(insert(subscriptions).values(topic=topic, agent=agent, number=last + 1))


def unsubscribe(connection: Connection, topic: str, agent: int) -> None:
    """Let it listen no more."""
    connection.execute(delete(subscriptions).where(subscriptions.c.topic == topic, subscriptions.c.agent == agent))


def insert_posts(connection: Connection, posts: Sequence[Post]) -> dict[int, Waiting]:
    """Take messages and their letters, mark what they answer and tell, and say what left the queues by that."""
    if not posts:
        return {}
    connection.execute(insert(messages), [message_row(post) for post in posts])
    connection.execute(insert(letters), [row for post in posts for row in letter_rows(post)])
    told = [
        {"agent": recipient, "number": number, "reason": reason}
        for post in posts
        for number, recipient, reason in post.tells
    ]
    if told:
        connection.execute(_TELL, told)
    left: dict[int, Waiting] = {}
    for post in posts:
        if post.answers:
            left[post.answers] = left.get(post.answers, Waiting()) + _answer(connection, post)
    return {agent: waiting for agent, waiting in left.items() if waiting.queued}


def end_agents(connection: Connection, numbers: Iterable[int], at: float, why: str) -> None:
    """Mark agents as ended, and let bounce what is queued for them."""
    for number in numbers:
        connection.execute(queries.AGENT, {"agent": number, "ended": at})
        connection.execute(queries.ALL_QUEUED, {"agent": number, "stage": "bounced", "bounced": at, "why": why})


def revive_agent(connection: Connection, number: int) -> Waiting:
    """Let an agent live, queue what had bounced, and say how much that is."""
    row = connection.execute(queries.BOUNCED, {"agent": number}).one()
    connection.execute(queries.AGENT, {"agent": number, "ended": 0.0})
    connection.execute(queries.ALL_BOUNCED, {"agent": number, "stage": "queued", "bounced": 0.0, "why": ""})
    return Waiting(row.queued, row.urgent)


def first_queued(connection: Connection, agent: int, most: int, *, urgent_only: bool) -> list[int]:
    """Choose what is shown next, in order: the urgent ones with what is queued before them in their threads."""
    if not urgent_only:
        return list(connection.execute(queries.FIRST, {"agent": agent, "most": most}).scalars())
    urgent = connection.execute(queries.FIRST_URGENT, {"agent": agent, "most": most}).all()
    latest = {row.thread: row.message for row in urgent}
    chosen = {row.message for row in urgent}
    for thread, before in latest.items():
        asked = {"agent": agent, "in_thread": thread, "before": before, "most": most}
        chosen.update(connection.execute(queries.BEFORE_IN_THREAD, asked).scalars())
    return sorted(chosen)[:most]


def mark_shown(connection: Connection, agent: int, numbers: Sequence[int], event: dict[str, Any]) -> None:
    """Mark letters as shown at an event."""
    rows = [{"agent": agent, "number": number, "stage": "shown", **event} for number in numbers]
    if rows:
        connection.execute(queries.ONE, rows)


def queue_again(connection: Connection, event_id: str, why_not: str) -> dict[int, Waiting]:
    """Queue what was shown at an event; what is for an agent that has ended bounces."""
    again: dict[int, Waiting] = {}
    unshown = {"shown": 0.0, "event": "", "event_id": None}
    for row in connection.execute(queries.SHOWN_AT, {"at_event": event_id}).all():
        place = {"agent": row.recipient, "number": row.message, **unshown}
        if row.ended:
            connection.execute(queries.ONE, {**place, "stage": "bounced", "bounced": row.ended, "why": why_not})
        else:
            connection.execute(queries.ONE, {**place, "stage": "queued"})
            again[row.recipient] = again.get(row.recipient, Waiting()) + Waiting(1, row.urgent)
    return again


def mark_read(connection: Connection, agent: int, number: int, at: float) -> Stage | None:
    """Mark a letter as read, unless it is already or was answered, and say at which stage it was."""
    was: Stage | None = connection.execute(queries.STAGE, {"agent": agent, "message": number}).scalar_one_or_none()
    if was in {"queued", "shown", "bounced"}:
        connection.execute(queries.ONE, {"agent": agent, "number": number, "stage": "read", "read": at})
    return was


def delete_messages(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete messages with their letters. Their ids are not given again."""
    for part in parts(numbers):
        connection.execute(delete(letters).where(letters.c.message.in_(part)))
        connection.execute(delete(messages).where(messages.c.id.in_(part)))
    if numbers:
        last = max(last_deleted(connection), *numbers)
        connection.execute(delete(marks).where(marks.c.name == _LAST))
        connection.execute(insert(marks).values(name=_LAST, value=last))


def last_deleted(connection: Connection) -> int:
    """Give the highest id among the messages that were deleted."""
    return connection.execute(queries.MARK, {"mark": _LAST}).scalar_one_or_none() or 0


def delete_agents(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete agents, with all that they were called and listened to."""
    for part in parts(numbers):
        connection.execute(delete(formers).where(formers.c.agent.in_(part)))
        connection.execute(delete(subscriptions).where(subscriptions.c.agent.in_(part)))
        connection.execute(delete(agents).where(agents.c.id.in_(part)))


def _answer(connection: Connection, post: Post) -> Waiting:
    """Mark as answered what a message replies to, and what was asked before that in the thread by those who get it."""
    asked = {
        "agent": post.answers,
        "reply_to": post.message.reply_to,
        "senders": post.recipients,
        "in_thread": post.message.thread,
    }
    left = Waiting()
    found = {row.message: row for query in (queries.NAMED, queries.ASKED) for row in connection.execute(query, asked)}
    for row in found.values():
        place = {"agent": post.answers, "number": row.message}
        connection.execute(queries.ONE, {**place, "stage": "answered", "answered": post.message.at, "owed": 0})
        if row.stage == "queued":
            left += Waiting(1, row.urgent)
    return left
