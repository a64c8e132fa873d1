"""The storage that `TeamMail` needs. `MailStore.team` implements it; each call is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from fairlead.mail._storage import HostRecord, OutgoingMessage
from fairlead.mail.remote._parcels import Origin, Receipt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Link(msgspec.Struct, frozen=True, gc=False):
    """How far the traffic with a host is."""

    last_sent: int = 0
    acknowledged: int = 0
    applied: int = 0


class OutgoingParcel(msgspec.Struct, frozen=True, gc=False):
    """A parcel that its target has not acknowledged."""

    id: int
    """Ascending over all targets."""
    target: str
    seq: int
    kind: str
    body: bytes
    at: float


class Backlog(msgspec.Struct, frozen=True, gc=False):
    """What one host has not acknowledged."""

    target: str
    first: int
    last: int
    last_id: int
    count: int
    since: float


class RefusedParcel(msgspec.Struct, frozen=True, kw_only=True):
    """A parcel that could not be applied."""

    origin: str
    seq: int
    kind: str
    at: float
    why: str
    body: bytes


class NewParcel(msgspec.Struct, frozen=True):
    """A parcel to be put into the outbox behind all others to its target."""

    target: str
    kind: str
    body: bytes


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of another host, as it is stored here."""

    outgoing: OutgoingMessage
    origin: Origin
    thread: Origin | None
    """Where its thread began, if that was on another host."""
    others: str
    """The recipients that are not on this host, as JSON."""


class ReceivedBatch(msgspec.Struct, kw_only=True):
    """What a batch of parcels changes, in one transaction."""

    messages: list[ReceivedMessage] = []
    receipts: list[tuple[int, int, Receipt]] = []
    """Message, local id of the recipient, its state."""
    replies: list[NewParcel] = []
    refused: list[RefusedParcel] = []
    applied: dict[str, int] = {}


class TeamStorage(Protocol):
    """Stores what is on its way to and from other hosts."""

    def save_host(self, record: HostRecord) -> None:
        """Store a host, replacing what was known of it."""

    def links(self) -> dict[str, Link]:
        """Return the links to all hosts."""

    def seal(self, local_host: str, local_name: str, limit: int, at: float) -> int:
        """Turn the first pending rows into parcels, durably, and return how many rows that were."""

    def post(self, parcel: NewParcel, at: float) -> int:
        """Put a parcel into the outbox, durably, and return its number."""

    def outgoing(self, target: str | None, after: int, limit: int) -> list[OutgoingParcel]:
        """Return parcels to a target after a number, or to all after an id, in order."""

    def backlogs(self) -> list[Backlog]:
        """Return what each target has not acknowledged."""

    def acknowledge(self, progress: Mapping[str, int]) -> dict[str, int]:
        """Delete the parcels up to these numbers, and return how many of each target."""

    def find_origins(self, origins: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local numbers of messages of other hosts."""

    def find_threads(self, threads: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local numbers of threads that began on other hosts."""

    def others_of(self, message: int) -> str:
        """Return the recipients of a message of another host that are not on this one; empty if it is not one."""

    def apply(self, batch: ReceivedBatch, at: float) -> None:
        """Store what a batch of parcels changes. It survives a power failure after the next `sync`."""

    def sync(self) -> None:
        """Have all that was stored survive a power failure. No transaction waits for it."""

    def on_its_way(self, message: int) -> set[int]:
        """Return the recipients of a message that are on other hosts which have not acknowledged it."""

    def undelivered(self, host: str, *, include_arrived: bool) -> list[tuple[int, int, int]]:
        """Return message, sender and recipient of what is on its way to a host; also of what is queued there."""

    def give_up(  # noqa: PLR0913 - keyword-only
        self,
        host: str,
        bounced: Sequence[tuple[int, int]],
        *,
        at: float,
        why: str,
        notices: Sequence[OutgoingMessage],
        forget: bool,
    ) -> None:
        """Bounce deliveries (message, recipient) to a host, and empty their parcels; delete them if it is forgotten."""

    def forget_team(self) -> None:
        """Delete all links, hosts and parcels. Messages stay."""

    def refused(self, limit: int) -> list[RefusedParcel]:
        """Return the newest parcels that were kept aside."""
