"""`PostgresRelay`: the packets, the registry and the leases of a team as rows in PostgreSQL."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Final

from fairlead.team._errors import RelayRefused, TeamError
from fairlead.team._types import Certificate, Host, HostSnapshot, Packet, RelayLoad, Welcome
from fairlead.team.postgres import _statements as sql
from fairlead.team.postgres._connection import connect, delete_in_steps, durable_commits, listen
from fairlead.team.postgres._leases import LeaseRows
from fairlead.team.postgres._listener import NotifyListener
from fairlead.team.postgres._registration import claim, register
from fairlead.team.postgres._schema import prepare
from fairlead.team.postgres._statement_runner import StatementRunner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairlead.team._types import Changes, Hello, RelayLeases, SnapshotKind, TeamLease

_BATCH_BYTES: Final = 4 * 1024 * 1024
"""The maximum size in bytes of the packet bodies in one pull, or in one statement of a push, besides the first body."""
_TOUCH_SECONDS: Final = 10.0
"""The minimum interval at which a host that pulls updates its `seen` time on the relay."""


def open_relay(url: str, *, timeout: float = 10.0) -> PostgresRelay:
    """Connect to a server, and return the relay in its database. Raises only subclasses of `TeamError`."""
    return PostgresRelay(url, timeout)


class PostgresRelay(StatementRunner):
    """A connection of this host to a relay on PostgreSQL. See `fairlead.team.relay.Relay` for what each method does."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        """Connect to the server. `timeout` limits connecting and each wait for the server, in seconds."""
        super().__init__(url, timeout)
        self._host = ""
        self._touched = 0.0
        self._lease_rows: LeaseRows | None = None
        self._listener = NotifyListener()
        self._connection.add_notify_handler(self._listener.on_notify)

    def connect(self, hello: Hello) -> Welcome:
        """Register this host, or renew its registration, after creating or upgrading the schema if necessary."""
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
            self._host = self._listener.host = hello.host
            for channel in (f"{sql.HOST_CHANNEL}{hello.host}", sql.TEAM_CHANNEL, sql.LEASE_CHANNEL):
                listen(self._connection, channel)
            self._lease_rows = LeaseRows(self._connection, hello.host)
            self._touched = time.monotonic()
            return welcome

    def close(self) -> None:
        """Close the connection."""
        self._listener.close()
        super().close()

    # -- packets ---------------------------------------------------------------------------------------

    def push(self, packets: Sequence[Packet]) -> None:
        """Store packets and notify their targets, with one statement and transaction for each batch."""
        for batch in _batches(packets):
            columns = zip(
                *((packet.target, packet.seq, packet.kind, packet.body, packet.signature) for packet in batch),
                strict=True,
            )
            self._run(sql.PUSH, [*map(list, columns), self._host, self._host, self._host])

    def missing(self, target: str, first: int, last: int) -> list[int]:
        """Return the numbers from `first` to `last` for which no packet to `target` is stored or acknowledged."""
        rows = self._run(sql.MISSING, [first, last, self._host, target, target, self._host])
        return [seq for (seq,) in rows]

    def pull(self, *, skip: Sequence[str] = (), limit: int = 200) -> list[Packet]:
        """Return packets for this host, fewer than `limit` if they are large. Updates this host's `seen` time."""
        self._touch()
        rows = self._run(sql.PULL, [self._host, list(skip), limit, _BATCH_BYTES])
        return [
            Packet(origin=origin, target=self._host, seq=seq, kind=kind, body=body, signature=signature)
            for origin, seq, kind, body, signature in rows
        ]

    def acknowledge(self, applied: Mapping[str, int]) -> None:
        """Record which packets were applied, delete them, and notify their origins."""
        if applied:
            given = [list(applied), list(applied.values())]
            self._run(sql.ACKNOWLEDGE, [*given, self._host, self._host, self._host])

    def refuse(self, origin: str, last: int) -> None:
        """Delete packets to this host without recording them as applied."""
        self._run(sql.REFUSE, [self._host, origin, last])

    def progress(self) -> dict[str, int]:
        """Return, by the id of each target, the number of this host's last packet that the target has applied."""
        return dict(self._run(sql.PROGRESS, [self._host]))

    # -- the registry ----------------------------------------------------------------------------------

    def hosts(self) -> list[Host]:
        """Return all hosts, in the order in which they joined."""
        rows = self._run(sql.HOSTS)
        return [Host(id=id_, name=name, key=key, seen=seen, version=ver) for id_, name, key, seen, ver in rows]

    def certificates(self) -> list[Certificate]:
        """Return all certificates, in the order in which they were added."""
        return [
            Certificate(host=host, name=name, key=key, status=status, by=by, at=at, signature=signature)
            for host, name, key, status, by, at, signature in self._run(sql.CERTIFICATES)
            if status in {"member", "removed"}
        ]

    def add_certificate(self, certificate: Certificate) -> None:
        """Add a certificate, and notify all hosts."""
        values = [
            certificate.host,
            certificate.name,
            certificate.key,
            certificate.status,
            certificate.by,
            certificate.at,
            certificate.signature,
        ]
        with self._translating(), durable_commits(self._connection):
            self._connection.execute(sql.ADD_CERTIFICATE, [*values, self._host])

    def publish(self, snapshot: HostSnapshot) -> None:
        """Store a snapshot of this host if it is newer than the stored one, and notify all hosts."""
        self._run(sql.PUBLISH, [self._host, snapshot.kind, snapshot.version, snapshot.body, snapshot.signature])

    def snapshots(self, known: Mapping[tuple[str, SnapshotKind], int]) -> list[HostSnapshot]:
        """Return the snapshots of the other hosts that are newer than the known versions, given by host and kind."""
        hosts, kinds = [host for host, _ in known], [kind for _, kind in known]
        rows = self._run(sql.SNAPSHOTS, [hosts, kinds, list(known.values()), self._host])
        return [
            HostSnapshot(host=host, kind=kind, version=version, body=body, signature=signature, at=at)
            for host, kind, version, body, signature, at in rows
        ]

    def delete_host(self, host: str) -> None:
        """Delete a host, its snapshots, its leases and the packets to it, and notify all other hosts."""
        self._run(sql.DELETE_HOST, [*[host] * 5, self._host])
        if self.has_leases:
            self.drop_leases(host)

    def ages(self) -> dict[str, float]:
        """Return by host id the seconds since the relay last saw the host."""
        return dict(self._run(sql.AGES))

    # -- leases ----------------------------------------------------------------------------------------

    @property
    def has_leases(self) -> bool:
        """Whether the tables of the leases exist and the role may write to them."""
        return self._lease_rows is not None and self._lease_rows.tables_exist

    @property
    def has_lease_changes(self) -> bool:
        """Whether another host has changed a lease since the last call of `leases` for all projects."""
        return self._listener.has_lease_changes

    def leases(self, *, known: Mapping[str, int] | None = None, projects: Sequence[str] | None = None) -> RelayLeases:
        """Return the leases of the projects whose version differs from the one in `known`."""
        if projects is None:
            self._listener.has_lease_changes = False
        with self._translating():
            return self._leases.read(known or {}, projects)

    def take_leases(
        self, leases: Sequence[TeamLease], versions: Mapping[str, int], *, replaced: Sequence[str] = ()
    ) -> bool:
        """Store leases and delete the `replaced` ones if the projects have these versions. Return whether they do."""
        with self._translating():
            return self._leases.take(leases, versions, replaced)

    def release_leases(self, ids: Sequence[str]) -> None:
        """Delete the leases of this host with these ids, and notify all hosts."""
        with self._translating():
            self._leases.release(ids)

    def drop_leases(self, host: str) -> None:
        """Delete all leases of a host, and notify all hosts."""
        with self._translating():
            self._leases.drop(host)

    @property
    def _leases(self) -> LeaseRows:
        if self._lease_rows is None or not self._lease_rows.tables_exist:
            raise RelayRefused(
                f"{self.location}: the schema is of an older Fairlead and has no leases; "
                "have an administrator run what `fairlead team schema` prints"
            )
        return self._lease_rows

    # -- its size --------------------------------------------------------------------------------------

    def prune(self, *, hosts_before: float) -> int:
        """Delete packets to hosts not connected since `hosts_before`, and expired leases; return how many rows."""
        with self._translating():
            total = delete_in_steps(self._connection, sql.PRUNE_PACKETS, {"before": hosts_before})
            return total + (self._leases.prune() if self.has_leases else 0)

    def load(self) -> RelayLoad:
        """Return how much data the relay stores."""
        ((packets, oldest, events, size),) = self._run(sql.LOAD)
        return RelayLoad(packets=packets, oldest=oldest, events=events, bytes=size)

    # -- waiting ---------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> Changes:
        """Wait for a change by another host, a call of `wake`, or the end of the time. Return what has changed."""
        with self._translating():
            return self._listener.wait(self._connection.pgconn, seconds)

    def wake(self) -> None:
        """End the current `wait`, or the next one if none is running."""
        self._listener.wake()

    # -- statements ------------------------------------------------------------------------------------

    def _touch(self) -> None:
        now = time.monotonic()
        if now - self._touched > _TOUCH_SECONDS:
            with self._translating():
                self._connection.execute(sql.TOUCH, [self._host])
            self._touched = now


def _batches(packets: Sequence[Packet]) -> Iterator[list[Packet]]:
    """Yield the packets in order, in batches. Without its first body, a batch has less than `_BATCH_BYTES`."""
    sizes = itertools.accumulate(len(item.body) for item in packets)
    groups = itertools.groupby(zip(sizes, packets, strict=True), key=lambda pair: pair[0] // _BATCH_BYTES)
    for _, group in groups:
        yield [packet for _, packet in group]
