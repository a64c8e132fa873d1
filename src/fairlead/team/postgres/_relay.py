"""`PostgresRelay`: the parcels, the registry and the history of a team as rows, its bell as NOTIFY."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Final

from fairlead.team._errors import RelayRefused, TeamError
from fairlead.team._types import Certificate, Host, Parcel, RelayLoad, Snapshot, Welcome
from fairlead.team.postgres import _statements as sql
from fairlead.team.postgres._bell import Bell
from fairlead.team.postgres._connection import connect, delete_in_steps, durably, listen
from fairlead.team.postgres._leases import LeaseRows
from fairlead.team.postgres._registration import claim, register
from fairlead.team.postgres._schema import prepare
from fairlead.team.postgres._statement_runner import StatementRunner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairlead.team._types import Hello, LeaseBoard, Ring, SnapshotKind, TeamLease

_BATCH_BYTES: Final = 4 * 1024 * 1024
"""Of the bodies of one pull, or of one statement that pushes."""
_TOUCH_SECONDS: Final = 10.0
"""How old the time may get at which the relay last saw this host, while it reads."""


def open_relay(url: str, *, timeout: float = 10.0) -> PostgresRelay:
    """Connect to a server, and return the relay in its database. Raises errors of a team only."""
    return PostgresRelay(url, timeout)


class PostgresRelay(StatementRunner):
    """A connection of this host to a relay on PostgreSQL. See `fairlead.team.relay.Relay` for what each method does."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        """Connect to the server. `timeout` is in seconds: for connecting, and for a server that is silent."""
        super().__init__(url, timeout)
        self._host = ""
        self._touched = 0.0
        self._lease_rows: LeaseRows | None = None
        self._bell = Bell()
        self._connection.add_notify_handler(self._bell.hear)

    def connect(self, hello: Hello) -> Welcome:
        """Register this host, or take its place again."""
        try:
            return self._connect(hello)
        except TeamError:
            self.close()
            raise

    def _connect(self, hello: Hello) -> Welcome:
        with self._translating():
            revision = prepare(self._connection, self.location, lambda: connect(self._url, self._timeout))
            claim(self._connection, hello)
            welcome = register(self._connection, hello, revision, self.location)
            self._host = self._bell.host = hello.host
            for channel in (f"{sql.HOST_CHANNEL}{hello.host}", sql.TEAM_CHANNEL, sql.LEASE_CHANNEL):
                listen(self._connection, channel)
            self._lease_rows = LeaseRows(self._connection, hello.host)
            self._touched = time.monotonic()
            return welcome

    def close(self) -> None:
        """Close the connection."""
        self._bell.close()
        super().close()

    # -- parcels ---------------------------------------------------------------------------------------

    def push(self, parcels: Sequence[Parcel]) -> None:
        """Store parcels and ring their targets. Those of one statement are stored together, or none of them."""
        for batch in _batches(parcels):
            columns = zip(*((one.target, one.seq, one.kind, one.body, one.signature) for one in batch), strict=True)
            self._run(sql.PUSH, [*map(list, columns), self._host, self._host, self._host])

    def missing(self, target: str, first: int, last: int) -> list[int]:
        """Return which numbers of ours to a target are neither there nor acknowledged."""
        rows = self._run(sql.MISSING, [first, last, self._host, target, target, self._host])
        return [seq for (seq,) in rows]

    def pull(self, *, skip: Sequence[str] = (), limit: int = 200) -> list[Parcel]:
        """Return parcels to this host; fewer than `limit` if they are large."""
        self._touch()
        rows = self._run(sql.PULL, [self._host, list(skip), limit, _BATCH_BYTES])
        return [
            Parcel(origin=origin, target=self._host, seq=seq, kind=kind, body=body, signature=signature)
            for origin, seq, kind, body, signature in rows
        ]

    def acknowledge(self, applied: Mapping[str, int]) -> None:
        """Record what was applied, remove it, and ring the origins."""
        if applied:
            given = [list(applied), list(applied.values())]
            self._run(sql.ACKNOWLEDGE, [*given, self._host, self._host, self._host])

    def refuse(self, origin: str, last: int) -> None:
        """Remove parcels without applying them."""
        self._run(sql.REFUSE, [self._host, origin, last])

    def progress(self) -> dict[str, int]:
        """Return up to which number each host has applied the parcels of this one."""
        return dict(self._run(sql.PROGRESS, [self._host]))

    # -- the registry ----------------------------------------------------------------------------------

    def hosts(self) -> list[Host]:
        """Return all hosts, in the order in which they joined."""
        rows = self._run(sql.HOSTS)
        return [Host(id=id_, name=name, key=key, seen=seen, version=ver) for id_, name, key, seen, ver in rows]

    def certificates(self) -> list[Certificate]:
        """Return all certificates, in the order in which they were added."""
        return [
            Certificate(host=host, name=name, key=key, verdict=verdict, by=by, at=at, signature=signature)
            for host, name, key, verdict, by, at, signature in self._run(sql.CERTIFICATES)
            if verdict in {"member", "removed"}
        ]

    def add_certificate(self, certificate: Certificate) -> None:
        """Add a certificate, and ring all hosts."""
        one = certificate
        values = [one.host, one.name, one.key, one.verdict, one.by, one.at, one.signature]
        with self._translating(), durably(self._connection):
            self._connection.execute(sql.ADD_CERTIFICATE, [*values, self._host])

    def publish(self, snapshot: Snapshot) -> None:
        """Replace a snapshot of this host if this one is newer, and ring all hosts."""
        one = snapshot
        self._run(sql.PUBLISH, [self._host, one.kind, one.version, one.body, one.signature])

    def snapshots(self, known: Mapping[tuple[str, SnapshotKind], int]) -> list[Snapshot]:
        """Return the snapshots of the other hosts that are newer than the known versions."""
        hosts, kinds = [host for host, _ in known], [kind for _, kind in known]
        rows = self._run(sql.SNAPSHOTS, [hosts, kinds, list(known.values()), self._host])
        return [
            Snapshot(host=host, kind=kind, version=version, body=body, signature=signature, at=at)
            for host, kind, version, body, signature, at in rows
        ]

    def forget(self, host: str) -> None:
        """Delete a host, its snapshots, its leases and what is on its way to it, and ring all others."""
        self._run(sql.FORGET, [*[host] * 5, self._host])
        if self.has_leases:
            self.drop_leases(host)

    def ages(self) -> dict[str, float]:
        """Return for how many seconds nothing was heard of each host."""
        return dict(self._run(sql.AGES))

    # -- leases ----------------------------------------------------------------------------------------

    @property
    def has_leases(self) -> bool:
        """Whether there are tables for leases, and the role may use them."""
        return self._lease_rows is not None and self._lease_rows.exist

    @property
    def has_lease_news(self) -> bool:
        """Whether another host rang because of a lease since `leases` was last called."""
        return self._bell.has_lease_news

    def leases(self, *, known: Mapping[str, int] | None = None, projects: Sequence[str] | None = None) -> LeaseBoard:
        """Return the leases of the projects whose version is not the known one; of all, or of some projects."""
        if projects is None:
            self._bell.has_lease_news = False
        with self._translating():
            return self._leases.read(known or {}, projects)

    def take_leases(
        self, leases: Sequence[TeamLease], versions: Mapping[str, int], *, replaced: Sequence[str] = ()
    ) -> bool:
        """Store leases of this host if the versions of their projects are still these."""
        with self._translating():
            return self._leases.take(leases, versions, replaced)

    def release_leases(self, ids: Sequence[str]) -> None:
        """Delete leases of this host, and ring all hosts."""
        with self._translating():
            self._leases.release(ids)

    def drop_leases(self, host: str) -> None:
        """Delete all leases of a host, and ring all hosts."""
        with self._translating():
            self._leases.drop(host)

    @property
    def _leases(self) -> LeaseRows:
        if self._lease_rows is None or not self._lease_rows.exist:
            raise RelayRefused(
                f"{self.location}: the schema is of an older Fairlead and has no leases; "
                "have an administrator run what `fairlead team schema` prints"
            )
        return self._lease_rows

    # -- its size --------------------------------------------------------------------------------------

    def prune(self, *, hosts_before: float) -> int:
        """Delete what is on its way to hosts that were not heard of since, and leases whose time is up."""
        with self._translating():
            total = delete_in_steps(self._connection, sql.PRUNE_PARCELS, {"before": hosts_before})
            return total + (self._leases.prune() if self.has_leases else 0)

    def load(self) -> RelayLoad:
        """Return how much the relay holds."""
        ((parcels, oldest, events, size),) = self._run(sql.LOAD)
        return RelayLoad(parcels=parcels, oldest=oldest, events=events, bytes=size)

    # -- waiting ---------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> Ring:
        """Wait until another host rang, `wake` was called, or the time is up."""
        with self._translating():
            return self._bell.wait(self._connection.pgconn, seconds)

    def wake(self) -> None:
        """End `wait`, also the next one if none is running."""
        self._bell.wake()

    # -- statements ------------------------------------------------------------------------------------

    def _touch(self) -> None:
        now = time.monotonic()
        if now - self._touched > _TOUCH_SECONDS:
            with self._translating():
                self._connection.execute(sql.TOUCH, [self._host])
            self._touched = now


def _batches(parcels: Sequence[Parcel]) -> Iterator[list[Parcel]]:
    """Yield parcels in order, in groups of a limited size; one that is larger is alone."""
    sizes = itertools.accumulate(len(one.body) for one in parcels)
    groups = itertools.groupby(zip(sizes, parcels, strict=True), key=lambda pair: pair[0] // _BATCH_BYTES)
    for _, group in groups:
        yield [parcel for _, parcel in group]
