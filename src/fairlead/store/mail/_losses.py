"""Reports which messages a damaged database has lost, to those who wrote them and to those who were to read them.

A delivery and its message lie at different places of the file. So of most lost messages the delivery is left, with
its sender and recipient; of most lost deliveries the message, with its addresses. Then it is delivered again, and the
showing says that it may be a repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, func, insert, select, update

from fairlead.mail import ENDED_REASON, FAIRLEAD, SCRIPT, STAGES, Message, OutgoingMessage
from fairlead.store._salvage import SALVAGED_MARK
from fairlead.store.mail import _writes as writes
from fairlead.store.mail._rows import addresses_from, agent_row, delivery_rows, message_from
from fairlead.store.mail._tables import agents, aliases, counters, deliveries, messages
from fairlead.store.mail._team_tables import LINKS_LOST, hosts, links, outbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    Lines = dict[int, list[str]]
    """What an agent is told, by its id."""

_MAX_LISTED = 50
_SKIPPED_NUMBERS = 1000
"""More messages than a damaged page can have held: other hosts may know their numbers."""
_SUBJECT = "Messages were lost with a damaged database"
_INTRODUCTION = "The database of the mail was damaged, and a new one holds what could be read of it."

_has_message = exists().where(messages.c.id == deliveries.c.message)
_has_delivery = exists().where(deliveries.c.message == messages.c.id)


def report_losses(connection: Connection, at: float) -> int:
    """Write a notice to everybody who is concerned, if this database was salvaged. Returns how many messages are lost.

    Part of one transaction: everybody is told once, whenever the process is killed.
    """
    marked = connection.execute(delete(counters).where(counters.c.name == SALVAGED_MARK)).rowcount
    if not marked:
        return 0
    _add_missing_agents(connection, at)
    _keep_numbers(connection)
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
    """Add a line for both ends of each delivery whose message is lost. Returns these messages."""
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
    """Queue messages again whose deliveries are lost, unless the recipient has answered; add a line for both ends."""
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
    """Return the recipients of each message that have no delivery of it, as far as its addresses tell.

    They do not tell who a message to a topic or to everyone was for.
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
    """Add an agent for each id that messages name and that is lost: without one they could not be read."""
    known = set(connection.execute(select(agents.c.id)).scalars())
    named: set[int] = set()
    for column in (messages.c.sender, deliveries.c.sender, deliveries.c.recipient):
        named.update(connection.execute(select(column).distinct()).scalars())
    for number in sorted(named - known):
        row = {**agent_row(SCRIPT), "id": number, "name": f"lost-{number}", "created": at, "seen": at, "ended": at}
        connection.execute(insert(agents), row)


def _keep_numbers(connection: Connection) -> None:
    """Use no number again that another host may have seen. Without a link to a host, nothing is sent any more."""
    known = set(connection.execute(select(hosts.c.host)).scalars())
    if not known:
        return
    last = connection.execute(select(func.max(messages.c.id))).scalar_one() or 0
    writes.save_last_deleted(connection, max(last, writes.last_deleted(connection)) + _SKIPPED_NUMBERS)
    sealed = connection.execute(select(outbox.c.target, func.max(outbox.c.seq)).group_by(outbox.c.target)).all()
    for host, seq in sealed:
        connection.execute(update(links).where(links.c.host == host, links.c.last_sent < seq).values(last_sent=seq))
    named = set(connection.execute(select(agents.c.host).where(agents.c.host != "").distinct()).scalars())
    if named - set(connection.execute(select(links.c.host)).scalars()):
        connection.execute(delete(counters).where(counters.c.name == LINKS_LOST))
        connection.execute(insert(counters).values(name=LINKS_LOST, value=1))


def _send(connection: Connection, lines: dict[int, list[str]], names: dict[int, str], at: float) -> None:
    last = connection.execute(select(func.max(messages.c.id))).scalar_one() or 0
    first = max(last, writes.last_deleted(connection)) + 1
    ended = set(connection.execute(select(agents.c.id).where(agents.c.ended > 0)).scalars())
    told = [agent for agent in sorted(lines) if agent not in {FAIRLEAD.id, SCRIPT.id} and agent not in ended]
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
        for number, agent in enumerate(told, first)
    ]
    writes.insert_messages(connection, notices)


def _listed(lines: list[str]) -> Iterable[str]:
    more = len(lines) - _MAX_LISTED
    return (*lines[:_MAX_LISTED], f"- and {more} more") if more > 0 else lines
