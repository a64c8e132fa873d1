"""What is known of the other hosts: their news, and what is on its way to them.

Written by the thread of the team, read by all: each value is replaced as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.daemon.team._news import AgentNews, HostNews, read_agents, read_sessions
from fairlead.team import verify_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.team._roster import Roster
    from fairlead.mail import Agent, MessageService
    from fairlead.team import HostState, Snapshot, SnapshotKind

_NO_NEWS = HostNews()
_CLOCK_TOLERANCE = 2.0


class TeamDirectory:
    """The other hosts."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, SnapshotKind], int] = {}
        """The versions of the snapshots that were read."""
        self.news: dict[str, HostNews] = {}
        """By host id; of members only."""
        self.names: dict[str, str] = {}
        self.transit: dict[str, tuple[int, float]] = {}
        """How many parcels are on their way to a host, and since when the oldest."""
        self.noted = self.counted = 0
        """How often something was sent, and how much of that `transit` has."""
        self.heard: dict[str, float] = {}
        """When the relay last heard of each host, by our clock."""
        self.waiting: dict[str, int] = {}
        """Hosts whose parcels wait until they are confirmed."""
        self._states: dict[str, HostState] = {}
        self.on_news: Callable[[], None] = lambda: None
        """Called, in the thread of the team, when the news of a host have changed."""

    @property
    def on_its_way(self) -> int:
        """How many parcels are on their way; at least one while something was sent and is not counted yet."""
        return sum(count for count, _ in self.transit.values()) or int(self.is_uncounted)

    @property
    def is_uncounted(self) -> bool:
        """Whether something may have been sent since it was last counted."""
        return self.noted != self.counted

    # -- the thread of the team ------------------------------------------------------------------------

    def attach(self, service: MessageService, roster: Roster) -> None:
        """Set the identity of this host in its mail, and read what earlier news said."""
        own = roster.membership
        service.team.set_local_host(own.host, own.name)
        for record in service.team.known_hosts():
            self.names[record.host] = record.name
            if record.state == "member":
                self._put(record.host, read_agents(record.snapshot), record.at)
        self.count(service)

    def follow_roster(self, service: MessageService, roster: Roster) -> None:
        """Record in the mail who is in the team. What is on its way to a host that was removed bounces."""
        for host, (name, state) in roster.known().items():
            if host == roster.membership.host or self._states.get(host) == state:
                continue
            # What it told before it was a member is read again.
            self.known = {key: version for key, version in self.known.items() if key[0] != host}
            self.names[host] = name
            service.team.update_host(host, name, state)
            if state != "member":
                self.news = {key: news for key, news in self.news.items() if key != host}
                self.on_news()
            if state == "removed":
                service.team.give_up(host, f"{name} was removed from the team")
            self._states[host] = state

    def take_snapshot(self, service: MessageService, roster: Roster, snapshot: Snapshot, offset: float) -> None:
        """Take the news of a host, if it is a member and has signed them. `offset`: of the relay's clock to ours."""
        self.known[snapshot.host, snapshot.kind] = snapshot.version
        key = roster.trust.key(snapshot.host)
        if key is None or not verify_snapshot(snapshot, key, roster.membership.team):
            return
        at = snapshot.at - offset
        name = roster.name(snapshot.host)
        if snapshot.kind == "sessions":
            before = self.news.get(snapshot.host, _NO_NEWS)
            news = read_sessions(snapshot.body, name, self.clock_shift(snapshot.host, offset), before)
            self._set(snapshot.host, msgspec.structs.replace(news, at=at))
            return
        service.team.update_host(snapshot.host, name, "member", snapshot.body)
        self._put(snapshot.host, read_agents(snapshot.body), at)

    def count(self, service: MessageService) -> None:
        """Count what is on its way."""
        self.transit = {one.target: (one.count, one.since) for one in service.team.targets()}

    def _put(self, host: str, news: Any, at: float) -> None:
        before = self.news.get(host, _NO_NEWS)
        self._set(host, msgspec.structs.replace(before, agents=news.agents, offset=news.offset, at=at))

    def _set(self, host: str, news: HostNews) -> None:
        self.news = {**self.news, host: news}
        self.on_news()

    def clock_shift(self, host: str, offset: float) -> float:
        """Return how far the clock of a host is behind ours; 0 if they hardly differ, or nothing is known."""
        news = self.news.get(host)
        shift = news.offset - offset if news is not None else 0.0
        return shift if abs(shift) > _CLOCK_TOLERANCE else 0.0

    # -- for all threads -------------------------------------------------------------------------------

    def agent(self, agent: Agent) -> AgentNews | None:
        """Return what is known of an agent of another host."""
        return self.news.get(agent.host, _NO_NEWS).agents.get(str(agent.remote))

    def id_of(self, name: str) -> str:
        """Return the id of the member with a name; "" if there is none."""
        return next((host for host in self.news if self.names.get(host) == name), "")

    def hosts(self) -> Iterable[tuple[str, HostNews]]:
        """Return the name and the news of each member, by name. What a host told is true until it is not heard of."""
        rows = [
            (self.names.get(host, host[:8]), msgspec.structs.replace(news, at=max(news.at, self.heard.get(host, 0.0))))
            for host, news in self.news.items()
        ]
        return sorted(rows, key=lambda row: row[0])
