"""The values of a team: hosts, packets, snapshots. Knows neither how they are sent nor how they are stored."""

from __future__ import annotations

from enum import Flag, auto
from typing import Literal

import msgspec

PacketKind = str
"""What a packet contains, such as `message` or `answer`. Packets of an unknown kind are stored as refused."""
HostState = Literal["member", "pending", "removed"]
SnapshotKind = Literal["agents", "sessions"]
MemberStatus = Literal["member", "removed"]


class Changes(Flag):
    """What other hosts have changed on the relay. It is false if there is nothing new to read."""

    PACKETS = auto()
    """There are packets for this host."""
    PROGRESS = auto()
    """Another host has applied packets of this host."""
    REGISTRY = auto()
    """Hosts, certificates or snapshots have changed."""
    LEASES = auto()
    """Leases have changed."""


class Packet(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A signed unit of data from one host to another."""

    origin: str
    target: str
    """The ids of the hosts: `origin` sends the packet, `target` receives it."""
    seq: int
    """Counts from 1 without gaps for each pair of origin and target."""
    kind: PacketKind
    body: bytes
    signature: bytes = b""
    """The origin's signature over all other fields. Empty until the packet is signed."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A host in the relay's list. Only certificates tell whether it is a member."""

    id: str
    name: str
    key: bytes
    """The host's public key."""
    seen: float = 0.0
    """The Unix time at which the relay last saw the host, by the relay's clock."""
    version: str = ""
    """The version of Fairlead on the host."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """A member's signed statement that a host is a member, or was removed."""

    host: str
    """The id of the host that the certificate is about. `name` and `key` belong to it."""
    name: str
    key: bytes
    status: MemberStatus = msgspec.field(name="verdict")  # the name in the files of earlier builds
    by: str
    """The id of the host that signed the certificate."""
    at: float
    """The Unix time of the signature, by the clock of the host `by`."""
    signature: bytes = b""


class HostSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Data that a host publishes about itself. It replaces the previous snapshot of the same host and kind."""

    host: str
    kind: SnapshotKind
    version: int
    """Increases with every snapshot of a host and kind, also across restarts."""
    body: bytes
    signature: bytes = b""
    """The host's signature over all other fields except `at`."""
    at: float = 0.0
    """The Unix time at which the relay received it, by the relay's clock."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first message of a host to the relay."""

    team: str
    """The id of the team. Empty for a host without a team, which joins the relay's team or creates it."""
    host: str
    name: str
    key: bytes
    """The host's public key."""
    version: str
    """The version of Fairlead on the host."""
    known_boots: tuple[str, ...] = ()
    """The nonces that this host has used before. If the relay has stored any other nonce, a clone has connected."""
    boot: str = ""
    """The nonce of this connection. It is stored on disk before it is sent."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """The relay's reply to a `Hello`."""

    team: str
    """The id of the relay's team."""
    now: float
    """The Unix time by the relay's clock."""
    asked: float
    answered: float
    """The Unix times by this host's clock, before and after the relay's clock was read."""
    revision: str
    """The revision of the relay's schema."""
    is_new: bool = False
    """Whether the relay did not know this host before."""
    is_founder: bool = False
    """Whether the relay had no team, because this host is the first one or the relay has lost all its data."""

    @property
    def offset(self) -> float:
        """How many seconds the relay's clock is ahead of this host's clock; negative if it is behind."""
        return self.now - (self.asked + self.answered) / 2

    @property
    def round_trip(self) -> float:
        """The seconds between request and reply."""
        return self.answered - self.asked


class TeamLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of a host on files of a project, as the relay stores it. Only hosts know what is in its body."""

    id: str
    """A random id, chosen by the host."""
    host: str
    project: str
    """The identity of the repository, which is the same on all hosts."""
    until: float
    """The Unix time at which the lease ends, by the relay's clock."""
    body: bytes
    signature: bytes = b""
    """The host's signature over all other fields."""


class RelayLeases(msgspec.Struct, frozen=True, kw_only=True):
    """The leases of some projects on the relay at one moment, with the version of each project."""

    now: float
    """The Unix time by the relay's clock."""
    versions: dict[str, int]
    """By project, a number that changes with every change of its leases. Projects that never had one are missing."""
    leases: tuple[TeamLease, ...]
    """The leases that have not expired, of all hosts including this one. Their signatures are not verified yet."""


class RelayLoad(msgspec.Struct, frozen=True, kw_only=True):
    """How much data the relay stores."""

    packets: int = 0
    """How many packets of all hosts are not acknowledged yet."""
    oldest: float = 0.0
    """The age of the oldest of these packets in seconds; 0 if there are none."""
    events: int = 0
    """How many events hosts have copied for the history."""
    bytes: int = 0
    """The size of all tables with their indexes, in bytes."""
