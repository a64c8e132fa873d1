"""The values of a team: hosts, parcels, snapshots. Knows neither how they are carried nor how they are stored."""

from __future__ import annotations

from enum import Flag, auto
from typing import Final, Literal

import msgspec

ParcelKind = str
"""`message`, `receipt`, `answer`; a kind that this version does not know is kept aside."""
HostState = Literal["member", "pending", "removed"]
SnapshotKind = Literal["agents", "sessions"]
Verdict = Literal["member", "removed"]

MAX_PARCEL_BYTES: Final = 8 * 1024 * 1024


class Ring(Flag):
    """What another host has rung for. Without any, nothing is to be read."""

    PARCELS = auto()
    """There are parcels to this host."""
    PROGRESS = auto()
    """A host has applied parcels of this one."""
    REGISTRY = auto()
    """Hosts, certificates or snapshots have changed."""
    LEASES = auto()
    """Leases have changed."""


class Parcel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one host sends to another. `seq` counts from 1 without gaps for each pair of origin and target."""

    origin: str
    target: str
    seq: int
    kind: ParcelKind
    body: bytes
    signature: bytes = b""
    """Of the origin, over all other fields. Empty until it is signed."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A host as the relay lists it. Only certificates say whether it is a member."""

    id: str
    name: str
    key: bytes
    """Its public key."""
    seen: float = 0.0
    """When it was last connected, by the relay's clock."""
    version: str = ""
    """Of Fairlead."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """A signed statement of a member about a host: that it is one, or no longer."""

    host: str
    name: str
    key: bytes
    verdict: Verdict
    by: str
    """The host that signed it."""
    at: float
    signature: bytes = b""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a host tells the others about itself. The newest replaces all earlier ones."""

    host: str
    kind: SnapshotKind
    version: int
    """Ascending for each host and kind, across restarts."""
    body: bytes
    signature: bytes = b""
    at: float = 0.0
    """When the relay received it, by its own clock."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """How a host introduces itself to the relay."""

    team: str
    """Empty for the first host: the relay then founds a team, if it has none."""
    host: str
    name: str
    key: bytes
    version: str
    known_boots: tuple[str, ...] = ()
    """Every boot nonce that this host has used before. Another one on the relay is that of a clone."""
    boot: str = ""
    """The nonce of this connection. It is stored on disk before it is sent."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the relay answers."""

    team: str
    now: float
    """The relay's clock, read between `asked` and `answered` of this host's."""
    asked: float
    answered: float
    revision: str
    """Of its schema."""
    is_new: bool = False
    """Whether this host was not known to it, or is the first of the team."""
    is_founder: bool = False
    """Whether the relay had no team: this host is the first, or all data of the relay were lost."""

    @property
    def offset(self) -> float:
        """Seconds that the relay's clock is ahead of this host's."""
        return self.now - (self.asked + self.answered) / 2

    @property
    def round_trip(self) -> float:
        """Seconds until the relay had answered."""
        return self.answered - self.asked


class TeamLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of a host on files of a project, as the relay keeps it. What it is on is for the hosts to read."""

    id: str
    """Random, chosen by the host."""
    host: str
    project: str
    """The identity of the repository, which is the same on all hosts."""
    until: float
    """By the relay's clock."""
    body: bytes
    signature: bytes = b""
    """Of the host, over all other fields."""


class LeaseBoard(msgspec.Struct, frozen=True, kw_only=True):
    """The leases of some projects, at one moment."""

    now: float
    """The relay's clock."""
    versions: dict[str, int]
    """By project: another number after each change. A project that never had a lease has none."""
    leases: tuple[TeamLease, ...]
    """Those whose time is not up, of all hosts. Nothing of them was verified."""


class RelayLoad(msgspec.Struct, frozen=True, kw_only=True):
    """How much the relay holds."""

    parcels: int = 0
    """On their way, of all hosts."""
    oldest: float = 0.0
    """Seconds that the oldest of them has waited."""
    events: int = 0
    bytes: int = 0
