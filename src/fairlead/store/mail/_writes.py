"""Changes to the mail tables. Each is made within a transaction of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, func, insert, select, tuple_

from fairlead.mail import QueueSize
from fairlead.store._database import PreparedStatement, batches
from fairlead.store.mail import _queries as queries
from fairlead.store.mail._tables import (
    agent_row,
    agents,
    aliases,
    counters,
    deliveries,
    delivery_rows,
    message_from,
    message_row,
    messages,
    subscriptions,
)
from fairlead.store.mail._team_tables import origins, threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from fairlead.mail import Agent, Alias, Message, OutgoingMessage, Stage

_INSERT_MESSAGES = PreparedStatement(insert(messages))
_INSERT_DELIVERIES = PreparedStatement(insert(deliveries))
_FIRST_QUEUED = PreparedStatement(queries.FIRST_QUEUED)
_QUEUED_MESSAGE = PreparedStatement(queries.QUEUED_MESSAGE)
_MARK_SHOWN = PreparedStatement(queries.UPDATE_DELIVERY, ("stage", "shown", "event", "event_id", "why"))
_LAST_MESSAGE = "last_message"
MAY_REPEAT = "it may have been shown before"
"""The `why` of a queued delivery that the recipient may have seen already. The message is shown with a remark."""


def save_agents(connection: Connection, changed: Sequence[Agent], former: Sequence[Alias]) -> None:
    """Store agents, and former names and session ids. Both replace existing ones with the same key."""
    for batch in batches([agent.id for agent in changed]):
        connection.execute(delete(agents).where(agents.c.id.in_(batch)))
    connection.execute(insert(agents), [agent_row(agent) for agent in changed])
    for alias in former:
        connection.execute(delete(aliases).where(tuple_(aliases.c.kind, aliases.c.text) == (alias.kind, alias.text)))
        connection.execute(insert(aliases).values(kind=alias.kind, text=alias.text, agent=alias.agent))


def subscribe(connection: Connection, topic: str, agent: int) -> None:
    """Subscribe an agent to a topic, as the latest of all subscriptions, also if it was subscribed before."""
    unsubscribe(connection, topic, agent)
    last = connection.execute(select(func.max(subscriptions.c.number))).scalar_one() or 0
    connection.execute(insert(subscriptions).values(topic=topic, agent=agent, number=last + 1))


def unsubscribe(connection: Connection, topic: str, agent: int) -> None:
    """Remove the subscription of an agent to a topic, if there is one."""
    connection.execute(delete(subscriptions).where(subscriptions.c.topic == topic, subscriptions.c.agent == agent))


def insert_messages(connection: Connection, outgoing: Sequence[OutgoingMessage]) -> dict[int, QueueSize]:
    """Insert messages and deliveries, and mark the deliveries that they answer or notify about.

    Return how many answered deliveries left the queue of each answering agent. Agents without any are left out.
    """
    if not outgoing:
        return {}
    _INSERT_MESSAGES.run_many(connection, [message_row(message) for message in outgoing])
    _INSERT_DELIVERIES.run_many(connection, [row for message in outgoing for row in delivery_rows(message)])
    notified = [
        {"agent": recipient, "number": number, "reason": reason}
        for message in outgoing
        for number, recipient, reason in message.marks_notified
    ]
    if notified:
        connection.execute(queries.MARK_NOTIFIED, notified)
    removed: dict[int, QueueSize] = {}
    for message in outgoing:
        if message.answered_by:
            removed[message.answered_by] = removed.get(message.answered_by, QueueSize()) + _mark_answered(
                connection, message
            )
    return {agent: size for agent, size in removed.items() if size.queued}


def end_agents(connection: Connection, numbers: Iterable[int], at: float, reason: str) -> None:
    """Mark agents as ended, and bounce their queued deliveries for `reason`."""
    for number in numbers:
        connection.execute(queries.UPDATE_AGENT, {"agent": number, "ended": at})
        connection.execute(queries.UPDATE_QUEUED, {"agent": number, "stage": "bounced", "bounced": at, "why": reason})


def revive_agent(connection: Connection, number: int) -> QueueSize:
    """Mark an agent as alive, and queue its bounced deliveries again. Return how many these are."""
    row = connection.execute(queries.BOUNCED_COUNTS, {"agent": number}).one()
    connection.execute(queries.UPDATE_AGENT, {"agent": number, "ended": 0.0})
    connection.execute(queries.UPDATE_BOUNCED, {"agent": number, "stage": "queued", "bounced": 0.0, "why": ""})
    return QueueSize(row.queued, row.urgent)


def show(connection: Connection, agent: int, limit: int, shown: dict[str, Any], *, urgent_only: bool) -> list[Message]:
    """Mark the first queued deliveries of an agent as shown, and return their messages, oldest first.

    `shown` are the new values of their columns. With `urgent_only`, only urgent messages and those queued
    before them in their threads are shown.
    """
    if urgent_only:
        numbers = _first_urgent(connection, agent, limit)
        rows = [
            row for number in numbers for row in _QUEUED_MESSAGE.rows(connection, {"agent": agent, "number": number})
        ]
    else:
        rows = list(_FIRST_QUEUED.rows(connection, {"agent": agent, "limit": limit}))
    if rows:
        _MARK_SHOWN.run_many(connection, [{"agent": agent, "number": row.id, **shown} for row in rows])
    return [message_from(row, may_repeat=bool(row.why)) for row in rows]


def _first_urgent(connection: Connection, agent: int, limit: int) -> list[int]:
    urgent = connection.execute(queries.FIRST_URGENT, {"agent": agent, "limit": limit}).all()
    last_in_thread = {row.thread: row.message for row in urgent}
    chosen = {row.message for row in urgent}
    for thread, last in last_in_thread.items():
        parameters = {"agent": agent, "in_thread": thread, "before": last, "limit": limit}
        chosen.update(connection.execute(queries.QUEUED_BEFORE_IN_THREAD, parameters).scalars())
    return sorted(chosen)[:limit]


def requeue(connection: Connection, event_id: str, bounce_reason: str, *, may_repeat: bool) -> dict[int, QueueSize]:
    """Queue the deliveries again that were shown at an event and not read since. Return how many, by agent.

    Those to an agent that has ended bounce for `bounce_reason` instead, and are not counted. With `may_repeat`, the
    next `show` marks the messages as possible repeats.
    """
    requeued: dict[int, QueueSize] = {}
    reset = {"shown": 0.0, "event": "", "event_id": None}
    for row in connection.execute(queries.SHOWN_AT_EVENT, {"at_event": event_id}).all():
        values = {"agent": row.recipient, "number": row.message, **reset}
        if row.ended:
            values |= {"stage": "bounced", "bounced": row.ended, "why": bounce_reason}
        else:
            values |= {"stage": "queued", "why": MAY_REPEAT if may_repeat else ""}
            requeued[row.recipient] = requeued.get(row.recipient, QueueSize()) + QueueSize(1, row.urgent)
        connection.execute(queries.UPDATE_DELIVERY, values)
    return requeued


def mark_read(connection: Connection, agent: int, number: int, at: float) -> Stage | None:
    """Mark a delivery as read, unless it is read or answered already.

    Return its previous stage; `None` if there is no such delivery.
    """
    parameters = {"agent": agent, "message": number}
    previous: Stage | None = connection.execute(queries.STAGE, parameters).scalar_one_or_none()
    if previous in {"queued", "shown", "bounced"}:
        connection.execute(queries.UPDATE_DELIVERY, {"agent": agent, "number": number, "stage": "read", "read": at})
    return previous


def delete_messages(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete messages with their deliveries and origins. Their ids are never reused."""
    for batch in batches(numbers):
        connection.execute(delete(deliveries).where(deliveries.c.message.in_(batch)))
        connection.execute(delete(messages).where(messages.c.id.in_(batch)))
        connection.execute(delete(origins).where(origins.c.message.in_(batch)))
    if numbers:
        save_last_deleted(connection, max(last_deleted(connection), *numbers))


def save_last_deleted(connection: Connection, number: int) -> None:
    """Store `number` as the highest id of all deleted messages. New messages get higher ids."""
    connection.execute(delete(counters).where(counters.c.name == _LAST_MESSAGE))
    connection.execute(insert(counters).values(name=_LAST_MESSAGE, value=number))


def delete_empty_threads(connection: Connection) -> None:
    """Delete the rows of other hosts' threads that have no messages left here."""
    connection.execute(delete(threads).where(~exists().where(messages.c.thread == threads.c.thread)))


def last_deleted(connection: Connection) -> int:
    """Return the highest id of all deleted messages; 0 if none was deleted."""
    return connection.execute(queries.COUNTER, {"counter": _LAST_MESSAGE}).scalar_one_or_none() or 0


def delete_agents(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete agents with their former names and subscriptions."""
    for batch in batches(numbers):
        connection.execute(delete(aliases).where(aliases.c.agent.in_(batch)))
        connection.execute(delete(subscriptions).where(subscriptions.c.agent.in_(batch)))
        connection.execute(delete(agents).where(agents.c.id.in_(batch)))


def _mark_answered(connection: Connection, outgoing: OutgoingMessage) -> QueueSize:
    """Mark the deliveries that a reply answers.

    These are the delivery of the message that is replied to, and those of earlier requests of the reply's recipients in
    the thread. Return how many of them left the queue of the agent that answers.
    """
    agent, message = outgoing.answered_by, outgoing.message
    parameters = {
        "agent": agent,
        "reply_to": message.reply_to,
        "senders": outgoing.recipients,
        "in_thread": message.thread,
    }
    answered = {
        row.message: row
        for query in (queries.REPLIED_TO, queries.ASKED_EARLIER)
        for row in connection.execute(query, parameters)
    }
    removed = QueueSize()
    for row in answered.values():
        values = {"agent": agent, "number": row.message, "stage": "answered", "answered": message.at, "owed": 0}
        connection.execute(queries.UPDATE_DELIVERY, values)
        if row.stage == "queued":
            removed += QueueSize(1, row.urgent)
    return removed
