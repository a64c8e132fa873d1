"""From addresses to recipients: names, topics, everyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail._errors import BadMessage, NobodyThere, TooLarge
from fairlead.mail._names import EVERYONE, checked_topic, folded
from fairlead.mail._types import FAIRLEAD, MOST_RECIPIENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.mail._directory import AgentDirectory
    from fairlead.mail._topics import Topics
    from fairlead.mail._types import Agent


class AddressResolver:
    """Finds whom an address means."""

    def __init__(self, people: AgentDirectory, topics: Topics) -> None:
        """Name where to look."""
        self._people = people
        self._topics = topics

    def resolve(self, sender: Agent, to: Sequence[str], project: str) -> tuple[tuple[str, ...], tuple[Agent, ...]]:
        """Give the addresses as they are kept, and each recipient once; or say which address is wrong."""
        if not to:
            raise BadMessage("the message is to nobody; name at least one recipient")
        if len(to) > MOST_RECIPIENTS:
            raise TooLarge(f"a message may have {MOST_RECIPIENTS} recipients, not {len(to)}; write to a topic instead")
        addresses: dict[str, None] = {}
        recipients: dict[int, Agent] = {}
        for written in to:
            address, found = self._meant(sender, written, project)
            addresses[address] = None
            recipients.update((agent.id, agent) for agent in found)
        if len(recipients) > MOST_RECIPIENTS:
            raise TooLarge(f"a message may have {MOST_RECIPIENTS} recipients, and this would have {len(recipients)}")
        return tuple(addresses), tuple(recipients.values())

    def _meant(self, sender: Agent, written: str, project: str) -> tuple[str, Iterable[Agent]]:
        name = folded(written)
        if name.startswith("#"):
            topic = checked_topic(name)
            return f"#{topic}", self._listeners(sender, topic)
        if name == EVERYONE:
            return EVERYONE, self._everyone(sender, sender.project or project)
        if not name:
            raise BadMessage("a recipient's name is empty; name at least one recipient")
        agent = self._people.find(written)
        if agent.id == sender.id:
            raise BadMessage(f"{agent.name} is the sender itself; name somebody else")
        if agent.id == FAIRLEAD.id:
            raise NobodyThere(f"{agent.name} writes notices and reads no mail; name somebody else")
        return agent.name, (agent,)

    def _listeners(self, sender: Agent, topic: str) -> list[Agent]:
        """Whoever listens and lives: one that has ended would find only what is old when it comes back."""
        agents = [self._people.get(number) for number in self._topics.subscribers(topic)]
        found = [agent for agent in agents if agent and not agent.ended and agent.id != sender.id]
        if not found:
            raise NobodyThere(f"#{topic}: nobody else listens to it now; `fairlead topics` lists who listens to what")
        return found

    def _everyone(self, sender: Agent, project: str) -> list[Agent]:
        """The sessions of the project. Not their subagents: each has one task, and its answer would be opened again."""
        found = [
            agent
            for agent in self._people.everybody()
            if not (agent.ended or agent.parent) and agent.project == project and agent.id != sender.id
        ]
        if not found:
            where = f" in {project}" if project else ""
            raise NobodyThere(f"everyone: no other agent is there{where}; `fairlead agents` lists who is")
        return found
