"""The values of a team: hosts, packets, snapshots. Knows neither how they are sent nor how they are stored."""

from __future__ import annotations

from enum import Flag, auto
from typing import Literal

import msgspec

PacketKind = str
"""`message`, `receipt` or `answer`. Packets of a kind that this version does not know are kept but not applied."""
HostState = Literal["member", "pending", "removed"]
SnapshotKind = Literal["agents", "sessions"]
MemberStatus = Literal["member", "removed"]

MAX_PACKET_BYTES = 8 * 1024 * 1024


class Changes(Flag):
    """What other hosts have changed on the relay. If it is empty, there is nothing new to read."""

    PACKETS = auto()
    """There are packets for this host."""
    PROGRESS = auto()
    """Another host has applied packets of this host."""
    REGISTRY = auto()
    """Hosts, certificates or snapshots have changed."""
    LEASES = auto()
    """Leases have changed."""


class Packet(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A signed unit of data from one host to another. `seq` counts from 1 without gaps for each origin and target."""

    origin: str
    target: str
    seq: int
    kind: PacketKind
    body: bytes
    signature: bytes = b""
    """The origin's signature over all other fields. Empty until the packet is signed."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A host in the relay's list. Only certificates tell whether it is a member."""

    id: str
    name: str
    key: bytes
    """Its public key."""
    seen: float = 0.0
    """The time of its last connection, by the relay's clock."""
    version: str = ""
    """Its version of Fairlead."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """A member's signed statement that a host is a member, or was removed."""

    host: str
    name: str
    key: bytes
    status: MemberStatus = msgspec.field(name="verdict")  # the name in the files of earlier builds
    by: str
    """The host that signed it."""
    at: float
    signature: bytes = b""


class HostSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Data that a host publishes about itself. The newest snapshot replaces all earlier ones."""

    host: str
    kind: SnapshotKind
    version: int
    """Increases with every snapshot of a host and kind, also across restarts."""
    body: bytes
    signature: bytes = b""
    at: float = 0.0
    """The time at which the relay received it, by the relay's clock."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first message of a host to the relay."""

    team: str
    """Empty for a host without a team: if the relay has no team yet, it creates one."""
    host: str
    name: str
    key: bytes
    version: str
    known_boots: tuple[str, ...] = ()
    """All nonces that this host has used before. If the relay has any other nonce, a clone has connected."""
    boot: str = ""
    """The nonce of this connection. It is stored on disk before it is sent."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """The relay's reply to a `Hello`."""

    team: str
    now: float
    """The time by the relay's clock, read between `asked` and `answered`, which are by the clock of this host."""
    asked: float
    answered: float
    revision: str
    """The revision of the relay's schema."""
    is_new: bool = False
    """Whether the relay did not know this host before."""
    is_founder: bool = False
    """Whether the relay had no team: this host is the first one, or the relay has lost all its data."""

    @property
    def offset(self) -> float:
        """How many seconds the relay's clock is ahead of the clock of this host."""
        return self.now - (self.asked + self.answered) / 2

    @property
    def round_trip(self) -> float:
        """The seconds between request and reply."""
        return self.answered - self.asked


class TeamLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of a host on files of a project, as the relay stores it. Only hosts can interpret its body."""

    id: str
    """A random id, chosen by the host."""
    host: str
    project: str
    """The identity of the repository, which is the same on all hosts."""
    until: float
    """The end of the lease, by the relay's clock."""
    body: bytes
    signature: bytes = b""
    """The host's signature over all other fields."""


class RelayLeases(msgspec.Struct, frozen=True, kw_only=True):
    """The leases of some projects on the relay at one moment, with the version of each project."""

    now: float
    """The time by the relay's clock."""
    versions: dict[str, int]
    """By project: a number that changes with every change of its leases. A project that never had a lease has none."""
    leases: tuple[TeamLease, ...]
    """The leases of all hosts that have not expired. Their signatures are not verified yet."""


class RelayLoad(msgspec.Struct, frozen=True, kw_only=True):
    """How much the relay holds."""

    packets: int = 0
    """Packets of all hosts that are not acknowledged yet."""
    oldest: float = 0.0
    """The age of the oldest of these packets, in seconds."""
    events: int = 0
    bytes: int = 0
