"""Applies packets of other hosts, each once, in the order in which its origin numbered them.

With its packets, a host can only write messages as its own agents, and change the deliveries to its own agents.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.mail._notices import ENDED_REASON
from fairlead.mail._storage import OutgoingMessage
from fairlead.mail._types import FAIRLEAD, FIRST_REMOTE_ID, Message
from fairlead.mail.remote import _packets as packets
from fairlead.mail.remote._packets import DeliveryReceipt, MessagePacket, Origin, ReceiptPacket
from fairlead.mail.remote._storage import NewPacket, ReceivedBatch, ReceivedMessage, RefusedPacket
from fairlead.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail.remote._hosts import TeamHosts
    from fairlead.mail.remote._storage import TeamStorage

_MAX_WHY = 200


class ReceiveResult(Enum):
    """The result of applying a packet."""

    APPLIED = "applied"
    REPEATED = "repeated"
    """It was applied before. Nothing was changed."""
    GAP = "gap"
    """An earlier packet is missing, or the origin is not known yet. The packet has to be sent again."""
    REFUSED = "refused"
    """It could not be applied, and was stored for inspection."""


class IncomingPacket(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A packet with a verified signature from the host with the id `origin`. `kind` is for example `MESSAGE`."""

    origin: str
    seq: int
    """The number of the packet, which counts from 1 for each origin and target."""
    kind: str
    body: bytes
    clock_shift: float = 0.0
    """How many seconds this host's clock is ahead of the origin's. It is added to the times in the packet."""


class _BatchState(msgspec.Struct):
    """The state of a batch while its packets are processed: the changes so far, and what was looked up in advance."""

    batch: ReceivedBatch
    applied: dict[str, int]
    """By origin: the number of the last packet that was applied or refused."""
    first_id: int
    """The id of the first message that the batch stores."""
    origins: dict[Origin, int] = {}
    """The local ids of messages of other hosts."""
    threads: dict[Origin, int] = {}
    """The local ids of threads that began on other hosts."""
    decoded: dict[tuple[str, int], MessagePacket] = {}
    """The valid message packets, by origin and number."""

    def next_id(self) -> int:
        """Return the id for the next message of the batch."""
        return self.first_id + len(self.batch.messages)


class Receiver:
    """Applies packets of other hosts. The caller of `receive` holds the lock of the cache."""

    def __init__(self, team: TeamStorage, cache: MailCache, hosts: TeamHosts, now: Callable[[], float]) -> None:
        self._team = team
        self._cache = cache
        self._hosts = hosts
        self._now = now
        self.handlers: dict[str, Callable[[str, bytes], None]] = {}
        """By kind of packet: a function that is called with the origin and the body."""

    def receive(self, incoming: Sequence[IncomingPacket]) -> list[ReceiveResult]:
        """Apply packets in one transaction, and return the result of each, in order."""
        links = self._team.links()
        applied = {packet.origin: links[packet.origin].applied if packet.origin in links else 0 for packet in incoming}
        state = _BatchState(ReceivedBatch(), applied, self._cache.last_message + 1)
        self._look_up(state, incoming)
        results = [self._receive(state, packet) for packet in incoming]
        if ReceiveResult.APPLIED in results or state.batch.applied:
            self._team.apply(state.batch, self._now())
            self._record(state.batch)
        return results

    def _look_up(self, state: _BatchState, incoming: Sequence[IncomingPacket]) -> None:
        """Add to `state` the decoded message packets, and the local ids of messages and threads that they refer to."""
        named: set[Origin] = set()
        threads: set[Origin] = set()
        for signed in incoming:
            if signed.kind == packets.MESSAGE:
                with suppress(ValueError):  # an invalid packet is refused later, in its order
                    packet = state.decoded[signed.origin, signed.seq] = packets.decode_message(signed.body)
                    named |= {Origin(signed.origin, packet.number), *([packet.reply_to] if packet.reply_to else ())}
                    threads.add(packet.thread)
        if named:
            state.origins.update(self._team.find_origins(named))
            state.threads.update(self._team.find_threads(threads))

    def _receive(self, state: _BatchState, packet: IncomingPacket) -> ReceiveResult:
        order = self._check_order(state, packet)
        if order is not ReceiveResult.APPLIED:
            return order
        try:
            result = self._apply(state, packet)
        except ValueError as error:
            self._refuse(state, packet, str(error))
            result = ReceiveResult.REFUSED
        state.applied[packet.origin] = state.batch.applied[packet.origin] = packet.seq
        return result

    def _check_order(self, state: _BatchState, packet: IncomingPacket) -> ReceiveResult:
        """Return `APPLIED` if a packet is the next one of its origin, else `REPEATED` or `GAP`."""
        applied = state.applied[packet.origin]
        if packet.seq <= applied:
            return ReceiveResult.REPEATED
        is_next = packet.seq == applied + 1 and self._hosts.get(packet.origin) is not None
        return ReceiveResult.APPLIED if is_next else ReceiveResult.GAP

    def _apply(self, state: _BatchState, packet: IncomingPacket) -> ReceiveResult:
        if packet.kind == packets.MESSAGE:
            return self._apply_message(state, packet)
        if packet.kind == packets.RECEIPT:
            self._apply_receipts(state, packet)
        elif packet.kind in self.handlers:
            self.handlers[packet.kind](packet.origin, packet.body)
        elif packet.kind != packets.VOID:
            raise ValueError("a kind of packet that this version does not know")
        return ReceiveResult.APPLIED

    # -- messages --------------------------------------------------------------------------------------

    def _apply_message(self, state: _BatchState, incoming: IncomingPacket) -> ReceiveResult:
        packet = state.decoded.get((incoming.origin, incoming.seq)) or packets.decode_message(incoming.body)
        origin = Origin(incoming.origin, packet.number)
        if self._find_origin(state, origin):
            return ReceiveResult.REPEATED
        here = [agent for number in packet.recipients if (agent := self._cache.agents.get(number))]
        here = [agent for agent in here if agent.id != FAIRLEAD.id]
        missing = [number for number in packet.recipients if all(agent.id != number for agent in here)]
        if missing:
            self._bounce(state, incoming, packet, missing)
        if not here:
            return ReceiveResult.APPLIED
        sender = self._hosts.ensure(incoming.origin, packet.sender.id, packet.sender.name, packet.sender.project)
        number = state.next_id()
        thread, is_new_thread = self._thread(state, packet.thread, number)
        message = self._message(state, packet, incoming.clock_shift, number, thread)
        ended = tuple(agent.id for agent in here if agent.ended)
        state.batch.messages.append(
            ReceivedMessage(
                outgoing=OutgoingMessage(
                    message=replace(message, sender=sender.name),
                    sender=sender.id,
                    recipients=tuple(agent.id for agent in here),
                    ended_recipients=ended,
                    bounce_reason=ENDED_REASON if ended else "",
                ),
                origin=origin,
                thread=packet.thread if is_new_thread else None,
                others=packets.encode(packet.others).decode() if packet.others else "",
            )
        )
        state.origins[origin] = number
        return ReceiveResult.APPLIED

    def _message(self, state: _BatchState, packet: MessagePacket, shift: float, number: int, thread: int) -> Message:
        reply_to = self._find_origin(state, packet.reply_to) if packet.reply_to else 0
        return Message(
            id=number,
            at=max(0.0, packet.at + shift),
            sender="",
            to=tuple(replace_surrogates(name).removesuffix(f"@{self._hosts.local_name}") for name in packet.to),
            subject=replace_surrogates(packet.subject),
            body=replace_surrogates(packet.body),
            priority=packet.priority,
            intent=packet.intent,
            thread=thread,
            reply_to=reply_to,
            deadline=max(0.0, packet.deadline + shift) if packet.deadline else 0.0,
            project=replace_surrogates(packet.project),
        )

    def _find_origin(self, state: _BatchState, origin: Origin) -> int:
        """Return the local id of a message; 0 if it is not stored on this host."""
        if origin.host == self._hosts.local_id:
            return origin.number if origin.number <= self._cache.last_message else 0
        return state.origins.get(origin, 0)

    def _thread(self, state: _BatchState, origin: Origin, number: int) -> tuple[int, bool]:
        """Return the local id of a thread, and whether its origin is to be stored because it is new on this host.

        A new thread gets `number`, the local id of the message that is its first one here.
        """
        if origin.host == self._hosts.local_id:
            return (origin.number if origin.number <= self._cache.last_message else number), False
        if origin in state.threads:
            return state.threads[origin], False
        state.threads[origin] = number
        return number, True

    def _bounce(
        self, state: _BatchState, incoming: IncomingPacket, packet: MessagePacket, missing: Sequence[int]
    ) -> None:
        why = f"there is no such agent on {self._hosts.local_name}"
        receipts = [
            DeliveryReceipt(number=packet.number, recipient=number, stage="bounced", bounced=self._now(), why=why)
            for number in missing
        ]
        for first in range(0, len(receipts), packets.MAX_RECEIPTS):
            body = packets.encode(ReceiptPacket(tuple(receipts[first : first + packets.MAX_RECEIPTS])))
            state.batch.replies.append(NewPacket(incoming.origin, packets.RECEIPT, body))

    # -- receipts --------------------------------------------------------------------------------------

    def _apply_receipts(self, state: _BatchState, incoming: IncomingPacket) -> None:
        """Add the receipts in a packet to the batch. Receipts for agents that are not on its origin are ignored."""
        for receipt in packets.decode_receipts(incoming.body):
            recipient = self._cache.agents.remote(incoming.origin, receipt.recipient)
            if recipient is not None and recipient.id >= FIRST_REMOTE_ID:
                shifted = _shifted(receipt, incoming.clock_shift)
                state.batch.receipts.append((receipt.number, recipient.id, shifted))

    def _refuse(self, state: _BatchState, packet: IncomingPacket, why: str) -> None:
        state.batch.refused.append(
            RefusedPacket(
                origin=packet.origin,
                seq=packet.seq,
                kind=replace_surrogates(packet.kind),
                at=self._now(),
                why=replace_surrogates(why)[:_MAX_WHY],
                body=packet.body,
            )
        )

    def _record(self, batch: ReceivedBatch) -> None:
        self._cache.record_sent([message.outgoing for message in batch.messages], {})
        if batch.replies or any(message.outgoing.ended_recipients for message in batch.messages):
            self._cache.note_outgoing()


def _shifted(receipt: DeliveryReceipt, shift: float) -> DeliveryReceipt:
    times = {name: getattr(receipt, name) for name in ("shown", "read", "answered", "bounced")}
    moved = {name: max(0.0, time + shift) for name, time in times.items() if time}
    texts = {"event": replace_surrogates(receipt.event), "why": replace_surrogates(receipt.why)}
    return replace(receipt, **moved, **texts)
