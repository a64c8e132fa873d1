"""Applies parcels of other hosts: each once, in the order of its origin.

A host can do with them what mail can do, and nothing more: it writes as its own agents, and changes the deliveries
to its own agents.
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
from fairlead.mail.remote import _parcels as parcels
from fairlead.mail.remote._parcels import MessageParcel, Origin, Receipt, ReceiptParcel
from fairlead.mail.remote._storage import NewParcel, ReceivedBatch, ReceivedMessage, RefusedParcel
from fairlead.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail.remote._hosts import TeamHosts
    from fairlead.mail.remote._storage import TeamStorage

_MAX_WHY = 200


class Received(Enum):
    """What became of a parcel."""

    APPLIED = "applied"
    REPEATED = "repeated"
    """It was applied before; nothing was changed."""
    GAP = "gap"
    """An earlier one is missing, or its host is not known yet. It has to come again."""
    REFUSED = "refused"
    """It could not be applied, and was kept aside."""


class IncomingParcel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A parcel of another host whose signature was verified."""

    origin: str
    seq: int
    kind: str
    body: bytes
    clock_shift: float = 0.0
    """Seconds to be added to a time of the origin's clock to get one of ours."""


class _Work(msgspec.Struct):
    """A batch, and what its earlier parcels have changed already."""

    batch: ReceivedBatch
    applied: dict[str, int]
    first_id: int
    origins: dict[Origin, int] = {}
    threads: dict[Origin, int] = {}
    decoded: dict[tuple[str, int], MessageParcel] = {}

    def next_id(self) -> int:
        """Return the number of the next message."""
        return self.first_id + len(self.batch.messages)


class Receiver:
    """Applies parcels. Called under the lock of the cache."""

    def __init__(self, team: TeamStorage, cache: MailCache, hosts: TeamHosts, now: Callable[[], float]) -> None:
        """Use this storage, cache, hosts and clock."""
        self._team = team
        self._cache = cache
        self._hosts = hosts
        self._now = now
        self.handlers: dict[str, Callable[[str, bytes], None]] = {}

    def receive(self, incoming: Sequence[IncomingParcel]) -> list[Received]:
        """Apply parcels in one transaction, and return what became of each."""
        links = self._team.links()
        applied = {one.origin: links[one.origin].applied if one.origin in links else 0 for one in incoming}
        work = _Work(ReceivedBatch(), applied, self._cache.last_message + 1)
        self._look_up(work, incoming)
        results = [self._receive(work, one) for one in incoming]
        if Received.APPLIED in results or work.batch.applied:
            self._team.apply(work.batch, self._now())
            self._record(work.batch)
        return results

    def _look_up(self, work: _Work, incoming: Sequence[IncomingParcel]) -> None:
        """Decode the messages, and look up all that they refer to at once."""
        named: set[Origin] = set()
        threads: set[Origin] = set()
        for one in incoming:
            if one.kind == parcels.MESSAGE:
                with suppress(ValueError):  # it is refused when its turn comes
                    parcel = work.decoded[one.origin, one.seq] = parcels.decode_message(one.body)
                    named |= {Origin(one.origin, parcel.number), *([parcel.reply_to] if parcel.reply_to else ())}
                    threads.add(parcel.thread)
        if named:
            work.origins.update(self._team.find_origins(named))
            work.threads.update(self._team.find_threads(threads))

    def _receive(self, work: _Work, parcel: IncomingParcel) -> Received:
        place = self._place(work, parcel)
        if place is not Received.APPLIED:
            return place
        try:
            result = self._apply(work, parcel)
        except ValueError as error:
            self._refuse(work, parcel, str(error))
            result = Received.REFUSED
        work.applied[parcel.origin] = work.batch.applied[parcel.origin] = parcel.seq
        return result

    def _place(self, work: _Work, parcel: IncomingParcel) -> Received:
        """Return whether a parcel is the next one of its origin."""
        applied = work.applied[parcel.origin]
        if parcel.seq <= applied:
            return Received.REPEATED
        is_next = parcel.seq == applied + 1 and self._hosts.get(parcel.origin) is not None
        return Received.APPLIED if is_next else Received.GAP

    def _apply(self, work: _Work, parcel: IncomingParcel) -> Received:
        if parcel.kind == parcels.MESSAGE:
            return self._apply_message(work, parcel)
        if parcel.kind == parcels.RECEIPT:
            self._apply_receipts(work, parcel)
        elif parcel.kind in self.handlers:
            self.handlers[parcel.kind](parcel.origin, parcel.body)
        elif parcel.kind != parcels.VOID:
            raise ValueError("a kind of parcel that this version does not know")
        return Received.APPLIED

    # -- messages --------------------------------------------------------------------------------------

    def _apply_message(self, work: _Work, incoming: IncomingParcel) -> Received:
        parcel = work.decoded.get((incoming.origin, incoming.seq)) or parcels.decode_message(incoming.body)
        origin = Origin(incoming.origin, parcel.number)
        if self._find_origin(work, origin):
            return Received.REPEATED
        here = [agent for number in parcel.recipients if (agent := self._cache.agents.get(number))]
        here = [agent for agent in here if agent.id != FAIRLEAD.id]
        missing = [number for number in parcel.recipients if all(agent.id != number for agent in here)]
        if missing:
            self._bounce(work, incoming, parcel, missing)
        if not here:
            return Received.APPLIED
        sender = self._hosts.ensure(incoming.origin, parcel.sender.id, parcel.sender.name, parcel.sender.project)
        number = work.next_id()
        thread, is_new_thread = self._thread(work, parcel.thread, number)
        message = self._message(work, parcel, incoming.clock_shift, number, thread)
        ended = tuple(agent.id for agent in here if agent.ended)
        work.batch.messages.append(
            ReceivedMessage(
                outgoing=OutgoingMessage(
                    message=replace(message, sender=sender.name),
                    sender=sender.id,
                    recipients=tuple(agent.id for agent in here),
                    ended_recipients=ended,
                    bounce_reason=ENDED_REASON if ended else "",
                ),
                origin=origin,
                thread=parcel.thread if is_new_thread else None,
                others=parcels.encode(parcel.others).decode() if parcel.others else "",
            )
        )
        work.origins[origin] = number
        return Received.APPLIED

    def _message(self, work: _Work, parcel: MessageParcel, shift: float, number: int, thread: int) -> Message:
        reply_to = self._find_origin(work, parcel.reply_to) if parcel.reply_to else 0
        return Message(
            id=number,
            at=max(0.0, parcel.at + shift),
            sender="",
            to=tuple(replace_surrogates(name).removesuffix(f"@{self._hosts.local_name}") for name in parcel.to),
            subject=replace_surrogates(parcel.subject),
            body=replace_surrogates(parcel.body),
            priority=parcel.priority,
            intent=parcel.intent,
            thread=thread,
            reply_to=reply_to,
            deadline=max(0.0, parcel.deadline + shift) if parcel.deadline else 0.0,
            project=replace_surrogates(parcel.project),
        )

    def _find_origin(self, work: _Work, origin: Origin) -> int:
        """Return the local number of a message; 0 if it is not here."""
        if origin.host == self._hosts.local_id:
            return origin.number if origin.number <= self._cache.last_message else 0
        return work.origins.get(origin, 0)

    def _thread(self, work: _Work, origin: Origin, number: int) -> tuple[int, bool]:
        """Return the local number of a thread, and whether it is new here. A new one begins with this message."""
        if origin.host == self._hosts.local_id:
            return (origin.number if origin.number <= self._cache.last_message else number), False
        if origin in work.threads:
            return work.threads[origin], False
        work.threads[origin] = number
        return number, True

    def _bounce(self, work: _Work, incoming: IncomingParcel, parcel: MessageParcel, missing: Sequence[int]) -> None:
        why = f"there is no such agent on {self._hosts.local_name}"
        receipts = [
            Receipt(number=parcel.number, recipient=number, stage="bounced", bounced=self._now(), why=why)
            for number in missing
        ]
        for first in range(0, len(receipts), parcels.MAX_RECEIPTS):
            body = parcels.encode(ReceiptParcel(tuple(receipts[first : first + parcels.MAX_RECEIPTS])))
            work.batch.replies.append(NewParcel(incoming.origin, parcels.RECEIPT, body))

    # -- receipts --------------------------------------------------------------------------------------

    def _apply_receipts(self, work: _Work, incoming: IncomingParcel) -> None:
        """Copy the states of deliveries that the origin alone changes: those to its own agents."""
        for receipt in parcels.decode_receipts(incoming.body):
            recipient = self._cache.agents.remote(incoming.origin, receipt.recipient)
            if recipient is not None and recipient.id >= FIRST_REMOTE_ID:
                shifted = _shifted(receipt, incoming.clock_shift)
                work.batch.receipts.append((receipt.number, recipient.id, shifted))

    def _refuse(self, work: _Work, parcel: IncomingParcel, why: str) -> None:
        work.batch.refused.append(
            RefusedParcel(
                origin=parcel.origin,
                seq=parcel.seq,
                kind=replace_surrogates(parcel.kind),
                at=self._now(),
                why=replace_surrogates(why)[:_MAX_WHY],
                body=parcel.body,
            )
        )

    def _record(self, batch: ReceivedBatch) -> None:
        self._cache.record_sent([one.outgoing for one in batch.messages], {})
        if batch.replies or any(one.outgoing.ended_recipients for one in batch.messages):
            self._cache.note_outgoing()


def _shifted(receipt: Receipt, shift: float) -> Receipt:
    times = {name: getattr(receipt, name) for name in ("shown", "read", "answered", "bounced")}
    moved = {name: max(0.0, time + shift) for name, time in times.items() if time}
    texts = {"event": replace_surrogates(receipt.event), "why": replace_surrogates(receipt.why)}
    return replace(receipt, **moved, **texts)
