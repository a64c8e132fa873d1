"""Reports which messages a damaged database has lost, to those who wrote them and to those who were to read them.

A delivery and its message lie at different places of the file. So of most lost messages the delivery is left, with
its sender and recipient; of most lost deliveries the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, func, insert, select, update

from fairlead.mail import FAIRLEAD, SCRIPT, STAGES, Message, OutgoingMessage
from fairlead.store._salvage import SALVAGED_MARK
from fairlead.store.mail import _writes as writes
from fairlead.store.mail._rows import agent_row
from fairlead.store.mail._tables import agents, counters, deliveries, messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

_MAX_LISTED = 50
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
    connection.execute(update(deliveries).where(deliveries.c.stage.not_in(STAGES)).values(stage="queued"))
    lost = connection.execute(
        select(deliveries.c.message, deliveries.c.sender, deliveries.c.recipient, deliveries.c.stage)
        .where(~_has_message)
        .order_by(deliveries.c.message)
    ).all()
    uncertain = connection.execute(select(messages.c.id, messages.c.sender).where(~_has_delivery)).all()
    names = {row.id: row.name for row in connection.execute(select(agents.c.id, agents.c.name))}
    lines: dict[int, list[str]] = {}
    for row in lost:
        state = "it had not been shown" if row.stage in {"queued", "bounced"} else "it had been shown"
        sender, recipient = names[row.sender], names[row.recipient]
        lines.setdefault(row.sender, []).append(f"- {row.message}, from you to {recipient}: {state}; send it again.")
        lines.setdefault(row.recipient, []).append(f"- {row.message}, from {sender} to you: {state}; ask for it.")
    for number, sender_id in uncertain:
        text = f"- {number}, from you: it is kept, but whether it was shown is not known; `fairlead read {number}`."
        lines.setdefault(sender_id, []).append(text)
    writes.delete_messages(connection, sorted({row.message for row in lost}))
    _send(connection, lines, names, at)
    return len({row.message for row in lost})


def _add_missing_agents(connection: Connection, at: float) -> None:
    """Add an agent for each id that messages name and that is lost: without one they could not be read."""
    known = set(connection.execute(select(agents.c.id)).scalars())
    named: set[int] = set()
    for column in (messages.c.sender, deliveries.c.sender, deliveries.c.recipient):
        named.update(connection.execute(select(column).distinct()).scalars())
    for number in sorted(named - known):
        row = {**agent_row(SCRIPT), "id": number, "name": f"lost-{number}", "created": at, "seen": at, "ended": at}
        connection.execute(insert(agents), row)


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
