"""Notifies senders and recipients of the messages that were lost with a damaged database.

A delivery and its message are stored at different places of the file, so usually one of the two is left. The delivery
of a lost message names its sender and recipient. A message whose delivery is lost contains the addresses to which it
was sent: it is delivered again, and shown as a possible repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, func, insert, select, update

from fairlead.mail import ENDED_REASON, FAIRLEAD, SCRIPT, STAGES, Message, OutgoingMessage
from fairlead.store._salvage import SALVAGED_MARK
from fairlead.store.mail import _writes as writes
from fairlead.store.mail._tables import (
    addresses_from,
    agent_row,
    agents,
    aliases,
    counters,
    deliveries,
    delivery_rows,
    message_from,
    messages,
)
from fairlead.store.mail._team_tables import LINKS_LOST, hosts, links, outbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    Lines = dict[int, list[str]]
    """The lines of each agent's notice, by the id of the agent."""

_MAX_LISTED = 50
_SKIPPED_NUMBERS = 1000
"""The number of ids that are not given to new messages, because other hosts may know lost messages by them.

A damaged page cannot have held so many messages.
"""
_SUBJECT = "Messages were lost with a damaged database"
_INTRODUCTION = "The database of the mail was damaged, and a new one holds what could be read of it."

_has_message = exists().where(messages.c.id == deliveries.c.message)
_has_delivery = exists().where(deliveries.c.message == messages.c.id)


def report_losses(connection: Connection, at: float) -> int:
    """Send notices about lost messages and deliveries to their agents. Return how many messages are lost.

    Do nothing and return 0 if the database was not salvaged, or its losses were reported already. Everything is part of
    the caller's transaction, so that each notice is sent once, even if the process is killed.
    """
    marked = connection.execute(delete(counters).where(counters.c.name == SALVAGED_MARK)).rowcount
    if not marked:
        return 0
    _add_missing_agents(connection, at)
    _skip_numbers(connection)
    connection.execute(update(deliveries).where(deliveries.c.stage.not_in(STAGES)).values(stage="queued"))
    names = {row.id: row.name for row in connection.execute(select(agents.c.id, agents.c.name))}
    lines: Lines = {}
    lost = _list_lost_messages(connection, names, lines)
    _restore_deliveries(connection, names, lines)
    for number, sender in connection.execute(select(messages.c.id, messages.c.sender).where(~_has_delivery)).all():
        text = f"- {number}, from you: it is kept, but whether it was shown is not known; `fairlead read {number}`."
        lines.setdefault(sender, []).append(text)
    writes.delete_messages(connection, sorted(lost))
    _send(connection, lines, names, at)
    return len(lost)


def _list_lost_messages(connection: Connection, names: dict[int, str], lines: Lines) -> set[int]:
    """Add to `lines` a line for sender and recipient of each delivery whose message is lost.

    Return the ids of the lost messages. `names` are the names of the agents by id.
    """
    lost = connection.execute(
        select(deliveries.c.message, deliveries.c.sender, deliveries.c.recipient, deliveries.c.stage)
        .where(~_has_message)
        .order_by(deliveries.c.message)
    ).all()
    for row in lost:
        state = "it had not been shown" if row.stage in {"queued", "bounced"} else "it had been shown"
        sender, recipient = names[row.sender], names[row.recipient]
        lines.setdefault(row.sender, []).append(f"- {row.message}, from you to {recipient}: {state}; send it again.")
        lines.setdefault(row.recipient, []).append(f"- {row.message}, from {sender} to you: {state}; ask for it.")
    return {row.message for row in lost}


def _restore_deliveries(connection: Connection, names: dict[int, str], lines: Lines) -> None:
    """Queue messages again whose deliveries are lost, and add to `lines` a line for sender and recipient of each.

    If the recipient has answered the message, the delivery is restored as answered, without lines.
    """
    ended = set(connection.execute(select(agents.c.id).where(agents.c.ended > 0)).scalars())
    name_of = select(agents.c.name).where(agents.c.id == messages.c.sender).scalar_subquery().label("sender_name")
    answers = select(messages.c.sender, messages.c.at)
    state = "whether it was shown is not known; it is shown again."
    for number, recipients in _lost_deliveries(connection, names).items():
        row = connection.execute(select(messages, name_of).where(messages.c.id == number)).one()
        replies = connection.execute(answers.where(messages.c.reply_to == number))
        answered = {reply.sender: reply.at for reply in replies}
        outgoing = OutgoingMessage(
            message=message_from(row),
            sender=row.sender,
            recipients=recipients,
            ended_recipients=tuple(ended.intersection(recipients)),
            bounce_reason=ENDED_REASON,
        )
        for recipient, delivery in zip(recipients, delivery_rows(outgoing), strict=True):
            if recipient in answered:
                delivery |= {"stage": "answered", "answered": answered[recipient], "owed": 0, "bounced": 0.0, "why": ""}
            else:
                delivery["why"] = delivery["why"] or writes.MAY_REPEAT
                lines.setdefault(row.sender, []).append(f"- {number}, from you to {names[recipient]}: {state}")
                lines.setdefault(recipient, []).append(f"- {number}, from {row.sender_name} to you: {state}")
            connection.execute(insert(deliveries), delivery)


def _lost_deliveries(connection: Connection, names: dict[int, str]) -> dict[int, tuple[int, ...]]:
    """Return for each message with lost deliveries, by its id, the ids of the recipients to which they went.

    They are found by the message's addresses. A message to a topic or to everyone is left out, because its addresses do
    not name the recipients.
    """
    numbers = {row.text: row.agent for row in connection.execute(select(aliases).where(aliases.c.kind == "name"))}
    numbers |= {name.casefold(): number for number, name in names.items()}
    delivered: dict[int, set[int]] = {}
    for number, recipient in connection.execute(select(deliveries.c.message, deliveries.c.recipient)):
        delivered.setdefault(number, set()).add(recipient)
    lost = {}
    for number, addressed in connection.execute(select(messages.c.id, messages.c.addressed).order_by(messages.c.id)):
        to, known = [address.casefold() for address in addresses_from(addressed)], delivered.get(number, set())
        if len(known) < len(to) and all(address in numbers for address in to):
            lost[number] = tuple(dict.fromkeys(numbers[address] for address in to if numbers[address] not in known))
    return lost


def _add_missing_agents(connection: Connection, at: float) -> None:
    """Add a substitute for each lost agent that messages or deliveries refer to: without one they cannot be read."""
    known = set(connection.execute(select(agents.c.id)).scalars())
    named: set[int] = set()
    for column in (messages.c.sender, deliveries.c.sender, deliveries.c.recipient):
        named.update(connection.execute(select(column).distinct()).scalars())
    for number in sorted(named - known):
        row = {**agent_row(SCRIPT), "id": number, "name": f"lost-{number}", "created": at, "seen": at, "ended": at}
        connection.execute(insert(agents), row)


def _skip_numbers(connection: Connection) -> None:
    """Have new messages and packets skip the ids and numbers that other hosts may have seen.

    If the link to a host is lost, set `LINKS_LOST`, which stops the sending to all hosts. Do nothing if no other host
    is known.
    """
    known = set(connection.execute(select(hosts.c.host)).scalars())
    if not known:
        return
    last = connection.execute(select(func.max(messages.c.id))).scalar_one() or 0
    writes.save_last_deleted(connection, max(last, writes.last_deleted(connection)) + _SKIPPED_NUMBERS)
    last_numbers = connection.execute(select(outbox.c.target, func.max(outbox.c.seq)).group_by(outbox.c.target)).all()
    for host, seq in last_numbers:
        connection.execute(update(links).where(links.c.host == host, links.c.last_sent < seq).values(last_sent=seq))
    named = set(connection.execute(select(agents.c.host).where(agents.c.host != "").distinct()).scalars())
    if named - set(connection.execute(select(links.c.host)).scalars()):
        connection.execute(delete(counters).where(counters.c.name == LINKS_LOST))
        connection.execute(insert(counters).values(name=LINKS_LOST, value=1))


def _send(connection: Connection, lines: dict[int, list[str]], names: dict[int, str], at: float) -> None:
    last = connection.execute(select(func.max(messages.c.id))).scalar_one() or 0
    first = max(last, writes.last_deleted(connection)) + 1
    ended = set(connection.execute(select(agents.c.id).where(agents.c.ended > 0)).scalars())
    notified = [agent for agent in sorted(lines) if agent not in {FAIRLEAD.id, SCRIPT.id} and agent not in ended]
    notices = [
        OutgoingMessage(
            message=Message(
                id=number,
                at=at,
                sender=FAIRLEAD.name,
                to=(names[agent],),
                subject=_SUBJECT,
                body="\n".join((_INTRODUCTION, *_listed(lines[agent]))),
                thread=number,
            ),
            sender=FAIRLEAD.id,
            recipients=(agent,),
        )
        for number, agent in enumerate(notified, first)
    ]
    writes.insert_messages(connection, notices)


def _listed(lines: list[str]) -> Iterable[str]:
    more = len(lines) - _MAX_LISTED
    return (*lines[:_MAX_LISTED], f"- and {more} more") if more > 0 else lines
