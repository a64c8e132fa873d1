"""Resolves addresses to recipients: names, topics, everyone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fairlead.mail._errors import BadMessage, NobodyThere, NoSuchAgent, TooLarge
from fairlead.mail._names import EVERYONE, normalize_name, validate_topic
from fairlead.mail._types import FAIRLEAD, MAX_RECIPIENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.mail._directory import AgentDirectory
    from fairlead.mail._types import Agent


class TopicIndex:
    """Topics and the ids of their subscribers, in memory. A topic exists as long as it has a subscriber."""

    def __init__(self, subscriptions: Iterable[tuple[str, int]]) -> None:
        """Start with the stored subscriptions."""
        self._subscribers: dict[str, dict[int, None]] = {}
        self.revision = 0
        """Changes with every subscription."""
        for topic, agent in subscriptions:
            self.add(topic, agent)

    def names(self) -> list[str]:
        """Return the topics, sorted."""
        return sorted(self._subscribers)

    def subscribers(self, topic: str) -> list[int]:
        """Return the subscribers of a topic, in the order in which they subscribed."""
        return list(self._subscribers.get(topic, ()))

    def add(self, topic: str, agent: int) -> None:
        """Add a subscriber."""
        self.revision += 1
        self._subscribers.setdefault(topic, {})[agent] = None

    def remove(self, topic: str, agent: int) -> None:
        """Remove a subscriber."""
        self.revision += 1
        subscribers = self._subscribers.get(topic, {})
        subscribers.pop(agent, None)
        if not subscribers:
            self._subscribers.pop(topic, None)

    def remove_agent(self, agent: int) -> None:
        """Remove an agent from all topics."""
        for topic in self.names():
            self.remove(topic, agent)


class OtherHosts(Protocol):
    """Finds agents of other hosts."""

    def resolve(self, written: str, unknown: NoSuchAgent) -> Agent:
        """Return the agent of another host with a name. Raises `unknown`, or a more specific `NoSuchAgent`."""

    def subscribers(self, topic: str) -> list[Agent]:
        """Return the living subscribers of a topic on other hosts."""

    def other_recipients(self, message: int) -> list[int]:
        """Return the recipients of a message of another host that have no delivery here."""


class AddressResolver:
    """Finds the recipients of an address."""

    other_hosts: OtherHosts | None = None
    """None if this host is in no team."""

    def __init__(self, agents: AgentDirectory, topics: TopicIndex) -> None:
        """Use these agents and topics."""
        self._agents = agents
        self._topics = topics

    def resolve(self, sender: Agent, to: Sequence[str], project: str) -> tuple[tuple[str, ...], tuple[Agent, ...]]:
        """Return the normalized addresses, and the recipients without duplicates.

        Raises `MailError` for an invalid address.
        """
        if not to:
            raise BadMessage("the message has no recipient; name at least one")
        if len(to) > MAX_RECIPIENTS:
            raise TooLarge(f"a message can have {MAX_RECIPIENTS} recipients, not {len(to)}; send it to a topic instead")
        addresses: dict[str, None] = {}
        recipients: dict[int, Agent] = {}
        for written in to:
            address, agents = self._resolve_one(sender, written, project)
            addresses[address] = None
            recipients.update((agent.id, agent) for agent in agents)
        if len(recipients) > MAX_RECIPIENTS:
            raise TooLarge(f"a message can have {MAX_RECIPIENTS} recipients, and this one would have {len(recipients)}")
        return tuple(addresses), tuple(recipients.values())

    def _resolve_one(self, sender: Agent, written: str, project: str) -> tuple[str, Iterable[Agent]]:
        name = normalize_name(written)
        if name.startswith("#"):
            topic = validate_topic(name)
            return f"#{topic}", self._subscribers(sender, topic)
        if name == EVERYONE:
            return EVERYONE, self._project_agents(sender, sender.project or project)
        if not name:
            raise BadMessage("the name of a recipient is empty; name at least one")
        agent = self._find(written)
        if agent.id == sender.id:
            raise BadMessage(f"{agent.name} is the sender; name another agent")
        if FAIRLEAD.id in (agent.id, agent.remote):
            raise NobodyThere(f"{agent.name} sends notices and receives no mail; name another agent")
        return agent.name, (agent,)

    def _find(self, written: str) -> Agent:
        """Return the agent with a name, on this host or another."""
        try:
            return self._agents.by_name(written)
        except NoSuchAgent as unknown:
            if self.other_hosts is None:
                raise
            return self.other_hosts.resolve(written, unknown)

    def _subscribers(self, sender: Agent, topic: str) -> list[Agent]:
        """Return the living subscribers. Ended ones are left out: the mail would be outdated when they are resumed."""
        agents = [self._agents.get(number) for number in self._topics.subscribers(topic)]
        living = [agent for agent in agents if agent and not agent.ended and agent.id != sender.id]
        if self.other_hosts is not None:
            living += self.other_hosts.subscribers(topic)
        if not living:
            raise NobodyThere(f"#{topic}: no other agent is subscribed; `fairlead topics` lists topics and subscribers")
        return living

    def _project_agents(self, sender: Agent, project: str) -> list[Agent]:
        """Return the living sessions of a project.

        Subagents are left out. Each has one task, and mail would make it continue after it has finished.
        """
        agents = [
            agent
            for agent in self._agents.all()
            if not (agent.ended or agent.parent) and agent.project == project and agent.id != sender.id
        ]
        if not agents:
            where = f" in {project}" if project else ""
            raise NobodyThere(f"everyone: there is no other agent{where}; `fairlead agents` lists agents")
        return agents
