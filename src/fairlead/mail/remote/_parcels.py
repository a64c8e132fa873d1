"""What hosts send each other about mail: messages, receipts, news of their agents. JSON; a reader trusts no field."""

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
"""A parcel that was given up before it left: it only keeps its place in the order."""

MAX_RECEIPTS: Final = 200
"""In one parcel."""

HostId = Annotated[str, Meta(min_length=1, max_length=100)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=4000)]
Number = Annotated[int, Meta(gt=0, lt=2**62)]
LocalId = Annotated[int, Meta(gt=0, lt=FIRST_REMOTE_ID)]


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a message in the team: the host that accepted it, and its number there."""

    host: HostId
    number: Number


class Party(msgspec.Struct, frozen=True, array_like=True):
    """An agent, by its host and its id there."""

    host: HostId
    id: LocalId
    name: Name
    """Without its host."""


class ParcelSender(msgspec.Struct, frozen=True, omit_defaults=True):
    """The sender of a message, on the host of its origin."""

    id: LocalId
    name: Name
    project: Text = ""


class MessageParcel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message to agents of one host."""

    number: Number
    at: float
    sender: ParcelSender
    recipients: Annotated[tuple[LocalId, ...], Meta(min_length=1, max_length=MAX_RECIPIENTS)]
    """Ids at the target."""
    others: Annotated[tuple[Party, ...], Meta(max_length=MAX_RECIPIENTS)] = ()
    """The recipients on other hosts, for a reply to all."""
    to: Annotated[tuple[Name, ...], Meta(max_length=MAX_RECIPIENTS)] = ()
    """As addressed; each name with its host."""
    subject: Annotated[str, Meta(max_length=MAX_SUBJECT_LENGTH)]
    body: Annotated[str, Meta(max_length=MAX_BODY_BYTES)] = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    project: Text = ""
    thread: Origin
    reply_to: Origin | None = None


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a delivery on the recipient's host."""

    number: Number
    """Of the message, on the host of its origin."""
    recipient: LocalId
    """Its id on its own host."""
    stage: Stage
    shown: float = 0.0
    event: Text = ""
    read: float = 0.0
    answered: float = 0.0
    bounced: float = 0.0
    why: Text = ""


class ReceiptParcel(msgspec.Struct, frozen=True):
    """Receipts in the order in which the stages changed."""

    receipts: Annotated[tuple[Receipt, ...], Meta(max_length=MAX_RECEIPTS)]


class AgentNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent of another host, as that host describes it."""

    id: LocalId
    name: Name
    project: Text = ""
    session: Name = ""
    ended: float = 0.0
    parent: int = 0
    formers: tuple[Name, ...] = ()
    """Names that it had before."""


class HostSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agents and topics of a host."""

    agents: tuple[AgentNews, ...] = ()
    topics: dict[Name, tuple[LocalId, ...]] = {}
    """Each topic with the ids of its subscribers."""


encode = msgspec.json.Encoder().encode
_decode_message = msgspec.json.Decoder(MessageParcel).decode
_decode_receipts = msgspec.json.Decoder(ReceiptParcel).decode
_decode_snapshot = msgspec.json.Decoder(HostSnapshot).decode


def decode_message(body: bytes) -> MessageParcel:
    """Return a message parcel. Raises `ValueError` if anything in it is out of bounds."""
    parcel = _decode_message(body)
    if not (_is_time(parcel.at) and _is_time(parcel.deadline)):
        raise ValueError("a time is not one")
    if len(parcel.body.encode("utf-8", "surrogatepass")) > MAX_BODY_BYTES:
        raise ValueError("the body is too long")
    if len(set(parcel.recipients)) != len(parcel.recipients):
        raise ValueError("a recipient is named twice")
    return parcel


def decode_receipts(body: bytes) -> tuple[Receipt, ...]:
    """Return the receipts of a parcel. Raises `ValueError` if anything in it is out of bounds."""
    receipts = _decode_receipts(body).receipts
    times = (time for one in receipts for time in (one.shown, one.read, one.answered, one.bounced))
    if not all(map(_is_time, times)):
        raise ValueError("a time is not one")
    return receipts


def decode_snapshot(body: bytes) -> HostSnapshot:
    """Return the news of a host; none if they cannot be read."""
    try:
        return _decode_snapshot(body) if body else HostSnapshot()
    except ValueError:
        return HostSnapshot()


def _is_time(value: float) -> bool:
    return math.isfinite(value) and 0 <= value < 2**40
