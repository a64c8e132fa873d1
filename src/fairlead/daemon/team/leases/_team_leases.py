"""Keeps the leases of this host on the relay, and the leases of the other hosts in memory.

The lease file of this host determines what it holds; the relay determines which host was first. On synchronization,
rows of this host that it does not hold are removed from the relay, and rows that the relay has lost are stored again.
Rows of other hosts count only if a member has signed them. The end of a lease is signed as a time by the relay's clock.
"""

from __future__ import annotations

import random
from contextlib import suppress
from threading import Lock
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from fairlead.daemon.leases._remote import RemoteLease, RemoteLeases, now, table_of
from fairlead.daemon.leases._team_take import RelayNeeded
from fairlead.daemon.team.leases._cached_leases import (
    CachedLeases,
    read_cached_leases,
    remove_cached_leases,
    write_cached_leases,
)
from fairlead.daemon.team.leases._rows import decode_row, sign_wanted, with_relay_time
from fairlead.durations import DAY
from fairlead.leases import WantedLease
from fairlead.mail import USER
from fairlead.team import RelayRefused, RelayUnreachable, TeamError, TeamLease, verify_lease
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from fairlead.daemon.leases._service import LeaseService
    from fairlead.daemon.leases._team_take import Decide
    from fairlead.daemon.team._connection import TeamConnection
    from fairlead.daemon.team._roster import Roster
    from fairlead.leases import Holder, Lease
    from fairlead.team import RelayLeases, Trust

    Submit = Callable[[Callable[[TeamConnection], Any]], Future[Any]]

T = TypeVar("T")

TIMEOUT: Final = 3.0
"""Seconds that a command waits for the relay in total."""
_TIMED_OUT: Final = f"the team's relay has not answered within {TIMEOUT:g} s"
READ_INTERVAL: Final = 30.0
_SHORTEST_INTERVAL: Final = 0.02
_HOSTS_A_SECOND: Final = 1000
"""How many hosts may read in a second. In a larger team, each host reads several changes at once."""
_LONGEST: Final = DAY + 60.0
"""The maximum duration of a lease of another host, in seconds."""
_SAME_TIME: Final = 1.0
_RETRY: Final = 0.05
_RESTORES: Final = 20
"""Attempts to store a lost lease again while other hosts change theirs. After that, the next change tries again."""


class _Read(NamedTuple):
    """The rows of a project, and how many seconds this host's monotonic clock is ahead of the relay's clock."""

    version: int
    rows: tuple[TeamLease, ...]
    shift: float


class TeamLeases:
    """The leases of the team. One instance is used for all connections."""

    def __init__(self, leases: LeaseService, submit: Submit, wake: Callable[[], None]) -> None:
        self._leases = leases
        self._submit = submit
        self._wake = wake
        self.remote = RemoteLeases()
        self._lock = Lock()
        self._pending: set[str] = set()
        """Ids of leases that are being granted: they may be on the relay, and are not held here yet."""
        self._has_timed_out = False
        """Whether a request to the relay has timed out, and the relay has not answered since."""
        self._is_changed = True
        """Whether the leases of this host may differ from its rows on the relay."""
        # All attributes below belong to the thread of the team.
        self._reads: dict[str, _Read] = {}
        self._verified: dict[tuple[str, str], tuple[TeamLease, bytes, RemoteLease | None]] = {}
        """By host and id: the row, the key of its host, and the decoded lease; `None` if the row is invalid."""
        self._trust: Trust | None = None
        self._read_all_at = self._read_at = -READ_INTERVAL
        self.host_name = ""
        self.last_read = 0.0
        """The time at which the relay was last read, by this host's clock."""

    def status(self) -> dict[str, Any]:
        """Return the fields about leases for `fairlead team status`."""
        own = [lease for lease in self._leases.table.leases if lease.grant is not None]
        return {"ours": len(own), "others": len(self.remote.all()), "read": self.last_read or None}

    # -- for commands ----------------------------------------------------------------------------------

    def grant(
        self, wanted: Sequence[WantedLease], holder: Holder, replaced: Sequence[str], decide: Decide
    ) -> tuple[list[WantedLease], list[Lease]]:
        """Take leases on the relay. Returns the granted leases and the conflicting ones; one of the lists is empty.

        See `TeamLeaseClient.grant` for the parameters. Raises `RelayNeeded` if the relay does not answer, or refuses.
        """
        deadline = monotonic() + TIMEOUT
        ids = {lease.grant.id for lease in wanted if lease.grant}
        with self._lock:
            self._pending |= ids
        try:
            granted, conflicts = self._grant(wanted, holder, replaced, decide, deadline)
        except TeamError as error:
            self.finish_grant(wanted)
            why = str(error).rstrip(".?! ")
            raise RelayNeeded(
                f"nothing was leased: {why}. Leases of the team need its relay; "
                "for this host only: fairlead lease --local PATH"
            ) from None
        except BaseException:
            self.finish_grant(wanted)
            raise
        if conflicts:
            self.finish_grant(wanted)
        return granted, conflicts

    def finish_grant(self, wanted: Sequence[WantedLease]) -> None:
        """Finish a `grant`: rows on the relay that this host does not hold now are removed."""
        with self._lock:
            self._pending -= {lease.grant.id for lease in wanted if lease.grant}
        self.note_change()

    def synchronize(self) -> bool:
        """Update the rows of this host on the relay. Returns whether that was done within the timeout."""
        try:
            self._ask(self._synchronize, monotonic() + TIMEOUT)
        except TeamError:
            return False
        return True

    def note_change(self) -> None:
        """Request an update of this host's rows on the relay, without waiting for it."""
        self._is_changed = True
        self._wake()

    def _grant(
        self,
        wanted: Sequence[WantedLease],
        holder: Holder,
        replaced: Sequence[str],
        decide: Decide,
        deadline: float,
    ) -> tuple[list[WantedLease], list[Lease]]:
        projects = sorted({lease.grant.project for lease in wanted if lease.grant})
        while True:
            current, others = self._ask(lambda connection: self._read_projects(connection, projects), deadline)
            conflicts = decide(others)
            if conflicts:
                return [], conflicts
            granted = [with_relay_time(lease, current.now) for lease in wanted]

            def store(connection: TeamConnection, current: RelayLeases = current, granted: Any = granted) -> bool:
                rows = [sign_wanted(connection.roster, lease, holder.name or USER.name) for lease in granted]
                return connection.relay.take_leases(rows, current.versions, replaced=replaced)

            if self._ask(store, deadline):
                return granted, []
            sleep(random.uniform(0.0, _RETRY))  # noqa: S311 - another host was first; do not retry at the same moment

    def _ask(self, work: Callable[[TeamConnection], T], deadline: float) -> T:
        """Return the result of a function that is run in the thread of the team, or raise its error.

        Raises `RelayUnreachable` after the monotonic time `deadline`, and at once if the last request has timed out.
        """
        left = deadline - monotonic()
        if self._has_timed_out or left <= 0:
            raise RelayUnreachable(_TIMED_OUT)
        future: Future[T] = self._submit(work)
        try:
            return future.result(left)
        except TimeoutError:
            self._has_timed_out = True
            future.cancel()
            self.note_change()  # the function may still run later
            raise RelayUnreachable(_TIMED_OUT) from None

    # -- the thread of the team ------------------------------------------------------------------------

    def load(self, roster: Roster) -> None:
        """Load the leases that the last daemon has cached, for use until the relay is reached."""
        self.host_name = roster.membership.name
        cached = read_cached_leases()
        relay_now = time() + cached.offset
        for project in {row.project for row in cached.rows}:
            rows = tuple(row for row in cached.rows if row.project == project and row.until > relay_now)
            self._reads[project] = _Read(-1, rows, now() - relay_now)
        self._update_remote(roster)

    def open(self, connection: TeamConnection) -> None:
        """Read everything, because changes during the time without a connection are unknown."""
        self._read_all_at = -READ_INTERVAL
        self._is_changed = True
        self.run_once(connection)

    def run_once(self, connection: TeamConnection) -> None:
        """Read changed leases of other hosts, and update the rows of this host on the relay."""
        self._has_timed_out = False
        if not connection.relay.has_leases:
            return
        is_read = self._is_due(connection)
        if is_read:
            self._read(connection, everything=monotonic() - self._read_all_at >= READ_INTERVAL)
        elif connection.roster.trust is not self._trust:
            self._update_remote(connection.roster)
        if self._is_changed:
            self._synchronize(connection, is_read=is_read)

    def seconds_to_wait(self, connection: TeamConnection) -> float:
        """Return how many seconds to wait until the next run if nothing happens."""
        if connection.relay.has_leases and connection.relay.has_lease_changes:
            return max(0.0, self._read_at + _interval(connection) - monotonic())
        return READ_INTERVAL

    def note_lost_connection(self) -> None:
        """Record that the connection is lost. Requests then fail at once with that reason."""
        self._has_timed_out = False

    def leave(self, connection: TeamConnection, host: str) -> None:
        """Remove all leases of a host from the relay and from memory, because it is no longer a member."""
        if connection.relay.has_leases:
            connection.relay.drop_leases(host)
            self._update_remote(connection.roster)

    def close(self) -> None:
        """Forget the leases of other hosts and make those of this host local, because it has left the team."""
        self.remote.replace(())
        self._leases.keep_local()
        with suppress(OSError):
            remove_cached_leases()

    def _is_due(self, connection: TeamConnection) -> bool:
        since = monotonic() - self._read_at
        if monotonic() - self._read_all_at >= READ_INTERVAL:
            return True
        return connection.relay.has_lease_changes and since >= _interval(connection)

    def _read(self, connection: TeamConnection, *, everything: bool) -> None:
        known = {} if everything else {project: read.version for project, read in self._reads.items()}
        changed = connection.relay.leases(known=known)
        self._read_at = monotonic()
        if everything:
            self._reads, self._read_all_at = {}, self._read_at
            self._is_changed = True  # the rows of this host may have been changed
        self._record(changed)
        self.last_read = time()
        before = self.remote.version
        self._update_remote(connection.roster)
        if self.remote.version != before:
            self._save(changed.now)

    def _save(self, relay_now: float) -> None:
        """Cache the leases of other hosts on disk. An error, such as a full disk, is ignored."""
        rows = tuple(row for row, _, lease in self._verified.values() if lease is not None)
        with suppress(OSError):
            write_cached_leases(CachedLeases(offset=relay_now - time(), rows=rows))

    def _record(self, changed: RelayLeases) -> None:
        shift = now() - changed.now
        for project, version in changed.versions.items():
            rows = tuple(row for row in changed.leases if row.project == project)
            before = self._reads.get(project)
            # Smaller differences come from the network. With the same shift, existing lease tables stay valid.
            same = before is not None and abs(before.shift - shift) < _SAME_TIME
            self._reads[project] = _Read(version, rows, before.shift if before is not None and same else shift)

    def _update_remote(self, roster: Roster) -> None:
        """Update `remote`, in which events look up the leases of the other members."""
        self._trust = roster.trust
        by_project = [self._others(roster, read) for read in self._reads.values()]
        present = {(row.host, row.id) for read in self._reads.values() for row in read.rows}
        self._verified = {key: value for key, value in self._verified.items() if key in present}
        self.remote.replace([lease for leases in by_project for lease in leases])

    def _others(self, roster: Roster, read: _Read) -> list[RemoteLease]:
        """Return the leases of a project that other members have signed."""
        leases = []
        for row in read.rows:
            key = roster.trust.key(row.host)
            if row.host == roster.membership.host or key is None:
                continue
            known = self._verified.get((row.host, row.id))
            if known is None or known[:2] != (row, key):
                is_genuine = verify_lease(row, key, roster.membership.team)
                known = row, key, decode_row(row, roster.name(row.host)) if is_genuine else None
                self._verified[row.host, row.id] = known
            lease = known[2]
            if lease is not None:
                ends = min(row.until + read.shift, now() + _LONGEST)
                leases.append(msgspec.structs.replace(lease, ends=round(ends, 3)))
        return leases

    def _read_projects(
        self, connection: TeamConnection, projects: Sequence[str]
    ) -> tuple[RelayLeases, list[RemoteLease]]:
        """Return the current leases of projects, and separately the decoded leases of other members.

        Raises `RelayRefused` if this host is not a member.
        """
        roster, relay = connection.roster, connection.relay
        own = roster.membership
        if roster.state(own.host) != "member":
            raise RelayRefused(
                "this host is not confirmed, so its leases count for nobody; "
                f"on a member, run: fairlead team confirm {own.name}"
            )
        current = relay.leases(projects=projects)
        shift = now() - current.now
        reads = [
            _Read(version, tuple(row for row in current.leases if row.project == project), shift)
            for project, version in current.versions.items()
        ]
        return current, [lease for read in reads for lease in self._others(roster, read)]

    def _synchronize(self, connection: TeamConnection, *, is_read: bool = False) -> None:
        """Remove rows from the relay that this host does not hold, and store rows again that the relay has lost."""
        self._is_changed = False
        if not connection.relay.has_leases:
            return
        roster = connection.roster
        host = roster.membership.host
        if not is_read:
            self._read(connection, everything=False)
        with self._lock:
            pending = set(self._pending)
        held = {lease.grant.id: lease for lease in self._leases.table.leases if lease.grant is not None}
        rows = {row.id: row for read in self._reads.values() for row in read.rows if row.host == host}
        gone = [id_ for id_ in rows if id_ not in held and id_ not in pending]
        if gone:
            connection.relay.release_leases(gone)
        if roster.state(host) != "member":
            return
        key, team = roster.membership.key.public, roster.membership.team
        for id_, lease in held.items():
            if id_ not in pending and (id_ not in rows or not verify_lease(rows[id_], key, team)):
                self._restore(connection, lease)

    def _restore(self, connection: TeamConnection, lease: Lease) -> None:
        """Store a lease on the relay again. Release it if it has expired or another host has a conflicting one."""
        grant = lease.grant
        assert grant is not None, "it is one of the team"
        wanted = WantedLease(
            path=lease.path, folder=lease.folder, shared=lease.shared, why=lease.why, until=lease.until, grant=grant
        )
        for _ in range(_RESTORES):
            current, others = self._read_projects(connection, [grant.project])
            if grant.until <= current.now:
                self._leases.release([lease])
                return
            conflicts = table_of(others, lease.root).conflicting_with(wanted, lease.holder)
            if conflicts:
                self._release_lost(lease, conflicts[0])
                return
            name = self._leases.name_of(lease.holder)
            if connection.relay.take_leases([sign_wanted(connection.roster, wanted, name)], current.versions):
                return

    def _release_lost(self, lease: Lease, other: Lease) -> None:
        self._leases.release([lease])
        name, title = one_line(self._leases.name_of(other.holder)), one_line(lease.title, 300)
        self._leases.send_notice(
            lease.holder,
            f"You have lost your lease on {title}",
            f"The relay of the team had lost it, and {name} has taken one on the same files since. "
            f'Before you go on: fairlead send {name} --request "May I change {title}?"',
        )


def _interval(connection: TeamConnection) -> float:
    """Return the minimum time between two reads. It grows with the number of hosts, because each reads all others."""
    return min(READ_INTERVAL, max(_SHORTEST_INTERVAL, len(connection.roster.hosts) / _HOSTS_A_SECOND))
