"""Changes to the tables of mail between hosts. Each is made within a transaction of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, exists, insert, or_, select, update

from fairlead.mail import FIRST_REMOTE_ID
from fairlead.mail.remote import MESSAGE, RECEIPT, VOID, Link
from fairlead.store._database import PreparedStatement
from fairlead.store.mail import _queries as queries
from fairlead.store.mail._tables import agents, deliveries
from fairlead.store.mail._team_tables import links, origins, outbox, pending, refused, threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from fairlead.mail.remote import DeliveryReceipt, NewPacket, ReceivedBatch

_MAX_REFUSED = 1000
_INSERT_ORIGINS = PreparedStatement(insert(origins))
_INSERT_THREADS = PreparedStatement(insert(threads))
_INSERT_PENDING = PreparedStatement(insert(pending).values(kind="", message=0, recipient=0))
_INSERT_OUTBOX = PreparedStatement(insert(outbox).values(target="", seq=0, kind="", message=0, at=0.0, body=b""))
"""These two statements name their columns, because the database assigns the `id`."""
_LINK = PreparedStatement(select(links).where(links.c.host == bindparam("of_host")))
_UPDATE_SENT, _UPDATE_APPLIED = (
    PreparedStatement(update(links).where(links.c.host == bindparam("of_host")).values({column: bindparam("number")}))
    for column in (links.c.last_sent, links.c.applied)
)


def link(connection: Connection, host: str) -> Link:
    """Return the link to a host. If there is none, create one with all numbers 0."""
    rows = _LINK.rows(connection, {"of_host": host})
    if not rows:
        connection.execute(insert(links).values(host=host, last_sent=0, acknowledged=0, applied=0))
        return Link()
    return Link(rows[0].last_sent, rows[0].acknowledged, rows[0].applied)


def append(connection: Connection, packets: Sequence[tuple[NewPacket, int]], at: float) -> int:
    """Append packets to the outbox, each with the id of its message (0 for none). Return the number of the last one.

    Return 0 if there are no packets.
    """
    last = {target: link(connection, target).last_sent for target in {packet.target for packet, _ in packets}}
    rows = []
    seq = 0
    for packet, message in packets:
        last[packet.target] = seq = last[packet.target] + 1
        row = {"target": packet.target, "seq": seq, "kind": packet.kind, "message": message, "at": at}
        rows.append({**row, "body": packet.body})
    if rows:
        _INSERT_OUTBOX.run_many(connection, rows)
    if last:
        _UPDATE_SENT.run_many(connection, [{"of_host": target, "number": number} for target, number in last.items()])
    return seq


def apply(connection: Connection, batch: ReceivedBatch, at: float) -> None:
    """Store the changes by a batch of received packets, except its messages, which must be stored already."""
    _insert_origins(connection, batch)
    for number, recipient, receipt in batch.receipts:
        connection.execute(queries.UPDATE_DELIVERY, _delivery_values(number, recipient, receipt))
    append(connection, [(packet, 0) for packet in batch.replies], at)
    for kept in batch.refused:
        row = {"origin": kept.origin, "seq": kept.seq, "kind": kept.kind, "at": kept.at, "why": kept.why}
        connection.execute(insert(refused), {**row, "body": kept.body})
    if batch.refused:
        newest = select(refused.c.id).order_by(refused.c.id.desc()).limit(_MAX_REFUSED)
        connection.execute(delete(refused).where(refused.c.id.not_in(newest)))
    for host, seq in batch.applied.items():
        link(connection, host)
        _UPDATE_APPLIED.run_many(connection, [{"of_host": host, "number": seq}])


def _insert_origins(connection: Connection, batch: ReceivedBatch) -> None:
    """Store the origins of received messages and threads.

    Also add a pending receipt for each delivery that bounced because its recipient has ended.
    """
    new_origins, new_threads, bounced = [], [], []
    for received in batch.messages:
        message, origin = received.outgoing.message, received.origin
        new_origins.append(
            {"message": message.id, "host": origin.host, "number": origin.number, "others": received.others}
        )
        if received.thread is not None:
            new_threads.append(
                {"host": received.thread.host, "number": received.thread.number, "thread": message.thread}
            )
        bounced += [
            {"kind": RECEIPT, "message": message.id, "recipient": recipient}
            for recipient in received.outgoing.ended_recipients
        ]
    for statement, rows in ((_INSERT_ORIGINS, new_origins), (_INSERT_THREADS, new_threads), (_INSERT_PENDING, bounced)):
        if rows:
            statement.run_many(connection, rows)


def _delivery_values(number: int, recipient: int, receipt: DeliveryReceipt) -> dict[str, Any]:
    values = {
        "agent": recipient,
        "number": number,
        "stage": receipt.stage,
        "shown": receipt.shown,
        "event": receipt.event,
        "read": receipt.read,
        "answered": receipt.answered,
        "bounced": receipt.bounced,
        "why": receipt.why,
    }
    return {**values, "owed": 0} if receipt.stage == "answered" else values


def undelivered(connection: Connection, host: str, *, include_arrived: bool) -> list[tuple[int, int, int]]:
    """Return the ids of message, sender and recipient of each delivery that a host has not acknowledged.

    `include_arrived` adds the deliveries that are queued on that host.
    """
    is_pending = exists().where(
        pending.c.message == deliveries.c.message,
        pending.c.recipient == deliveries.c.recipient,
        pending.c.kind == MESSAGE,
    )
    is_in_packet = exists().where(outbox.c.message == deliveries.c.message, outbox.c.target == host)
    query = (
        select(deliveries.c.message, deliveries.c.sender, deliveries.c.recipient)
        .join_from(agents, deliveries, deliveries.c.recipient == agents.c.id)
        .where(agents.c.id >= FIRST_REMOTE_ID, agents.c.host == host, queries.is_at("queued"))
        .order_by(deliveries.c.message, deliveries.c.recipient)
    )
    if not include_arrived:
        query = query.where(or_(is_pending, is_in_packet))
    return [(row.message, row.sender, row.recipient) for row in connection.execute(query)]


def bounce(connection: Connection, bounced: Sequence[tuple[int, int]], at: float, why: str) -> None:
    """Bounce deliveries, given as pairs of message and recipient, for the reason `why`.

    Their rows in `team_pending` are deleted, so that no packet is built from them.
    """
    for message, recipient in bounced:
        values = {"agent": recipient, "number": message, "stage": "bounced", "bounced": at, "why": why}
        connection.execute(queries.UPDATE_DELIVERY, values)
        connection.execute(
            delete(pending).where(
                pending.c.message == message, pending.c.recipient == recipient, pending.c.kind == MESSAGE
            )
        )


def empty_packets(connection: Connection, host: str, numbers: Sequence[int]) -> None:
    """Empty the packets to a host that contain one of the messages `numbers`.

    The empty packets are still sent, because the numbers of the packets to a host have no gaps.
    """
    connection.execute(
        update(outbox)
        .where(outbox.c.target == host, outbox.c.kind == MESSAGE, outbox.c.message.in_(numbers))
        .values(kind=VOID, message=0, body=b"")
    )


def forget(connection: Connection, host: str) -> None:
    """Delete the packets to a host, and the pending rows of messages and receipts for it."""
    connection.execute(delete(outbox).where(outbox.c.target == host))
    of_host = select(origins.c.message).where(origins.c.host == host)
    connection.execute(delete(pending).where(pending.c.kind == RECEIPT, pending.c.message.in_(of_host)))
    there = select(agents.c.id).where(agents.c.id >= FIRST_REMOTE_ID, agents.c.host == host)
    connection.execute(delete(pending).where(pending.c.recipient.in_(there)))
