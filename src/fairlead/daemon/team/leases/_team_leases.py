"""Leases across hosts: those of this host on the relay, those of the others in memory.

The file of this host says what it holds; the relay says who was first. When both are read, what this host does not
hold is removed from the relay, and what the relay has lost is put there again. Rows of others count if a member has
signed them. Times are the relay's: a row is signed with the end of the lease by that clock.
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
from fairlead.daemon.team.leases._kept import KeptLeases, read_kept, remove_kept, write_kept
from fairlead.daemon.team.leases._rows import decode_row, sign_wanted, timed
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
    from fairlead.team import LeaseBoard, Trust

    Submit = Callable[[Callable[[TeamConnection], Any]], Future[Any]]

T = TypeVar("T")

TIMEOUT: Final = 3.0
"""Seconds that a command waits for the relay, all in all."""
_SILENT: Final = f"the team's relay has not answered within {TIMEOUT:g} s"
READ_INTERVAL: Final = 30.0
_SHORTEST_INTERVAL: Final = 0.02
_HOSTS_A_SECOND: Final = 1000
"""Hosts that read after each change: with more of them, changes are gathered."""
_LONGEST: Final = 24 * 3600.0 + 60.0
"""Seconds that a lease of another host can last, whatever it says."""
_SAME_TIME: Final = 1.0
_RETRY: Final = 0.05
_RESTORES: Final = 20
"""Attempts to put a lease on the relay again while others change theirs; then after the next change."""


class _Read(NamedTuple):
    """The rows of a project, and how far this host's steady clock is ahead of the relay's."""

    version: int
    rows: tuple[TeamLease, ...]
    shift: float


class TeamLeases:
    """The part of the team's service that is about leases. Lives across connections."""

    def __init__(self, leases: LeaseService, submit: Submit, wake: Callable[[], None]) -> None:
        self._leases = leases
        self._submit = submit
        self._wake = wake
        self.remote = RemoteLeases()
        self._lock = Lock()
        self._pending: set[str] = set()
        """On the relay, or about to be, and not held here yet."""
        self._is_silent = False
        """The relay did not answer somebody in time, and has not since."""
        self._is_changed = True
        """What this host holds may differ from what is on the relay."""
        # The rest belongs to the thread of the team.
        self._reads: dict[str, _Read] = {}
        self._verified: dict[tuple[str, str], tuple[TeamLease, bytes, RemoteLease | None]] = {}
        self._trust: Trust | None = None
        self._read_all_at = self._read_at = -READ_INTERVAL
        self.host_name = ""
        self.last_read = 0.0
        """When the relay was last asked, by this host's clock."""

    def status(self) -> dict[str, Any]:
        """Return what `fairlead team status` says of leases."""
        own = [lease for lease in self._leases.table.leases if lease.grant is not None]
        return {"ours": len(own), "others": len(self.remote.all()), "read": self.last_read}

    # -- for commands ----------------------------------------------------------------------------------

    def grant(
        self, wanted: Sequence[WantedLease], holder: Holder, replaced: Sequence[str], decide: Decide
    ) -> tuple[list[WantedLease], list[Lease]]:
        """Take leases on the relay, or return what stands against them. Raises `RelayNeeded`."""
        deadline = monotonic() + TIMEOUT
        ids = {one.grant.id for one in wanted if one.grant}
        with self._lock:
            self._pending |= ids
        try:
            granted, against = self._grant(wanted, holder, replaced, decide, deadline)
        except TeamError as error:
            self.settle(wanted)
            why = str(error).rstrip(".?! ")
            raise RelayNeeded(
                f"nothing was leased: {why}. Leases of the team need its relay; "
                "for this host only: fairlead lease --local PATH"
            ) from None
        except BaseException:
            self.settle(wanted)
            raise
        if against:
            self.settle(wanted)
        return granted, against

    def settle(self, wanted: Sequence[WantedLease]) -> None:
        """End what `grant` began: what is not held here by now is removed from the relay."""
        with self._lock:
            self._pending -= {one.grant.id for one in wanted if one.grant}
        self.note_change()

    def synchronize(self) -> bool:
        """Have the relay show what is held here, and wait a little for it."""
        try:
            self._ask(self._synchronize, monotonic() + TIMEOUT)
        except TeamError:
            return False
        return True

    def note_change(self) -> None:
        """Have the relay show what is held here, without waiting."""
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
        projects = sorted({one.grant.project for one in wanted if one.grant})
        while True:
            board, others = self._ask(lambda connection: self._look(connection, projects), deadline)
            against = decide(others)
            if against:
                return [], against
            granted = [timed(one, board.now) for one in wanted]

            def store(connection: TeamConnection, board: LeaseBoard = board, granted: Any = granted) -> bool:
                rows = [sign_wanted(connection.roster, one, holder.name or USER.name) for one in granted]
                return connection.relay.take_leases(rows, board.versions, replaced=replaced)

            if self._ask(store, deadline):
                return granted, []
            sleep(random.uniform(0.0, _RETRY))  # noqa: S311 - another host was first: not again at the same moment

    def _ask(self, work: Callable[[TeamConnection], T], deadline: float) -> T:
        """Have the thread of the team do something. Raises `TeamError`, at once if it did not answer a moment ago."""
        left = deadline - monotonic()
        if self._is_silent or left <= 0:
            raise RelayUnreachable(_SILENT)
        asked: Future[T] = self._submit(work)
        try:
            return asked.result(left)
        except TimeoutError:
            self._is_silent = True
            asked.cancel()
            self.note_change()  # it may be done later
            raise RelayUnreachable(_SILENT) from None

    # -- the thread of the team ------------------------------------------------------------------------

    def load(self, roster: Roster) -> None:
        """Take what the last daemon has left, until the relay is reached."""
        self.host_name = roster.membership.name
        kept = read_kept()
        relay_now = time() + kept.offset
        for project in {row.project for row in kept.rows}:
            rows = tuple(row for row in kept.rows if row.project == project and row.until > relay_now)
            self._reads[project] = _Read(-1, rows, now() - relay_now)
        self._show(roster)

    def open(self, connection: TeamConnection) -> None:
        """Read everything: what changed while there was no connection is not known."""
        self._read_all_at = -READ_INTERVAL
        self._is_changed = True
        self.turn(connection)

    def turn(self, connection: TeamConnection) -> None:
        """Read what is due, and have the relay show what is held here."""
        self._is_silent = False
        if not connection.relay.has_leases:
            return
        is_read = self._is_due(connection)
        if is_read:
            self._read(connection, everything=monotonic() - self._read_all_at >= READ_INTERVAL)
        elif connection.roster.trust is not self._trust:
            self._show(connection.roster)
        if self._is_changed:
            self._synchronize(connection, is_read=is_read)

    def seconds_to_wait(self, connection: TeamConnection) -> float:
        """Return how long the next turn may be put off if nothing happens."""
        if connection.relay.has_leases and connection.relay.has_lease_news:
            return max(0.0, self._read_at + _interval(connection) - monotonic())
        return READ_INTERVAL

    def lost(self) -> None:
        """Note that there is no connection: whoever asks is told so at once."""
        self._is_silent = False

    def leave(self, connection: TeamConnection, host: str) -> None:
        """Remove all leases of a host, which is a member no more, from the relay and from memory."""
        if connection.relay.has_leases:
            connection.relay.drop_leases(host)
            self._show(connection.roster)

    def close(self) -> None:
        """Forget the other hosts: this one has left the team."""
        self.remote.replace(())
        self._leases.keep_local()
        with suppress(OSError):
            remove_kept()

    def _is_due(self, connection: TeamConnection) -> bool:
        since = monotonic() - self._read_at
        if monotonic() - self._read_all_at >= READ_INTERVAL:
            return True
        return connection.relay.has_lease_news and since >= _interval(connection)

    def _read(self, connection: TeamConnection, *, everything: bool) -> None:
        known = {} if everything else {project: read.version for project, read in self._reads.items()}
        board = connection.relay.leases(known=known)
        self._read_at = monotonic()
        if everything:
            self._reads, self._read_all_at = {}, self._read_at
            self._is_changed = True  # somebody may have changed our rows
        self._note(board)
        self.last_read = time()
        before = self.remote.version
        self._show(connection.roster)
        if self.remote.version != before:
            self._keep(board.now)

    def _keep(self, relay_now: float) -> None:
        """Write down what other hosts hold. A disk that is full keeps nobody from knowing it now."""
        rows = tuple(row for row, _, lease in self._verified.values() if lease is not None)
        with suppress(OSError):
            write_kept(KeptLeases(offset=relay_now - time(), rows=rows))

    def _note(self, board: LeaseBoard) -> None:
        shift = now() - board.now
        for project, version in board.versions.items():
            rows = tuple(one for one in board.leases if one.project == project)
            before = self._reads.get(project)
            # What differs by less is the network: the same time keeps tables that were made with it.
            same = before is not None and abs(before.shift - shift) < _SAME_TIME
            self._reads[project] = _Read(version, rows, before.shift if before is not None and same else shift)

    def _show(self, roster: Roster) -> None:
        """Put the leases of the other members where events find them."""
        self._trust = roster.trust
        found = [self._others(roster, read) for read in self._reads.values()]
        present = {(row.host, row.id) for read in self._reads.values() for row in read.rows}
        self._verified = {key: value for key, value in self._verified.items() if key in present}
        self.remote.replace([lease for leases in found for lease in leases])

    def _others(self, roster: Roster, read: _Read) -> list[RemoteLease]:
        """Return the leases of a project that other members have signed."""
        found = []
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
                found.append(msgspec.structs.replace(lease, ends=round(ends, 3)))
        return found

    def _look(self, connection: TeamConnection, projects: Sequence[str]) -> tuple[LeaseBoard, list[RemoteLease]]:
        """Return the leases of projects as they are now, and those of other members among them."""
        roster, relay = connection.roster, connection.relay
        own = roster.membership
        if roster.state(own.host) != "member":
            raise RelayRefused(
                "this host is not confirmed, so its leases count for nobody; "
                f"on a member, run: fairlead team confirm {own.name}"
            )
        board = relay.leases(projects=projects)
        shift = now() - board.now
        reads = [
            _Read(version, tuple(one for one in board.leases if one.project == project), shift)
            for project, version in board.versions.items()
        ]
        return board, [lease for read in reads for lease in self._others(roster, read)]

    def _synchronize(self, connection: TeamConnection, *, is_read: bool = False) -> None:
        """Remove from the relay what is not held here, and put there again what it has lost."""
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
        """Put a lease on the relay again, unless its time is up there or another host has taken it meanwhile."""
        grant = lease.grant
        assert grant is not None, "it is one of the team"  # noqa: S101
        wanted = WantedLease(
            path=lease.path, folder=lease.folder, shared=lease.shared, why=lease.why, until=lease.until, grant=grant
        )
        for _ in range(_RESTORES):
            board, others = self._look(connection, [grant.project])
            if grant.until <= board.now:
                self._leases.release([lease])
                return
            against = table_of(others, lease.root).against(wanted, lease.holder)
            if against:
                self._lose(lease, against[0])
                return
            name = self._leases.name_of(lease.holder)
            if connection.relay.take_leases([sign_wanted(connection.roster, wanted, name)], board.versions):
                return

    def _lose(self, lease: Lease, other: Lease) -> None:
        self._leases.release([lease])
        name, title = one_line(self._leases.name_of(other.holder)), one_line(lease.title, 300)
        self._leases.tell(
            lease.holder,
            f"You have lost your lease on {title}",
            f"The relay of the team had lost it, and {name} has taken one on the same files since. "
            f'Before you go on: fairlead send {name} --request "May I change {title}?"',
        )


def _interval(connection: TeamConnection) -> float:
    """Return the least time between two reads: what all hosts read of all hosts grows with the square of them."""
    return min(READ_INTERVAL, max(_SHORTEST_INTERVAL, len(connection.roster.hosts) / _HOSTS_A_SECOND))
