"""The data that hosts exchange about mail: messages, receipts, snapshots of their agents.

All of it is JSON, and every field is validated when it is read. Times are Unix times by the clock of the sending host.
"""

from __future__ import annotations

import math
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from fairlead.mail._types import (
    FIRST_REMOTE_ID,
    MAX_BODY_BYTES,
    MAX_RECIPIENTS,
    MAX_SUBJECT_LENGTH,
    Intent,
    Priority,
    Stage,
)

MESSAGE: Final = "message"
RECEIPT: Final = "receipt"
VOID: Final = "void"
"""The kind of an empty packet. It replaces a packet whose message was given up, so that the numbers have no gap."""

MAX_RECEIPTS: Final = 200
"""How many receipts one packet can have."""

HostId = Annotated[str, Meta(min_length=1, max_length=100)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=4000)]
Number = Annotated[int, Meta(gt=0, lt=2**62)]
LocalId = Annotated[int, Meta(gt=0, lt=FIRST_REMOTE_ID)]


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a message in the team: the host that accepted it, and its number on that host."""

    host: HostId
    number: Number


class AgentAddress(msgspec.Struct, frozen=True, array_like=True):
    """The host of an agent, and its id and name on that host."""

    host: HostId
    id: LocalId
    name: Name
    """The name without the host."""


class PacketSender(msgspec.Struct, frozen=True, omit_defaults=True):
    """The sender of a message, as its own host describes it."""

    id: LocalId
    name: Name
    project: Text = ""


class MessagePacket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message to agents of one host. The message may have more recipients on other hosts."""

    number: Number
    """The id of the message on the host that accepted it."""
    at: float
    sender: PacketSender
    recipients: Annotated[tuple[LocalId, ...], Meta(min_length=1, max_length=MAX_RECIPIENTS)]
    """The recipients' ids on the target host."""
    others: Annotated[tuple[AgentAddress, ...], Meta(max_length=MAX_RECIPIENTS)] = ()
    """The recipients on hosts other than the target, so that a reply to all reaches them."""
    to: Annotated[tuple[Name, ...], Meta(max_length=MAX_RECIPIENTS)] = ()
    """The addresses of the message; those that name an agent have the form `name@host`."""
    subject: Annotated[str, Meta(max_length=MAX_SUBJECT_LENGTH)]
    body: Annotated[str, Meta(max_length=MAX_BODY_BYTES)] = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    project: Text = ""
    thread: Origin
    reply_to: Origin | None = None


class DeliveryReceipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a delivery, as the recipient's host reports it to the sender's host.

    The fields from `stage` on are those of `Delivery`.
    """

    number: Number
    """The number of the message on the host that accepted it."""
    recipient: LocalId
    """The recipient's id on its own host."""
    stage: Stage
    shown: float = 0.0
    event: Text = ""
    read: float = 0.0
    answered: float = 0.0
    bounced: float = 0.0
    why: Text = ""


class ReceiptPacket(msgspec.Struct, frozen=True):
    """Receipts in the order in which the deliveries changed."""

    receipts: Annotated[tuple[DeliveryReceipt, ...], Meta(max_length=MAX_RECEIPTS)]


class AgentInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent of another host, as that host describes it."""

    id: LocalId
    name: Name
    project: Text = ""
    session: Name = ""
    ended: float = 0.0
    """When it ended; 0 while it is alive."""
    parent: int = 0
    """For a subagent: the id of its parent on that host; else 0."""
    formers: tuple[Name, ...] = ()
    """Its former names, without the host."""


class AgentsAndTopics(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agents and topics of a host."""

    agents: tuple[AgentInfo, ...] = ()
    topics: dict[Name, tuple[LocalId, ...]] = {}
    """The ids of the subscribers by topic."""


encode = msgspec.json.Encoder().encode
_decode_message = msgspec.json.Decoder(MessagePacket).decode
_decode_receipts = msgspec.json.Decoder(ReceiptPacket).decode
_decode_snapshot = msgspec.json.Decoder(AgentsAndTopics).decode


def decode_message(body: bytes) -> MessagePacket:
    """Decode the body of a message packet. Raises `ValueError` if a field is invalid."""
    packet = _decode_message(body)
    if not (_is_time(packet.at) and _is_time(packet.deadline)):
        raise ValueError("a time is not one")
    if len(packet.body.encode("utf-8", "surrogatepass")) > MAX_BODY_BYTES:
        raise ValueError("the body is too long")
    if len(set(packet.recipients)) != len(packet.recipients):
        raise ValueError("a recipient is named twice")
    return packet


def decode_receipts(body: bytes) -> tuple[DeliveryReceipt, ...]:
    """Decode the body of a receipt packet. Raises `ValueError` if a field is invalid."""
    receipts = _decode_receipts(body).receipts
    times = (time for receipt in receipts for time in (receipt.shown, receipt.read, receipt.answered, receipt.bounced))
    if not all(map(_is_time, times)):
        raise ValueError("a time is not one")
    return receipts


def decode_snapshot(body: bytes) -> AgentsAndTopics:
    """Decode the snapshot of a host. Returns an empty one if `body` is empty or invalid."""
    try:
        return _decode_snapshot(body) if body else AgentsAndTopics()
    except ValueError:
        return AgentsAndTopics()


def _is_time(value: float) -> bool:
    return math.isfinite(value) and 0 <= value < 2**40
