"""The storage that `TeamMail` needs. `MailStore.team` implements it. Each call is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from fairlead.mail._storage import HostRecord, OutgoingMessage
from fairlead.mail.remote._packets import DeliveryReceipt, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Link(msgspec.Struct, frozen=True, gc=False):
    """The numbers of the last packets that were sent to a host, acknowledged by it, and applied from it; 0 for none."""

    last_sent: int = 0
    acknowledged: int = 0
    applied: int = 0


class OutgoingPacket(msgspec.Struct, frozen=True, gc=False):
    """A packet that the host with the id `target` has not acknowledged. `kind` is for example `MESSAGE`."""

    id: int
    """Increases across all targets."""
    target: str
    seq: int
    """The number of the packet, which counts from 1 for each target."""
    kind: str
    body: bytes
    at: float
    """When the packet was built."""


class Backlog(msgspec.Struct, frozen=True, gc=False):
    """The range of packets that one host has not acknowledged."""

    target: str
    first: int
    last: int
    """The numbers of the first and the last of these packets."""
    last_id: int
    """The `OutgoingPacket.id` of the last one."""
    count: int
    since: float
    """When the oldest of these packets was built."""


class RefusedPacket(msgspec.Struct, frozen=True, kw_only=True):
    """A packet of another host that was not applied, and the reason `why`. `kind` is for example `MESSAGE`."""

    origin: str
    seq: int
    kind: str
    at: float
    """When it was refused."""
    why: str
    body: bytes


class NewPacket(msgspec.Struct, frozen=True):
    """A packet to be appended to the outbox for the host with the id `target`. `kind` is for example `MESSAGE`."""

    target: str
    kind: str
    body: bytes


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of another host, in the form in which it is stored here."""

    outgoing: OutgoingMessage
    origin: Origin
    thread: Origin | None
    """The origin of its thread, if the thread began on another host and is not stored here yet; else None."""
    others: str
    """The `AgentAddress`es of recipients that are not on this host, as JSON; empty if there are none."""


class ReceivedBatch(msgspec.Struct, kw_only=True):
    """The changes by a batch of packets, which are stored in one transaction."""

    messages: list[ReceivedMessage] = []
    receipts: list[tuple[int, int, DeliveryReceipt]] = []
    """Tuples of the message's id, the local id of the recipient, and the receipt."""
    replies: list[NewPacket] = []
    """Receipts for recipients that do not exist on this host."""
    refused: list[RefusedPacket] = []
    applied: dict[str, int] = {}
    """By origin: the number of the last packet that was applied or refused."""


class TeamStorage(Protocol):
    """Stores the packets to and from other hosts."""

    def save_host(self, record: HostRecord) -> None:
        """Store the record of a host, replacing the previous one."""

    def links(self) -> dict[str, Link]:
        """Return the links to all hosts, by host id."""

    def build_packets(self, local_host: str, local_name: str, limit: int, at: float) -> int:
        """Build packets from up to `limit` pending deliveries, oldest first, and return the number of deliveries.

        Survives a power failure. Raises `MailUnreachable` if the numbers of sent packets were lost with a damaged
        database.
        """

    def post(self, packet: NewPacket, at: float) -> int:
        """Append a packet to the outbox of its target, and return its number. Survives a power failure."""

    def outgoing(self, target: str | None, after: int, limit: int) -> list[OutgoingPacket]:
        """Return up to `limit` packets that are not acknowledged, in order.

        With a target, the packets to it with a `seq` above `after`; with None, the packets to all targets with an `id`
        above `after`.
        """

    def backlogs(self) -> list[Backlog]:
        """Return for each target which packets it has not acknowledged. Targets without such packets are left out."""

    def acknowledge(self, progress: Mapping[str, int]) -> dict[str, int]:
        """Delete the packets to each target up to the acknowledged number, and return by target how many.

        Targets whose number was acknowledged before are left out.
        """

    def find_origins(self, origins: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local ids of messages of other hosts. Messages that are not stored here are left out."""

    def find_threads(self, threads: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local ids of threads that began on other hosts. Threads that are not stored here are left out."""

    def others_of(self, message: int) -> str:
        """Return the `ReceivedMessage.others` of a message of another host; "" for a message of this host."""

    def apply(self, batch: ReceivedBatch, at: float) -> None:
        """Store the changes by a batch of packets. They survive a power failure after the next `sync`."""

    def sync(self) -> None:
        """Flush all changes to disk, so that they survive a power failure. Other transactions do not wait for this."""

    def recipients_in_transit(self, message: int) -> set[int]:
        """Return the local ids of the recipients of a message whose hosts have not acknowledged it."""

    def undelivered(self, host: str, *, include_arrived: bool) -> list[tuple[int, int, int]]:
        """Return each delivery that a host has not acknowledged, as the ids of message, sender and recipient.

        With `include_arrived`, also deliveries that have arrived on that host and are queued there.
        """

    def give_up(
        self,
        host: str,
        bounced: Sequence[tuple[int, int]],
        *,
        at: float,
        why: str,
        notices: Sequence[OutgoingMessage],
        forget: bool,
    ) -> None:
        """Bounce deliveries to a host, store the notices about that, and replace the packets by empty ones.

        `bounced` are pairs of message and recipient, and `why` is the reason. With `forget`, all packets to the host
        are deleted instead.
        """

    def forget_team(self) -> None:
        """Delete all links, hosts and packets. Messages stay."""

    def refused(self, limit: int) -> list[RefusedPacket]:
        """Return up to `limit` refused packets, newest first."""
