"""One connection to the relay: reads from it and writes to it, when it opens and repeatedly after that.

Used only in the thread of the team.
"""

from __future__ import annotations

from time import monotonic, time
from typing import TYPE_CHECKING, Any

from fairlead.daemon.team._incoming import IncomingPackets
from fairlead.daemon.team._outgoing import OutgoingPackets
from fairlead.daemon.team._snapshots import digest
from fairlead.durations import DAY, HOUR
from fairlead.team import Changes, HostSnapshot, RelayRefused, sign_snapshot

if TYPE_CHECKING:
    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._notices import TeamNotices
    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._settings import CurrentSettings
    from fairlead.daemon.team._snapshots import LocalSnapshots
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.daemon.team.answers._remote_answers import RemoteAnswers
    from fairlead.daemon.team.leases._team_leases import TeamLeases
    from fairlead.mail import MessageService
    from fairlead.team import MemberStatus, SnapshotKind
    from fairlead.team.relay import Relay

READ_INTERVAL = 30.0
"""Seconds after which everything is read again, even without a notification."""
RETENTION_SECONDS = 30 * DAY
"""The minimum time for which the relay keeps packets to a host that does not connect."""
_PRUNE_INTERVAL = HOUR
_REGISTRY_INTERVAL = 1.0
"""The minimum number of seconds between two reads of the hosts and certificates."""
HOSTS_A_SECOND = 100
"""The maximum number of hosts that are read per second. Limited, because every host reads all others."""
_SNAPSHOT_READ_INTERVAL = 0.25
"""The minimum number of seconds between two reads of the other hosts' snapshots. It is longer in a large team."""
_SNAPSHOT_INTERVALS: dict[SnapshotKind, float] = {"agents": 0.5, "sessions": 2.0}
"""The minimum number of seconds between two snapshots of a kind that this host publishes."""
_URGENT_INTERVAL = 0.2
"""The minimum number of seconds between two snapshots `sessions` if a question to a person has changed."""


class TeamConnection:
    """Transfers packets, snapshots and leases between this host and the relay."""

    def __init__(  # noqa: PLR0917 - the parts of the service
        self,
        relay: Relay,
        service: MessageService,
        roster: Roster,
        directory: TeamDirectory,
        snapshots: LocalSnapshots,
        notices: TeamNotices,
        leases: TeamLeases,
        log: ConnectionLog,
        settings: CurrentSettings,
        answers: RemoteAnswers,
    ) -> None:
        self.relay = relay
        self._service = service
        self.roster = roster
        self._directory = directory
        self._snapshots = snapshots
        self._notices = notices
        self._leases = leases
        self._log = log
        self._settings = settings
        self._outgoing = OutgoingPackets(relay, service, roster, log)
        self._incoming = IncomingPackets(relay, service, roster, directory, notices, log, answers)
        self._published: dict[SnapshotKind, tuple[bytes, float]] = {}
        """By kind: the digest of the snapshot that was published last, and when it was last compared."""
        self._read_all_at = self._read_registry_at = self._read_snapshots_at = 0.0
        self._pruned_at = monotonic()
        self._is_registry_due = self._are_snapshots_due = True
        self._is_urgent = False
        self._unpublished: frozenset[SnapshotKind] = frozenset()
        """Snapshots that may have changed since they were published, and whose interval is not over yet."""

    def open(self) -> None:
        """Send and read everything, because notifications were lost while there was no connection."""
        self._read_all()
        self._leases.open(self)

    def run_once(self, *, changes: Changes, changed: bool, urgent: bool = False) -> None:
        """Send pending packets and snapshots, and read changes of other hosts.

        `changes` are those of other hosts. `changed`: agents or sessions of this host have changed. `urgent`: a
        question to a person has begun or ended.
        """
        is_moved = self._incoming.receive() if Changes.PACKETS in changes else False
        is_moved |= self._outgoing.push_new()
        if Changes.PROGRESS in changes:
            is_moved |= self._outgoing.note_progress()
        if Changes.REGISTRY in changes:
            self._is_registry_due = self._are_snapshots_due = True
        self._is_urgent |= urgent
        if changed or urgent or self._unpublished:
            self._publish()
        self._read_due()
        self._leases.run_once(self)
        if is_moved:
            self._directory.count(self._service)

    def _read_due(self) -> None:
        now = monotonic()
        if now - self._read_all_at > READ_INTERVAL:
            self._read_all()
        elif self._is_registry_due and now - self._read_registry_at > self._interval(_REGISTRY_INTERVAL):
            self._read_registry()
        elif self._are_snapshots_due and now - self._read_snapshots_at > self._interval(_SNAPSHOT_READ_INTERVAL):
            self._read_snapshots()

    def seconds_to_wait(self) -> float:
        """Return how many seconds to wait until the next run if nothing happens."""
        until = [self._read_all_at + READ_INTERVAL, monotonic() + self._leases.seconds_to_wait(self)]
        if self._is_registry_due:
            until.append(self._read_registry_at + self._interval(_REGISTRY_INTERVAL))
        if self._are_snapshots_due:
            until.append(self._read_snapshots_at + self._interval(_SNAPSHOT_READ_INTERVAL))
        until += [self._published[kind][1] + self._snapshot_interval(kind) for kind in self._unpublished]
        return max(0.0, min(until) - monotonic())

    # -- requests of a person --------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read the hosts and certificates now."""
        self._read_registry()

    def certify(self, name: str, status: MemberStatus, fingerprint: str) -> dict[str, Any]:
        """Confirm or remove the host `name`, and return its name and its state.

        Raises the errors of `Roster.certify`, which compares the fingerprint with the host's key.
        """
        host = self.roster.certify(self.relay, name, status, fingerprint)
        if status == "removed":
            self.relay.delete_host(host.id)  # so that another host can use its name
        self._directory.update_hosts(self._service, self.roster)
        if status == "removed":
            self._leases.leave(self, host.id)
        self._read_all()
        return {"name": host.name, "state": self.roster.state(host.id)}

    def leave(self) -> None:
        """Publish that this host has left the team, and delete the host and its leases from the relay."""
        self._leases.leave(self, self.roster.membership.host)
        self.relay.add_certificate(self.roster.sign_own("removed"))
        self.relay.delete_host(self.roster.membership.host)

    # -- reading ---------------------------------------------------------------------------------------

    def _read_all(self) -> None:
        self._read_registry()
        self._outgoing.push_missing()
        self._incoming.receive()
        self._outgoing.push_new()
        self._outgoing.note_progress()
        self._bounce_for_absent_hosts()
        self._prune()
        self._directory.count(self._service)
        self._publish()
        self._read_all_at = monotonic()
        self._log.last_read = time()

    def _interval(self, shortest: float) -> float:
        return min(READ_INTERVAL, max(shortest, len(self.roster.hosts) / HOSTS_A_SECOND))

    def _read_registry(self) -> None:
        self._is_registry_due = False
        if self.roster.read(self.relay):
            self._directory.update_hosts(self._service, self.roster)
            self._notices.notify_pending(self._service, self.roster)
        self._directory.last_seen = {host: self.roster.read_at - age for host, age in self.roster.ages.items()}
        own = self.roster.membership
        if self.roster.state(own.host) == "removed":
            self.relay.delete_host(own.host)  # connecting has registered it again
            raise RelayRefused(
                f"this host, {own.name}, was removed from the team; to join again: fairlead team leave --force, "
                "then fairlead team join"
            )
        self._read_snapshots()
        self._read_registry_at = monotonic()

    def _read_snapshots(self) -> None:
        self._are_snapshots_due = False
        for snapshot in self.relay.snapshots(self._directory.known):
            self._directory.apply_snapshot(self._service, self.roster, snapshot, self._log.offset)
        self._read_snapshots_at = monotonic()

    def _bounce_for_absent_hosts(self) -> None:
        """Bounce messages to hosts that have not connected for a long time."""
        days = self._settings.read().give_up_days
        time_span = f"{days} day{'' if days == 1 else 's'}"
        for host, age in self.roster.ages.items():
            if age > days * DAY and host in self._directory.unacknowledged:
                self._service.team.give_up(host, f"{self.roster.name(host)} was not heard of for {time_span}")

    def _prune(self) -> None:
        """Delete old packets and removed hosts from the relay, if the last time was long ago."""
        if monotonic() - self._pruned_at > _PRUNE_INTERVAL:
            kept = max(RETENTION_SECONDS, (self._settings.read().give_up_days + 1) * DAY)
            self.relay.prune(hosts_before=time() + self._log.offset - kept)
            for host in self.roster.others("removed"):
                self.relay.delete_host(host.id)
            self._pruned_at = monotonic()

    # -- publishing ------------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Publish the snapshots that have changed, unless they were published a moment ago."""
        waiting: set[SnapshotKind] = set()
        for kind in _SNAPSHOT_INTERVALS:
            interval = self._snapshot_interval(kind)
            last, at = self._published.get(kind, (b"", -interval))
            if monotonic() - at < interval:
                waiting.add(kind)
                continue
            body = self._body(kind)
            if digest(body) != last:
                self._publish_one(kind, body)
            self._published[kind] = digest(body), monotonic()
            if kind == "sessions":
                self._snapshots.questions.note_published()
            self._is_urgent &= kind != "sessions"
        self._unpublished = frozenset(waiting)

    def _snapshot_interval(self, kind: SnapshotKind) -> float:
        return _URGENT_INTERVAL if self._is_urgent and kind == "sessions" else _SNAPSHOT_INTERVALS[kind]

    def _publish_one(self, kind: SnapshotKind, body: bytes) -> None:
        own = self.roster.membership
        version = int((time() + self._log.offset) * 1000)  # by the relay's clock: this host's may be set back
        snapshot = HostSnapshot(host=own.host, kind=kind, version=version, body=body)
        self.relay.publish(sign_snapshot(snapshot, own.key, own.team))

    def _body(self, kind: SnapshotKind) -> bytes:
        return (
            self._snapshots.sessions()
            if kind == "sessions"
            else self._snapshots.agents(self._service, self._log.offset)
        )
