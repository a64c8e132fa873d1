"""What a relay is: the one thing that the hosts of a team share.

A relay carries parcels between hosts and keeps a registry of them. It decides nothing and is trusted with nothing:
parcels, snapshots and certificates are signed by the host that made them, and whoever reads them verifies that.
PostgreSQL is the first kind (`fairlead.team.postgres`). Another kind is a class that fulfils `Relay` and passes
`tests/team/relay_contract.py`, and one line in `_KINDS`.

A relay belongs to one thread, but for `wake`, which any thread may call. After `RelayUnreachable` it is closed: the
caller opens another one, and reads everything again, because what rang meanwhile was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fairlead.team._errors import BadTeamSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.team._types import (
        Certificate,
        Hello,
        Host,
        LeaseBoard,
        Parcel,
        RelayLoad,
        Ring,
        Snapshot,
        SnapshotKind,
        TeamLease,
        Welcome,
    )
    from fairlead.team.history import TeamHistory


class Relay(Protocol):
    """A connection of this host to the relay of its team."""

    location: str
    """How messages name it: without a password."""

    def connect(self, hello: Hello) -> Welcome:
        """Register this host, or take its place again; all else comes after this.

        Raises `HostCloned` if another process has this identity, `RelayRefused` if the name is taken or the team is
        another one, `RelayTooNew` if the schema is newer than the next revision. The relay is closed then.
        """

    def close(self) -> None:
        """Close the connection. What was pushed stays."""

    # -- parcels ---------------------------------------------------------------------------------------

    def push(self, parcels: Sequence[Parcel]) -> None:
        """Store parcels and ring their targets, in one step. A parcel that is there already is left as it is.

        A relay that crashes may lose the newest ones. The caller keeps a parcel until `progress` shows that it was
        applied, and after each `connect` pushes those again that are `missing`.
        """

    def missing(self, target: str, first: int, last: int) -> list[int]:
        """Return which numbers of ours to a target, of `first` to `last`, are neither there nor acknowledged."""

    def pull(self, *, skip: Sequence[str] = (), limit: int = 200) -> list[Parcel]:
        """Return parcels to this host, ordered by origin and number, without those of some origins."""

    def acknowledge(self, applied: Mapping[str, int]) -> None:
        """Record up to which number this host has applied the parcels of each origin; remove them, ring the origins."""

    def refuse(self, origin: str, last: int) -> None:
        """Remove the parcels of an origin up to a number without applying them."""

    def progress(self) -> dict[str, int]:
        """Return up to which number each host has applied the parcels of this one."""

    # -- the registry ----------------------------------------------------------------------------------

    def hosts(self) -> list[Host]:
        """Return all hosts that ever registered and were not deleted."""

    def certificates(self) -> list[Certificate]:
        """Return all certificates, in the order in which they were added."""

    def add_certificate(self, certificate: Certificate) -> None:
        """Add a certificate, and ring all hosts."""

    def publish(self, snapshot: Snapshot) -> None:
        """Replace a snapshot of this host if this one is newer, and ring all hosts."""

    def snapshots(self, known: Mapping[tuple[str, SnapshotKind], int]) -> list[Snapshot]:
        """Return the snapshots of the other hosts that are newer than the known versions."""

    def forget(self, host: str) -> None:
        """Delete a host, its snapshots, its leases and what is on its way to it, so that its name is free.

        Certificates stay.
        """

    def ages(self) -> dict[str, float]:
        """Return for how many seconds nothing was heard of each host, by the relay's clock."""

    # -- leases ----------------------------------------------------------------------------------------

    @property
    def has_leases(self) -> bool:
        """Whether the relay keeps leases; one whose schema is older does not."""

    @property
    def has_lease_news(self) -> bool:
        """Whether another host rang because of a lease since `leases` was last called for all projects."""

    def leases(self, *, known: Mapping[str, int] | None = None, projects: Sequence[str] | None = None) -> LeaseBoard:
        """Return the leases of the projects whose version is not the known one; of all, or of some projects."""

    def take_leases(
        self, leases: Sequence[TeamLease], versions: Mapping[str, int], *, replaced: Sequence[str] = ()
    ) -> bool:
        """Store leases of this host, in place of others of its own, and ring all hosts; all of it or nothing.

        `versions` are those of the board by which the caller has decided. Returns False, and stores nothing, if a
        project of the leases has another one now: so of two hosts that decide at once, one has to decide again.
        """

    def release_leases(self, ids: Sequence[str]) -> None:
        """Delete leases of this host, and ring all hosts."""

    def drop_leases(self, host: str) -> None:
        """Delete all leases of a host that was removed or leaves, and ring all hosts."""

    # -- its size --------------------------------------------------------------------------------------

    def prune(self, *, hosts_before: float) -> int:
        """Delete what is on its way to hosts that were not heard of since; return how many rows."""

    def load(self) -> RelayLoad:
        """Return how much the relay holds."""

    # -- waiting ---------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> Ring:
        """Wait until another host rang, `wake` was called, or the time is up. Return for what another host rang."""

    def wake(self) -> None:
        """End `wait`. May be called from any thread, at any time."""


_KINDS = {
    "postgresql": "fairlead.team.postgres",
    "postgres": "fairlead.team.postgres",
}
"""URL schemes, and the package whose `open_relay` opens them."""


def relay_schemes() -> frozenset[str]:
    """Return the URL schemes for which there is a relay."""
    return frozenset(_KINDS)


def open_relay(url: str, *, timeout: float = 10.0) -> Relay:
    """Return a relay for a URL. Raises `BadTeamSettings` for a kind that does not exist, `RelayUnreachable`."""
    relay: Relay = _package(url).open_relay(url, timeout=timeout)
    return relay


def open_history(url: str, *, timeout: float = 10.0) -> TeamHistory:
    """Return the history on the relay of a URL, over a connection of its own. Raises as `open_relay` does."""
    history: TeamHistory = _package(url).open_history(url, timeout=timeout)
    return history


def _package(url: str) -> Any:
    from importlib import import_module

    scheme = url.partition(":")[0].lower()
    package = _KINDS.get(scheme)
    if package is None:
        raise BadTeamSettings(f"a relay of the kind {scheme!r} is not supported; use postgresql://HOST/DATABASE")
    return import_module(package)
