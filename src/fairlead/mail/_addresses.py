"""Resolves addresses to recipients: names, topics, everyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail._errors import BadMessage, NobodyThere, TooLarge
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
        self._subscribers.setdefault(topic, {})[agent] = None

    def remove(self, topic: str, agent: int) -> None:
        """Remove a subscriber."""
        subscribers = self._subscribers.get(topic, {})
        subscribers.pop(agent, None)
        if not subscribers:
            self._subscribers.pop(topic, None)

    def remove_agent(self, agent: int) -> None:
        """Remove an agent from all topics."""
        for topic in self.names():
            self.remove(topic, agent)


class AddressResolver:
    """Finds the recipients of an address."""

    def __init__(self, agents: AgentDirectory, topics: TopicIndex) -> None:
        """Use these agents and topics."""
        self._agents = agents
        self._topics = topics

    def resolve(self, sender: Agent, to: Sequence[str], project: str) -> tuple[tuple[str, ...], tuple[Agent, ...]]:
        """Return the normalized addresses and each recipient once. Raises `MailError` for an invalid address."""
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
        agent = self._agents.by_name(written)
        if agent.id == sender.id:
            raise BadMessage(f"{agent.name} is the sender; name another agent")
        if agent.id == FAIRLEAD.id:
            raise NobodyThere(f"{agent.name} sends notices and receives no mail; name another agent")
        return agent.name, (agent,)

    def _subscribers(self, sender: Agent, topic: str) -> list[Agent]:
        """Return the living subscribers: an ended one would only find outdated mail when it is resumed."""
        agents = [self._agents.get(number) for number in self._topics.subscribers(topic)]
        living = [agent for agent in agents if agent and not agent.ended and agent.id != sender.id]
        if not living:
            raise NobodyThere(f"#{topic}: no other agent is subscribed; `fairlead topics` lists topics and subscribers")
        return living

    def _project_agents(self, sender: Agent, project: str) -> list[Agent]:
        """Return the project's sessions, without subagents: each has one task, and mail would reopen its answer."""
        agents = [
            agent
            for agent in self._agents.all()
            if not (agent.ended or agent.parent) and agent.project == project and agent.id != sender.id
        ]
        if not agents:
            where = f" in {project}" if project else ""
            raise NobodyThere(f"everyone: there is no other agent{where}; `fairlead agents` lists agents")
        return agents
