"""The storage that `TeamMail` needs. `MailStore.team` implements it. Each call is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from fairlead.mail._storage import HostRecord, OutgoingMessage
from fairlead.mail.remote._packets import DeliveryReceipt, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Link(msgspec.Struct, frozen=True, gc=False):
    """The numbers of the last packets that were sent to a host, acknowledged by it, and applied from it."""

    last_sent: int = 0
    acknowledged: int = 0
    applied: int = 0


class OutgoingPacket(msgspec.Struct, frozen=True, gc=False):
    """A packet that its target has not acknowledged."""

    id: int
    """Increases across all targets."""
    target: str
    seq: int
    kind: str
    body: bytes
    at: float


class Backlog(msgspec.Struct, frozen=True, gc=False):
    """The range of packets that one host has not acknowledged."""

    target: str
    first: int
    last: int
    last_id: int
    count: int
    since: float


class RefusedPacket(msgspec.Struct, frozen=True, kw_only=True):
    """A packet that could not be applied."""

    origin: str
    seq: int
    kind: str
    at: float
    why: str
    body: bytes


class NewPacket(msgspec.Struct, frozen=True):
    """A packet to be appended to the outbox of its target."""

    target: str
    kind: str
    body: bytes


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of another host, in the form in which it is stored here."""

    outgoing: OutgoingMessage
    origin: Origin
    thread: Origin | None
    """The origin of the first message of its thread, if the thread is new here and began on another host."""
    others: str
    """The recipients that are not on this host, as JSON."""


class ReceivedBatch(msgspec.Struct, kw_only=True):
    """The changes by a batch of packets, stored in one transaction."""

    messages: list[ReceivedMessage] = []
    receipts: list[tuple[int, int, DeliveryReceipt]] = []
    """Tuples of the message, the local id of the recipient, and the receipt."""
    replies: list[NewPacket] = []
    refused: list[RefusedPacket] = []
    applied: dict[str, int] = {}


class TeamStorage(Protocol):
    """Stores the packets to and from other hosts."""

    def save_host(self, record: HostRecord) -> None:
        """Store a host, replacing its record."""

    def links(self) -> dict[str, Link]:
        """Return the links to all hosts."""

    def build_packets(self, local_host: str, local_name: str, limit: int, at: float) -> int:
        """Build packets from the first pending rows, and return the number of rows. Survives a power failure."""

    def post(self, packet: NewPacket, at: float) -> int:
        """Put a packet into the outbox, and return its number. Survives a power failure."""

    def outgoing(self, target: str | None, after: int, limit: int) -> list[OutgoingPacket]:
        """Return the packets to a target after a number, or to all targets after an id, in order."""

    def backlogs(self) -> list[Backlog]:
        """Return for each target which packets it has not acknowledged."""

    def acknowledge(self, progress: Mapping[str, int]) -> dict[str, int]:
        """Delete the packets to each target up to a number, and return how many by target."""

    def find_origins(self, origins: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local numbers of messages of other hosts."""

    def find_threads(self, threads: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local numbers of threads that began on other hosts."""

    def others_of(self, message: int) -> str:
        """Return, for a message of another host, its recipients that are not on this host, as JSON; else ""."""

    def apply(self, batch: ReceivedBatch, at: float) -> None:
        """Store the changes by a batch of packets. They survive a power failure after the next `sync`."""

    def sync(self) -> None:
        """Flush all changes to disk, so that they survive a power failure. Other transactions do not wait for this."""

    def recipients_in_transit(self, message: int) -> set[int]:
        """Return the recipients of a message whose hosts have not acknowledged it."""

    def undelivered(self, host: str, *, include_arrived: bool) -> list[tuple[int, int, int]]:
        """Return message, sender and recipient of each delivery that a host has not acknowledged.

        With `include_arrived`, also of the deliveries that are queued on that host.
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
        """Bounce deliveries (message, recipient) to a host, and make their packets empty.

        With `forget`, the packets to the host are deleted instead.
        """

    def forget_team(self) -> None:
        """Delete all links, hosts and packets. Messages stay."""

    def refused(self, limit: int) -> list[RefusedPacket]:
        """Return the newest refused packets."""
