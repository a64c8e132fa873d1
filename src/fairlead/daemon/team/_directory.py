"""The other hosts: their newest snapshots, and how many packets to them are not acknowledged.

Written by the thread of the team and read by all threads: each value is replaced as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.daemon.team._snapshots import AgentStatus, RemoteHost, read_agents, read_sessions
from fairlead.team import verify_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._snapshots import AgentStatuses
    from fairlead.mail import Agent, MessageService
    from fairlead.team import HostSnapshot, HostState, SnapshotKind

_UNKNOWN = RemoteHost()
_CLOCK_TOLERANCE = 2.0


class TeamDirectory:
    """What this host knows about the other hosts."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, SnapshotKind], int] = {}
        """Host id and kind → the version of the snapshot that was read last."""
        self.members: dict[str, RemoteHost] = {}
        """By host id. Only members are in it."""
        self.names: dict[str, str] = {}
        """By host id: the name of each member, and of each other host that was ever listed."""
        self.unacknowledged: dict[str, tuple[int, float]] = {}
        """By host id: the number of packets that it has not acknowledged, and the time of the oldest."""
        self.noted = self.counted = 0
        """`noted` counts commits of data to other hosts. `counted` is its value when the packets were last counted."""
        self.last_seen: dict[str, float] = {}
        """By host id: the time at which the relay last saw the host, by the clock of this host."""
        self.waiting: dict[str, int] = {}
        """By host id: 1 if packets of the host wait until it is confirmed."""
        self._states: dict[str, HostState] = {}
        self.on_change: Callable[[], None] = lambda: None
        """Called in the thread of the team when a snapshot or the list of members has changed."""

    @property
    def unacknowledged_count(self) -> int:
        """How many packets are not acknowledged; at least one while a commit is not counted yet."""
        return sum(count for count, _ in self.unacknowledged.values()) or int(self.is_uncounted)

    @property
    def is_uncounted(self) -> bool:
        """Whether packets may have been added since `unacknowledged` was last computed."""
        return self.noted != self.counted

    # -- the thread of the team ------------------------------------------------------------------------

    def attach(self, service: MessageService, roster: Roster) -> None:
        """Set the identity of this host in its mail, and read the stored snapshots of the other hosts."""
        own = roster.membership
        service.team.set_local_host(own.host, own.name)
        for record in service.team.known_hosts():
            self.names[record.host] = record.name
            if record.state == "member":
                self._put(record.host, read_agents(record.snapshot), record.at)
        self.count(service)

    def update_hosts(self, service: MessageService, roster: Roster) -> None:
        """Store the names and the changed states of the other hosts in the mail. Messages to a removed host bounce."""
        for host, (name, state) in roster.known().items():
            if host == roster.membership.host or self._states.get(host) == state:
                continue
            # Its snapshots are read again: they were ignored if it was no member.
            self.known = {key: version for key, version in self.known.items() if key[0] != host}
            self.names[host] = name
            service.team.update_host(host, name, state)
            if state != "member":
                self.members = {key: remote for key, remote in self.members.items() if key != host}
                self.on_change()
            if state == "removed":
                service.team.give_up(host, f"{name} was removed from the team")
            self._states[host] = state

    def apply_snapshot(self, service: MessageService, roster: Roster, snapshot: HostSnapshot, offset: float) -> None:
        """Use the snapshot of a host if it is a member and has signed it.

        `offset` is how many seconds the relay's clock is ahead of this host's.
        """
        self.known[snapshot.host, snapshot.kind] = snapshot.version
        key = roster.trust.key(snapshot.host)
        if key is None or not verify_snapshot(snapshot, key, roster.membership.team):
            return
        at = snapshot.at - offset
        name = roster.name(snapshot.host)
        if snapshot.kind == "sessions":
            before = self.members.get(snapshot.host, _UNKNOWN)
            remote = read_sessions(snapshot.body, name, self.clock_shift(snapshot.host, offset), before)
            self._set(snapshot.host, msgspec.structs.replace(remote, at=at))
            return
        service.team.update_host(snapshot.host, name, "member", snapshot.body)
        self._put(snapshot.host, read_agents(snapshot.body), at)

    def count(self, service: MessageService) -> None:
        """Compute `unacknowledged` from the outbox."""
        self.unacknowledged = {target.target: (target.count, target.since) for target in service.team.targets()}

    def _put(self, host: str, snapshot: AgentStatuses, at: float) -> None:
        before = self.members.get(host, _UNKNOWN)
        self._set(host, msgspec.structs.replace(before, agents=snapshot.agents, offset=snapshot.offset, at=at))

    def _set(self, host: str, remote: RemoteHost) -> None:
        self.members = {**self.members, host: remote}
        self.on_change()

    def clock_shift(self, host: str, offset: float) -> float:
        """Return how many seconds the clock of a host is behind this host's; 0 if unknown or below the tolerance."""
        remote = self.members.get(host)
        shift = remote.offset - offset if remote is not None else 0.0
        return shift if abs(shift) > _CLOCK_TOLERANCE else 0.0

    # -- for all threads -------------------------------------------------------------------------------

    def agent(self, agent: Agent) -> AgentStatus | None:
        """Return the status of an agent of another host; `None` if it is unknown."""
        return self.members.get(agent.host, _UNKNOWN).agents.get(str(agent.remote))

    def id_of(self, name: str) -> str:
        """Return the id of the member with a name; "" if there is none."""
        return next((host for host in self.members if self.names.get(host) == name), "")

    def hosts(self) -> Iterable[tuple[str, RemoteHost]]:
        """Return the name and the data of each member, sorted by name.

        `at` of a member is the time at which the relay last saw it: until then its last snapshot was up to date.
        """
        rows = [
            (
                self.names.get(host, host[:8]),
                msgspec.structs.replace(remote, at=max(remote.at, self.last_seen.get(host, 0.0))),
            )
            for host, remote in self.members.items()
        ]
        return sorted(rows, key=lambda row: row[0])
