"""Builds packets from the rows of `team_pending`, which name the deliveries that other hosts have to know about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select

from fairlead.mail.remote import (
    MAX_RECEIPTS,
    MESSAGE,
    RECEIPT,
    AgentAddress,
    DeliveryReceipt,
    MessagePacket,
    NewPacket,
    Origin,
    PacketSender,
    ReceiptPacket,
    encode,
)
from fairlead.store._database import PreparedStatement, batches
from fairlead.store.mail import _queries as queries
from fairlead.store.mail._tables import agents, deliveries, message_from
from fairlead.store.mail._team_tables import origins, pending, threads
from fairlead.store.mail._team_writes import append, bounce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

_HOST_LOST = "the host of the agent is not known any more"
_PENDING = PreparedStatement(select(pending).order_by(pending.c.id).limit(bindparam("limit")))
_STATE = PreparedStatement(
    select(deliveries, origins.c.host.label("origin"), origins.c.number.label("origin_number"))
    .join_from(deliveries, origins, deliveries.c.message == origins.c.message)
    .where(queries.DELIVERY_IS)
)
_MESSAGE = PreparedStatement(queries.MESSAGE)
_RECIPIENTS = PreparedStatement(
    select(agents.c.id, agents.c.name, agents.c.host, agents.c.remote)
    .join_from(deliveries, agents, deliveries.c.recipient == agents.c.id)
    .where(queries.OF_MESSAGE)
    .order_by(agents.c.id)
)
_ORIGIN = PreparedStatement(select(origins.c.host, origins.c.number).where(origins.c.message == bindparam("message")))
_THREAD = PreparedStatement(select(threads.c.host, threads.c.number).where(threads.c.thread == bindparam("message")))


class PacketWriter:
    """Writes packets to the outbox in one transaction, in the order of the pending rows.

    Successive receipts for one host share a packet.
    """

    def __init__(self, connection: Connection, local_host: str, local_name: str, at: float) -> None:
        """Use the transaction of a connection.

        `local_host` is the id of this host, `local_name` its name in addresses, `at` the time at which packets are
        built.
        """
        self._connection = connection
        self._local_host = local_host
        self._local_name = local_name
        self._at = at
        self._receipts: dict[str, dict[tuple[int, int], DeliveryReceipt]] = {}
        """Receipts that are not in a packet yet, by host, then by message and recipient."""
        self._packets: list[tuple[NewPacket, int]] = []
        """Packets, each with the id of its message; 0 for receipts."""

    def write(self, limit: int) -> int:
        """Write packets for the first `limit` pending rows, delete these rows, and return their number.

        Their number may exceed `limit`, because the rows of one message are not separated.
        """
        rows = self._rows(limit)
        recipients: dict[int, list[int]] = {}
        for row in rows:
            if row.kind == MESSAGE:
                recipients.setdefault(row.message, []).append(row.recipient)
        for row in rows:
            if row.kind == RECEIPT:
                self._add_receipt(row.message, row.recipient)
            elif row.message in recipients:
                self._add_message(row.message, recipients.pop(row.message))
        for target in list(self._receipts):
            self._flush(target)
        append(self._connection, self._packets, self._at)
        for batch in batches([row.id for row in rows]):
            self._connection.execute(delete(pending).where(pending.c.id.in_(batch)))
        return len(rows)

    def _rows(self, limit: int) -> list[Any]:
        """Return the first `limit` pending rows. If the last one is for a message, add the other rows of that message.

        Recipients of a message on the same host share a packet.
        """
        rows = list(_PENDING.rows(self._connection, {"limit": limit}))
        if len(rows) == limit and rows[-1].kind == MESSAGE:
            last = rows[-1]
            is_rest = (pending.c.id > last.id) & (pending.c.kind == MESSAGE) & (pending.c.message == last.message)
            rows += self._connection.execute(select(pending).where(is_rest).order_by(pending.c.id))
        return rows

    # -- receipts --------------------------------------------------------------------------------------

    def _add_receipt(self, message: int, recipient: int) -> None:
        """Add a receipt with the current state of a delivery.

        It replaces a waiting receipt of the same delivery. Do nothing if the delivery was pruned or lost.
        """
        rows = _STATE.rows(self._connection, {"agent": recipient, "message": message})
        if not rows:  # pruned, or lost with a damaged database
            return
        row = rows[0]
        waiting = self._receipts.setdefault(row.origin, {})
        waiting[message, recipient] = DeliveryReceipt(
            number=row.origin_number,
            recipient=recipient,
            stage=row.stage,
            shown=row.shown,
            event=row.event,
            read=row.read,
            answered=row.answered,
            bounced=row.bounced,
            why=row.why,
        )
        if len(waiting) >= MAX_RECEIPTS:
            self._flush(row.origin)

    def _flush(self, target: str) -> None:
        if receipts := self._receipts.pop(target, None):
            body = encode(ReceiptPacket(tuple(receipts.values())))
            self._packets.append((NewPacket(target, RECEIPT, body), 0))

    # -- messages --------------------------------------------------------------------------------------

    def _add_message(self, number: int, recipients: Sequence[int]) -> None:
        rows = _MESSAGE.rows(self._connection, {"message": number})
        if not rows:  # lost with a damaged database
            return
        all_recipients = _RECIPIENTS.rows(self._connection, {"message": number})
        by_host: dict[str, list[Any]] = {}
        for agent in all_recipients:
            if agent.id in recipients:
                by_host.setdefault(agent.host, []).append(agent)
        lost_ids = {agent.id for agent in by_host.pop("", [])}
        bounce(self._connection, [(number, recipient) for recipient in lost_ids], self._at, _HOST_LOST)
        for host, chosen in by_host.items():
            self._flush(host)
            others = [
                self._agent_address(address)
                for address in all_recipients
                if address.host != host and address.id not in lost_ids
            ]
            packet = self._packet(rows[0], tuple(agent.remote for agent in chosen), tuple(others))
            self._packets.append((NewPacket(host, MESSAGE, encode(packet)), number))

    def _packet(self, row: Any, recipients: tuple[int, ...], others: tuple[AgentAddress, ...]) -> MessagePacket:
        message = message_from(row)
        return MessagePacket(
            number=message.id,
            at=message.at,
            sender=PacketSender(row.sender, message.sender, message.project),
            recipients=recipients,
            others=others,
            to=tuple(self._address(address) for address in message.to),
            subject=message.subject,
            body=message.body,
            priority=message.priority,
            intent=message.intent,
            deadline=message.deadline,
            project=message.project,
            thread=self._origin(_THREAD, message.thread),
            reply_to=self._origin(_ORIGIN, message.reply_to) if message.reply_to else None,
        )

    def _agent_address(self, row: Any) -> AgentAddress:
        if row.host:
            return AgentAddress(row.host, row.remote, row.name.partition("@")[0])
        return AgentAddress(self._local_host, row.id, row.name)

    def _address(self, written: str) -> str:
        return written if written.startswith("#") or "@" in written else f"{written}@{self._local_name}"

    def _origin(self, query: PreparedStatement, number: int) -> Origin:
        """Return the origin of a message or a thread: what the query finds for its local number, or else this host."""
        rows = query.rows(self._connection, {"message": number})
        return Origin(*rows[0]) if rows else Origin(self._local_host, number)
