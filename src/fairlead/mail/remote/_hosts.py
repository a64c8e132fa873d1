"""The other hosts of the team with their agents and topics. Resolves names of the form `agent@host`.

An agent of another host is stored here when a message first names it. All changes are made under the lock of the cache.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.mail._addresses import normalize_name, quote
from fairlead.mail._errors import NoSuchAgent
from fairlead.mail._storage import Alias
from fairlead.mail._types import FAIRLEAD, FIRST_ID, SCRIPT, USER, Agent
from fairlead.mail.remote._packets import AgentAddress, AgentInfo, decode_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.mail._directory import AgentDirectory
    from fairlead.mail._storage import HostRecord, MailStorage
    from fairlead.mail.remote._storage import TeamStorage

_FIXED = {agent.id: agent.name for agent in (USER, FAIRLEAD, SCRIPT)}
_FIXED_IDS = {normalize_name(name): number for number, name in _FIXED.items()}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}(/[a-z0-9][a-z0-9-]{0,60})?")
_WITHOUT_MAIL = frozenset({"pending", "removed"})
"""The states of hosts to which no mail is sent."""
_MAX_LISTED = 8
_decode_addresses = msgspec.json.Decoder(tuple[AgentAddress, ...]).decode


class HostInfo:
    """Another host with its agents and topics, as its newest snapshot lists them."""

    def __init__(self, record: HostRecord) -> None:
        self.record = record
        snapshot = decode_snapshot(record.snapshot)
        self.id, self.name, self.state, self.snapshot = record.host, record.name, record.state, record.snapshot
        self.agents = {agent.id: agent for agent in snapshot.agents}
        self.topics = {normalize_name(name): ids for name, ids in snapshot.topics.items()}
        self.numbers = {normalize_name(name): agent.id for agent in snapshot.agents for name in agent.formers}
        """The ids of agents, on that host, by current and former name."""
        self.numbers |= {normalize_name(agent.name): agent.id for agent in snapshot.agents}
        self.numbers |= _FIXED_IDS

    @property
    def can_be_addressed(self) -> bool:
        """Whether mail may be sent to this host."""
        return self.state not in _WITHOUT_MAIL

    def is_alive(self, number: int) -> bool:
        """Return whether the newest snapshot lists a living agent with that id."""
        return number in self.agents and not self.agents[number].ended


class TeamHosts:
    """The other hosts, and the agents on them."""

    def __init__(
        self, storage: MailStorage, team: TeamStorage, agents: AgentDirectory, now: Callable[[], float]
    ) -> None:
        self._storage = storage
        self._team = team
        self._agents = agents
        self._now = now
        self._hosts: dict[str, HostInfo] = {}
        self.local_id = ""
        self.local_name = ""
        """The id and the name of this host; empty if it is in no team."""

    # -- lookups ---------------------------------------------------------------------------------------

    def get(self, host: str) -> HostInfo | None:
        """Return the host with that id; None if it is not known."""
        return self._hosts.get(host)

    def name_of(self, host: str) -> str:
        """Return the name of the host with that id; the id if the host is not known."""
        return self._hosts[host].name if host in self._hosts else host

    def snapshot_of(self, host: str) -> bytes:
        """Return the newest encoded snapshot of the host with that id; empty if there is none."""
        return self._hosts[host].snapshot if host in self._hosts else b""

    def records(self) -> list[HostRecord]:
        """Return the stored records of the other hosts."""
        return [host.record for host in self._hosts.values()]

    def resolve(self, written: str, unknown: NoSuchAgent) -> Agent:
        """Return the agent that is written as `name@host`, or as a name that only one other host has.

        Prefers living agents. Raises `unknown`, the error of the search on this host, or a more specific
        `NoSuchAgent` if there is no such agent, or several hosts have one.
        """
        name = normalize_name(written)
        if "@" in name:
            name, _, host_name = name.rpartition("@")
            return self._on_host(name, host_name, written)
        matches = [
            (host, host.numbers[name])
            for host in self._hosts.values()
            if host.can_be_addressed and name in host.numbers
        ]
        matches = [match for match in matches if match[0].is_alive(match[1])] or matches
        if not matches:
            raise self._with_nearest(name, unknown)
        if len(matches) > 1:
            names = tuple(sorted(f"{_name_on(host, number)}@{host.name}" for host, number in matches))
            raise NoSuchAgent(f"{quote(written)} is on several hosts; name one: {_listed(names)}", names)
        host, number = matches[0]
        return self.ensure(host.id, number)

    def subscribers(self, topic: str) -> list[Agent]:
        """Return the living subscribers of a topic on other hosts."""
        return self.ensure_all(self._subscribers(topic))

    def subscriber_names(self, topic: str) -> list[str]:
        """Return the names of the living subscribers of a topic on other hosts, in the form `name@host`."""
        return [
            f"{_name_on(self._hosts[host], one.id)}@{self._hosts[host].name}" for host, one in self._subscribers(topic)
        ]

    def topics(self) -> set[str]:
        """Return the topics that have living subscribers on other hosts."""
        names = {topic for host in self._hosts.values() if host.can_be_addressed for topic in host.topics}
        return {name for name in names if self._subscribers(name)}

    def other_recipients(self, message: int) -> list[int]:
        """Return the ids of the recipients without a delivery on this host, for a message from another host.

        Empty for a message of this host. Recipients on hosts to which no mail is sent are left out.
        """
        text = self._team.others_of(message)
        addresses = _decode_addresses(text) if text else ()
        here = [address.id for address in addresses if address.host == self.local_id]
        known = [
            (address.host, AgentInfo(address.id, address.name))
            for address in addresses
            if self._can_be_addressed(address.host)
        ]
        return [*here, *(agent.id for agent in self.ensure_all(known))]

    # -- changes ---------------------------------------------------------------------------------------

    def load(self, records: Iterable[HostRecord]) -> None:
        """Add hosts that are already stored. Called once, before other methods."""
        for record in records:
            self._hosts[record.host] = HostInfo(record)

    def clear(self) -> None:
        """Remove all hosts, and the id and name of this host."""
        self._hosts.clear()
        self.local_id = self.local_name = ""

    def ids(self) -> list[str]:
        """Return the ids of all known other hosts, including removed ones."""
        return list(self._hosts)

    def update(self, record: HostRecord) -> None:
        """Store the record of a host, and update the stored agents of that host. Their former names are kept."""
        info = HostInfo(record)
        changed: list[Agent] = []
        aliases: list[Alias] = []
        for agent in self._agents.remote_of(record.host):
            new = self._updated(agent, info)
            if new != agent:
                changed.append(new)
            if new.name != agent.name:
                aliases.append(Alias("name", normalize_name(agent.name), agent.id))
        self._team.save_host(record)
        if changed:
            self._storage.save_agents(changed, aliases)
        for agent in changed:
            self._agents.put(agent)
        self._hosts[record.host] = info

    def ensure(self, host: str, number: int, name: str = "", project: str = "") -> Agent:
        """Return the agent that has the id `number` on a known host. It is stored if mail names it for the first time.

        `name` and `project` are used if the host's snapshot does not list the agent.
        """
        return self.ensure_all([(host, self._hosts[host].agents.get(number) or AgentInfo(number, name, project))])[0]

    def ensure_all(self, wanted: Iterable[tuple[str, AgentInfo]]) -> list[Agent]:
        """Return agents of known hosts, without duplicates.

        `wanted` are pairs of a host's id and an agent. Agents that mail names for the first time are stored, in one
        transaction.
        """
        agents: dict[tuple[str, int], Agent] = {}
        new: list[Agent] = []
        for host, info in wanted:
            key = (host, info.id)
            agent = self._agents.remote(*key) or agents.get(key)
            if agent is None:
                agent = self._new_agent(self._hosts[host], info)
                new.append(agent)
            agents[key] = agent
        if new:
            self._storage.save_agents(new)
        for agent in new:
            self._agents.put(agent)
        return list(agents.values())

    # -- internal --------------------------------------------------------------------------------------

    def _on_host(self, name: str, host_name: str, written: str) -> Agent:
        if host_name == self.local_name:
            return self._agents.by_name(name)
        named = [candidate for candidate in self._hosts.values() if candidate.name == host_name]
        # A removed host may have had the same name.
        host = next((candidate for candidate in named if candidate.can_be_addressed), next(iter(named[::-1]), None))
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

    def _no_such_host(self, name: str, host: HostInfo | None) -> NoSuchAgent:
        if host is not None:
            state = "was removed from the team" if host.state == "removed" else "is not confirmed yet"
            return NoSuchAgent(f"the host {host.name} {state}; no mail goes to it")
        known = sorted(other.name for other in self._hosts.values() if other.can_be_addressed)
        hint = f"; the others are {_listed(known)}" if known else ""
        return NoSuchAgent(f"no host of the team is called {quote(name)}{hint}")

    def _with_nearest(self, name: str, unknown: NoSuchAgent) -> NoSuchAgent:
        """Return the error for an unknown name: `unknown`, or if it lists no names, one with names on other hosts."""
        if unknown.nearest:
            return unknown
        nearest = _nearest(name, [host for host in self._hosts.values() if host.can_be_addressed])
        if not nearest:
            return unknown
        return NoSuchAgent(f"no agent is called {quote(name)}; did you mean {' or '.join(nearest)}?", nearest)

    def _can_be_addressed(self, host: str) -> bool:
        return host in self._hosts and self._hosts[host].can_be_addressed

    def _subscribers(self, topic: str) -> list[tuple[str, AgentInfo]]:
        return [
            (host.id, host.agents[number])
            for host in self._hosts.values()
            if host.can_be_addressed
            for number in host.topics.get(topic, ())
            if host.is_alive(number)
        ]

    def _new_agent(self, host: HostInfo, info: AgentInfo) -> Agent:
        now = self._now()
        return Agent(
            id=self._agents.new_remote_id(),
            name=f"{_valid_name(info)}@{host.name}",
            session=info.session,
            project=info.project,
            created=now,
            seen=now,
            ended=info.ended,
            host=host.id,
            remote=info.id,
        )

    def _updated(self, agent: Agent, host: HostInfo) -> Agent:
        """Return an agent with the fields that its host's snapshot has for it.

        An agent that a snapshot does not list has ended, and so has every agent of a removed host.
        """
        info = host.agents.get(agent.remote)
        if host.state == "removed" or (info is None and host.agents and agent.remote >= FIRST_ID):
            return replace(agent, ended=agent.ended or self._now())
        if info is None:
            return agent
        return replace(
            agent,
            name=f"{_valid_name(info)}@{host.name}",
            session=info.session,
            project=info.project,
            ended=info.ended,
        )


def _name_on(host: HostInfo, number: int) -> str:
    return _valid_name(host.agents.get(number) or AgentInfo(number, ""))


def _valid_name(agent: AgentInfo) -> str:
    """Return the name of an agent without its host; `agent-ID` if it is invalid or the name of a fixed agent."""
    if agent.id in _FIXED:
        return _FIXED[agent.id]
    is_valid = _NAME.fullmatch(agent.name) and normalize_name(agent.name) not in _FIXED_IDS
    return agent.name if is_valid else f"agent-{agent.id}"


def _nearest(name: str, hosts: Iterable[HostInfo]) -> tuple[str, ...]:
    """Return up to three similar names of living agents, in the form `name@host`."""
    living = {
        _name_on(host, number).lower(): f"{_name_on(host, number)}@{host.name}"
        for host in hosts
        for number in host.agents
        if host.is_alive(number)
    }
    return tuple(living[match] for match in get_close_matches(name[:100], living, n=3, cutoff=0.6))


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f", and {len(listed) - _MAX_LISTED} more" if len(listed) > _MAX_LISTED else ""
    return ", ".join(listed[:_MAX_LISTED]) + more
