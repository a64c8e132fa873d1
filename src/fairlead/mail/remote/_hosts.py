"""The other hosts of the team: what is known of their agents and topics, and how their names resolve.

An agent of another host becomes a row of the storage when mail first names it. Changes are made under the lock of the
cache.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.mail._errors import NoSuchAgent
from fairlead.mail._names import normalize_name, quote
from fairlead.mail._storage import Alias
from fairlead.mail._types import FAIRLEAD, FIRST_ID, SCRIPT, USER, Agent
from fairlead.mail.remote._parcels import AgentNews, Party, decode_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.mail._directory import AgentDirectory
    from fairlead.mail._storage import HostRecord, MailStorage
    from fairlead.mail.remote._storage import TeamStorage

_FIXED = {agent.id: agent.name for agent in (USER, FAIRLEAD, SCRIPT)}
_FIXED_IDS = {normalize_name(name): number for number, name in _FIXED.items()}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}(/[a-z0-9][a-z0-9-]{0,60})?")
_OUTSIDE = frozenset({"pending", "removed"})
"""States of hosts to which no mail goes."""
_MAX_LISTED = 8
_decode_parties = msgspec.json.Decoder(tuple[Party, ...]).decode


class HostNews:
    """What is known of one host."""

    def __init__(self, record: HostRecord) -> None:
        """Index the newest news."""
        self.record = record
        snapshot = decode_snapshot(record.snapshot)
        self.id, self.name, self.state, self.snapshot = record.host, record.name, record.state, record.snapshot
        self.agents = {one.id: one for one in snapshot.agents}
        self.topics = {normalize_name(name): ids for name, ids in snapshot.topics.items()}
        self.numbers = {normalize_name(name): one.id for one in snapshot.agents for name in one.formers}
        """Ids by current and former name."""
        self.numbers |= {normalize_name(one.name): one.id for one in snapshot.agents}
        self.numbers |= _FIXED_IDS

    @property
    def can_be_addressed(self) -> bool:
        """Whether mail goes to it."""
        return self.state not in _OUTSIDE

    def is_alive(self, number: int) -> bool:
        """Return whether an agent has not ended, by the newest news."""
        return number in self.agents and not self.agents[number].ended


class TeamHosts:
    """The other hosts, and the agents on them."""

    def __init__(
        self, storage: MailStorage, team: TeamStorage, agents: AgentDirectory, now: Callable[[], float]
    ) -> None:
        """Use this storage, directory and clock."""
        self._storage = storage
        self._team = team
        self._agents = agents
        self._now = now
        self._hosts: dict[str, HostNews] = {}
        self.local_id = ""
        self.local_name = ""

    # -- lookups ---------------------------------------------------------------------------------------

    def get(self, host: str) -> HostNews | None:
        """Return what is known of a host."""
        return self._hosts.get(host)

    def name_of(self, host: str) -> str:
        """Return the name of a host; its id if it is not known."""
        return self._hosts[host].name if host in self._hosts else host

    def snapshot_of(self, host: str) -> bytes:
        """Return the newest snapshot of a host; empty if there is none."""
        return self._hosts[host].snapshot if host in self._hosts else b""

    def records(self) -> list[HostRecord]:
        """Return what is stored of the other hosts."""
        return [one.record for one in self._hosts.values()]

    def resolve(self, written: str, unknown: NoSuchAgent) -> Agent:
        """Return the agent of `name@host`, or of a name that only one other host has. Raises `NoSuchAgent`."""
        name, at, host_name = normalize_name(written).rpartition("@")
        if at:
            return self._on_host(name, host_name, written)
        found = [
            (host, host.numbers[host_name])
            for host in self._hosts.values()
            if host.can_be_addressed and host_name in host.numbers
        ]
        found = [one for one in found if one[0].is_alive(one[1])] or found
        if not found:
            raise self._with_nearest(host_name, unknown)
        if len(found) > 1:
            names = tuple(sorted(f"{_name_on(host, number)}@{host.name}" for host, number in found))
            raise NoSuchAgent(f"{quote(written)} is on several hosts; name one: {_listed(names)}", names)
        host, number = found[0]
        return self.ensure(host.id, number)

    def subscribers(self, topic: str) -> list[Agent]:
        """Return the living subscribers of a topic on other hosts."""
        return self.ensure_all(self._subscribers(topic))

    def subscriber_names(self, topic: str) -> list[str]:
        """Return the names of the living subscribers of a topic on other hosts."""
        return [
            f"{_name_on(self._hosts[host], one.id)}@{self._hosts[host].name}" for host, one in self._subscribers(topic)
        ]

    def topics(self) -> set[str]:
        """Return the topics that have living subscribers on other hosts."""
        names = {topic for host in self._hosts.values() if host.can_be_addressed for topic in host.topics}
        return {name for name in names if self._subscribers(name)}

    def other_recipients(self, message: int) -> list[int]:
        """Return the recipients of a message of another host that have no delivery here."""
        text = self._team.others_of(message)
        parties = _decode_parties(text) if text else ()
        here = [one.id for one in parties if one.host == self.local_id]
        known = [(one.host, AgentNews(one.id, one.name)) for one in parties if self._can_be_addressed(one.host)]
        return [*here, *(agent.id for agent in self.ensure_all(known))]

    # -- changes ---------------------------------------------------------------------------------------

    def load(self, records: Iterable[HostRecord]) -> None:
        """Start with what was stored."""
        for record in records:
            self._hosts[record.host] = HostNews(record)

    def forget(self) -> None:
        """Forget all hosts, and this one's name."""
        self._hosts.clear()
        self.local_id = self.local_name = ""

    def ids(self) -> list[str]:
        """Return the ids of the other hosts."""
        return list(self._hosts)

    def update(self, record: HostRecord) -> None:
        """Store the news of a host; agents that mail has named follow them, with their former names."""
        news = HostNews(record)
        changed: list[Agent] = []
        aliases: list[Alias] = []
        for agent in self._agents.remote_of(record.host):
            new = self._followed(agent, news)
            if new != agent:
                changed.append(new)
            if new.name != agent.name:
                aliases.append(Alias("name", normalize_name(agent.name), agent.id))
        self._team.save_host(record)
        if changed:
            self._storage.save_agents(changed, aliases)
        for agent in changed:
            self._agents.put(agent)
        self._hosts[record.host] = news

    def ensure(self, host: str, number: int, name: str = "", project: str = "") -> Agent:
        """Return the agent with an id on another host; stores it if mail names it for the first time."""
        return self.ensure_all([(host, self._hosts[host].agents.get(number) or AgentNews(number, name, project))])[0]

    def ensure_all(self, wanted: Iterable[tuple[str, AgentNews]]) -> list[Agent]:
        """Return agents of other hosts; stores those that mail names for the first time, in one transaction."""
        found: dict[tuple[str, int], Agent] = {}
        new: list[Agent] = []
        for host, described in wanted:
            key = (host, described.id)
            agent = self._agents.remote(*key) or found.get(key)
            if agent is None:
                agent = self._new_agent(self._hosts[host], described)
                new.append(agent)
            found[key] = agent
        if new:
            self._storage.save_agents(new)
        for agent in new:
            self._agents.put(agent)
        return list(found.values())

    # -- internal --------------------------------------------------------------------------------------

    def _on_host(self, name: str, host_name: str, written: str) -> Agent:
        if host_name == self.local_name:
            return self._agents.by_name(name)
        named = [one for one in self._hosts.values() if one.name == host_name]
        # A host that was removed may have had the name before.
        host = next((one for one in named if one.can_be_addressed), next(iter(named[::-1]), None))
        if host is None or not host.can_be_addressed:
            raise self._no_such_host(host_name, host)
        number = host.numbers.get(name)
        if number is not None:
            return self.ensure(host.id, number)
        former = self._agents.remote_by_name(written)
        if former is not None and former.host == host.id:
            return former
        nearest = _nearest(name, [host])
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        raise NoSuchAgent(f"no agent on {host.name} is called {quote(name)}{hint}", nearest)

    def _no_such_host(self, name: str, host: HostNews | None) -> NoSuchAgent:
        if host is not None:
            state = "was removed from the team" if host.state == "removed" else "is not confirmed yet"
            return NoSuchAgent(f"the host {host.name} {state}; no mail goes to it")
        known = sorted(one.name for one in self._hosts.values() if one.can_be_addressed)
        hint = f"; the others are {_listed(known)}" if known else ""
        return NoSuchAgent(f"no host of the team is called {quote(name)}{hint}")

    def _with_nearest(self, name: str, unknown: NoSuchAgent) -> NoSuchAgent:
        """Return the error about a name that nobody has, with similar names of other hosts if this one has none."""
        if unknown.nearest:
            return unknown
        nearest = _nearest(name, [host for host in self._hosts.values() if host.can_be_addressed])
        if not nearest:
            return unknown
        return NoSuchAgent(f"no agent is called {quote(name)}; did you mean {' or '.join(nearest)}?", nearest)

    def _can_be_addressed(self, host: str) -> bool:
        return host in self._hosts and self._hosts[host].can_be_addressed

    def _subscribers(self, topic: str) -> list[tuple[str, AgentNews]]:
        return [
            (host.id, host.agents[number])
            for host in self._hosts.values()
            if host.can_be_addressed
            for number in host.topics.get(topic, ())
            if host.is_alive(number)
        ]

    def _new_agent(self, host: HostNews, described: AgentNews) -> Agent:
        now = self._now()
        return Agent(
            id=self._agents.new_remote_id(),
            name=f"{_valid_name(described)}@{host.name}",
            session=described.session,
            project=described.project,
            created=now,
            seen=now,
            ended=described.ended,
            host=host.id,
            remote=described.id,
        )

    def _followed(self, agent: Agent, news: HostNews) -> Agent:
        """Return an agent as the news describe it; one that they do not name any more has ended."""
        described = news.agents.get(agent.remote)
        if news.state == "removed" or (described is None and news.agents and agent.remote >= FIRST_ID):
            return replace(agent, ended=agent.ended or self._now())
        if described is None:
            return agent
        return replace(
            agent,
            name=f"{_valid_name(described)}@{news.name}",
            session=described.session,
            project=described.project,
            ended=described.ended,
        )


def _name_on(host: HostNews, number: int) -> str:
    return _valid_name(host.agents.get(number) or AgentNews(number, ""))


def _valid_name(agent: AgentNews) -> str:
    """Return the name of an agent without its host: of ours alone, and that of a person for the person alone."""
    if agent.id in _FIXED:
        return _FIXED[agent.id]
    is_valid = _NAME.fullmatch(agent.name) and normalize_name(agent.name) not in _FIXED_IDS
    return agent.name if is_valid else f"agent-{agent.id}"


def _nearest(name: str, hosts: Iterable[HostNews]) -> tuple[str, ...]:
    """Return the names of living agents that look alike, with their hosts."""
    living = {
        _name_on(host, number).lower(): f"{_name_on(host, number)}@{host.name}"
        for host in hosts
        for number in host.agents
        if host.is_alive(number)
    }
    return tuple(living[one] for one in get_close_matches(name[:100], living, n=3, cutoff=0.6))


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f", and {len(listed) - _MAX_LISTED} more" if len(listed) > _MAX_LISTED else ""
    return ", ".join(listed[:_MAX_LISTED]) + more
