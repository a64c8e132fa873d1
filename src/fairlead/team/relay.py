"""The interface of a relay, the one service that the hosts of a team share.

A relay passes packets between hosts and keeps a registry of the hosts. It decides nothing and is not trusted:
packets, snapshots and certificates are signed by the host that made them, and every reader verifies the signature.
PostgreSQL is the first kind of relay (`fairlead.team.postgres`). Another kind needs a class that implements `Relay`
and passes `tests/team/relay_contract.py`, and one line in `_KINDS`.

A relay belongs to one thread; only `wake` may be called from any thread. After `RelayUnreachable` the relay is closed.
The caller opens a new one and reads everything again, because notifications in between were lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fairlead.team._errors import BadTeamSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.team._types import (
        Certificate,
        Changes,
        Hello,
        Host,
        HostSnapshot,
        Packet,
        RelayLeases,
        RelayLoad,
        SnapshotKind,
        TeamLease,
        Welcome,
    )
    from fairlead.team.history import TeamHistory


class Relay(Protocol):
    """A connection of this host to the relay of its team."""

    location: str
    """The name of the relay in messages: its URL without a password."""

    def connect(self, hello: Hello) -> Welcome:
        """Register this host, or renew its registration. Must be called before all other methods.

        Raises `HostCloned` if another process uses this identity, `RelayRefused` if the name is taken or the relay
        belongs to another team, `RelayTooNew` if the schema is more than one revision ahead, and `RelayUnreachable`.
        After an error the relay is closed.
        """

    def close(self) -> None:
        """Close the connection. Pushed packets stay on the relay."""

    # -- packets ---------------------------------------------------------------------------------------

    def push(self, packets: Sequence[Packet]) -> None:
        """Store packets of this host and notify their targets. A packet that is already stored is not changed.

        Many packets may be stored in several transactions, so that after an error some are stored. A relay that crashes
        may lose the newest packets. So the caller keeps each packet until `progress` shows that it was applied, and
        after each `connect` pushes the `missing` ones again.
        """

    def missing(self, target: str, first: int, last: int) -> list[int]:
        """Return the numbers, from `first` to `last`, of the packets to `target` that the relay has lost.

        A lost packet is neither stored nor acknowledged.
        """

    def pull(self, *, skip: Sequence[str] = (), limit: int = 200) -> list[Packet]:
        """Return up to `limit` packets for this host, ordered by origin and number.

        Leaves out packets of the origins in `skip`. Returns an empty list only if there are no other packets.
        """

    def acknowledge(self, applied: Mapping[str, int]) -> None:
        """Record the number of the last packet of each origin that this host has applied.

        Deletes the packets up to these numbers, and notifies their origins.
        """

    def refuse(self, origin: str, last: int) -> None:
        """Delete the packets of an origin to this host up to the number `last`, without recording them as applied."""

    def progress(self) -> dict[str, int]:
        """Return, by the id of each target, the number of this host's last packet that the target has applied."""

    # -- the registry ----------------------------------------------------------------------------------

    def hosts(self) -> list[Host]:
        """Return all hosts that ever registered and were not deleted, in the order in which they registered."""

    def certificates(self) -> list[Certificate]:
        """Return all certificates, in the order in which they were added."""

    def add_certificate(self, certificate: Certificate) -> None:
        """Add a certificate, and notify all hosts."""

    def publish(self, snapshot: HostSnapshot) -> None:
        """Store a snapshot of this host if it is newer than the stored one, and notify all hosts."""

    def snapshots(self, known: Mapping[tuple[str, SnapshotKind], int]) -> list[HostSnapshot]:
        """Return the snapshots of the other hosts that are newer than the known versions, given by host and kind."""

    def delete_host(self, host: str) -> None:
        """Delete a host, its snapshots, its leases and the packets to it, and notify all hosts.

        Its name is free afterwards. Certificates stay.
        """

    def ages(self) -> dict[str, float]:
        """Return by host id the seconds since the relay last saw the host."""

    # -- leases ----------------------------------------------------------------------------------------

    @property
    def has_leases(self) -> bool:
        """Whether this host can store leases on the relay. False if the schema is older or rights are missing."""

    @property
    def has_lease_changes(self) -> bool:
        """Whether another host has changed a lease since the last call of `leases` for all projects."""

    def leases(self, *, known: Mapping[str, int] | None = None, projects: Sequence[str] | None = None) -> RelayLeases:
        """Return the leases of the projects whose version differs from the one in `known`.

        With `projects`, only of these projects; with None, of all. Raises `RelayRefused` unless `has_leases`.
        """

    def take_leases(
        self, leases: Sequence[TeamLease], versions: Mapping[str, int], *, replaced: Sequence[str] = ()
    ) -> bool:
        """Store leases of this host, delete the `replaced` ones, and notify all hosts, in one transaction.

        `versions` are those that `leases` returned to the caller before it decided. If a project of the leases has
        another version now, nothing is stored and False is returned. So if two hosts decide at the same time, one of
        them has to decide again. Raises `RelayRefused` unless `has_leases`.
        """

    def release_leases(self, ids: Sequence[str]) -> None:
        """Delete the leases of this host with these ids, and notify all hosts."""

    def drop_leases(self, host: str) -> None:
        """Delete all leases of a host that was removed or leaves the team, and notify all hosts."""

    # -- its size --------------------------------------------------------------------------------------

    def prune(self, *, hosts_before: float) -> int:
        """Delete packets to hosts that have not connected since the Unix time `hosts_before`, and expired leases.

        Also deletes unused versions of projects. Returns the number of deleted packets, leases and versions.
        """

    def load(self) -> RelayLoad:
        """Return how much data the relay stores."""

    # -- waiting ---------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> Changes:
        """Wait for a change by another host, a call of `wake`, or the end of the time.

        Return what has changed since the last call. The result is false if nothing has.
        """

    def wake(self) -> None:
        """End the current `wait`, or the next one if there is none. May be called from any thread, at any time."""


_KINDS = {
    "postgresql": "fairlead.team.postgres",
    "postgres": "fairlead.team.postgres",
}
"""The packages that open a relay and its history, by URL scheme."""


def relay_schemes() -> frozenset[str]:
    """Return the URL schemes of the supported kinds of relays."""
    return frozenset(_KINDS)


def open_relay(url: str, *, timeout: float = 10.0) -> Relay:
    """Connect to the relay at a URL, without registering this host, which `Relay.connect` does.

    `timeout` limits connecting and each wait for the relay, in seconds. Raises `RelayUnreachable` or `RelayRefused`,
    and `BadTeamSettings` if the URL is invalid or its scheme is not supported.
    """
    relay: Relay = _package(url).open_relay(url, timeout=timeout)
    return relay


def open_history(url: str, *, timeout: float = 10.0) -> TeamHistory:
    """Open a new connection to the history on the relay at a URL. Parameters and errors are those of `open_relay`."""
    history: TeamHistory = _package(url).open_history(url, timeout=timeout)
    return history


def _package(url: str) -> Any:
    from importlib import import_module

    scheme = url.partition(":")[0].lower()
    package = _KINDS.get(scheme)
    if package is None:
        raise BadTeamSettings(f"a relay of the kind {scheme!r} is not supported; use postgresql://HOST/DATABASE")
    return import_module(package)
