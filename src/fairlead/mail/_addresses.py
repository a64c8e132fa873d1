"""Names of agents and topics, and the recipients that an address stands for.

Names are pronounceable, easy to type, and never ambiguous.
"""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

from fairlead.mail._errors import BadMessage, BadName, NobodyThere, NoSuchAgent, TooLarge
from fairlead.mail._types import FAIRLEAD, MAX_RECIPIENTS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from fairlead.mail._directory import AgentDirectory
    from fairlead.mail._types import Agent

EVERYONE: Final = "everyone"
MAX_NAME_LENGTH: Final = 40

_MAX_ATTEMPTS = 64
"""How many pairs of words are tried before a number is appended to the last pair."""
_RESERVED = {
    *("all", "anybody", "anyone", "everybody", "everyone", "fairlead", "human", "me", "nobody", "person", "script"),
    *("self", "system", "user", "you"),
}
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9._-]{{0,{MAX_NAME_LENGTH - 1}}}")
_TOPIC = re.compile(r"[a-z0-9][a-z0-9._/-]{0,49}")
_MAX_QUOTED_LENGTH = 60


def generate_name(session: str, taken: Container[str]) -> str:
    """Return a name that is not in `taken`, such as `calm-otter`.

    The name is derived from the session id, so the same id gives the same name as long as that is free.
    """
    seed = session.encode("utf-8", "surrogatepass")
    name = ""
    for attempt in range(_MAX_ATTEMPTS):
        number = int.from_bytes(sha256(b"%d %b" % (attempt, seed)).digest()[:8], "big")
        rest, adjective = divmod(number, len(ADJECTIVES))
        name = f"{ADJECTIVES[adjective]}-{NOUNS[rest % len(NOUNS)]}"
        if name not in taken:
            return name
    return next(numbered for suffix in count(2) if (numbered := f"{name}-{suffix}") not in taken)


def subagent_kind(agent_type: str) -> str:
    """Return a subagent's type as its name contains it: `Code Review` → `code-review`.

    At most `MAX_NAME_LENGTH` characters; `agent` if the type contains no ASCII letter or digit.
    """
    kind = re.sub(r"[^a-z0-9]+", "-", agent_type.lower()).strip("-")
    return kind[:MAX_NAME_LENGTH].rstrip("-") or "agent"


def normalize_name(name: str) -> str:
    """Return a name in the form in which names are compared: stripped and case-folded."""
    return name.strip().casefold()


def validate_name(name: str) -> str:
    """Return a requested name without surrounding whitespace. Raises `BadName` if it is malformed or reserved."""
    requested = name.strip()
    if not _NAME.fullmatch(requested):
        raise BadName(
            f"{quote(name)} is not a valid name; use up to {MAX_NAME_LENGTH} letters, digits, '-', '_' and '.', "
            "starting with a letter"
        )
    if re.sub(r"[^a-z]", "", requested.lower()) in _RESERVED:
        raise BadName(f"{quote(name)} is reserved, so that no agent is mistaken for another; choose another name")
    return requested


def validate_topic(topic: str) -> str:
    """Return the name of a topic in lower case and without its `#`. Raises `BadName` if it is malformed."""
    name = normalize_name(topic).removeprefix("#")
    if not _TOPIC.fullmatch(name):
        raise BadName(
            f"{quote(topic)} is not a valid topic; use up to 50 letters, digits, '-', '_', '.' and '/', "
            "starting with a letter or a digit"
        )
    return name


def quote(text: str) -> str:
    """Return untrusted text as one quoted line of limited length for an error message."""
    return repr(text if len(text) <= _MAX_QUOTED_LENGTH else f"{text[:_MAX_QUOTED_LENGTH]}…")


class TopicIndex:
    """The topics of this host and the ids of their subscribers. A topic exists as long as it has a subscriber."""

    def __init__(self, subscriptions: Iterable[tuple[str, int]]) -> None:
        """Add the stored subscriptions, as pairs of a topic and an agent's id."""
        self._subscribers: dict[str, dict[int, None]] = {}
        for topic, agent in subscriptions:
            self.add(topic, agent)

    def names(self) -> list[str]:
        """Return the topics, sorted."""
        return sorted(self._subscribers)

    def subscribers(self, topic: str) -> list[int]:
        """Return the ids of a topic's subscribers, in the order in which they subscribed; empty if it has none."""
        return list(self._subscribers.get(topic, ()))

    def add(self, topic: str, agent: int) -> None:
        """Subscribe the agent with that id to a topic."""
        self._subscribers.setdefault(topic, {})[agent] = None

    def remove(self, topic: str, agent: int) -> None:
        """Remove the agent with that id from a topic. Does nothing if it is not subscribed."""
        subscribers = self._subscribers.get(topic, {})
        subscribers.pop(agent, None)
        if not subscribers:
            self._subscribers.pop(topic, None)

    def remove_agent(self, agent: int) -> None:
        """Remove the agent with that id from all topics."""
        for topic in self.names():
            self.remove(topic, agent)


class OtherHosts(Protocol):
    """Finds agents of other hosts. `TeamHosts` implements it."""

    def resolve(self, written: str, unknown: NoSuchAgent) -> Agent:
        """Return the agent on another host for the address `written`.

        Raises `unknown`, the error of the search on this host, or a more specific `NoSuchAgent` if there is none.
        """

    def subscribers(self, topic: str) -> list[Agent]:
        """Return the living subscribers of a topic on other hosts."""

    def other_recipients(self, message: int) -> list[int]:
        """Return the ids of the recipients without a delivery on this host, for a message from another host.

        Empty for a message of this host.
        """


class AddressResolver:
    """Finds the recipients of an address."""

    other_hosts: OtherHosts | None = None
    """Finds agents of other hosts; None until the mail of a team is used."""

    def __init__(self, agents: AgentDirectory, topics: TopicIndex) -> None:
        self._agents = agents
        self._topics = topics

    def resolve(self, sender: Agent, to: Sequence[str], project: str) -> tuple[tuple[str, ...], tuple[Agent, ...]]:
        """Return the addresses `to` in their normal form, and all their recipients without duplicates.

        `project` determines the recipients of `everyone` if the sender has no project. Raises `MailError` if `to` is
        empty, an address is invalid, names the sender or has no recipient, or there are more than `MAX_RECIPIENTS`.
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
        """Return the agent called `written`, on this host or another. Raises `NoSuchAgent` if there is none."""
        try:
            return self._agents.by_name(written)
        except NoSuchAgent as unknown:
            if self.other_hosts is None:
                raise
            return self.other_hosts.resolve(written, unknown)

    def _subscribers(self, sender: Agent, topic: str) -> list[Agent]:
        """Return the living subscribers of a topic except the sender. Raises `NobodyThere` if there are none.

        Ended agents are left out, because the mail would be outdated when they are resumed.
        """
        agents = [self._agents.get(number) for number in self._topics.subscribers(topic)]
        living = [agent for agent in agents if agent and not agent.ended and agent.id != sender.id]
        if self.other_hosts is not None:
            living += self.other_hosts.subscribers(topic)
        if not living:
            raise NobodyThere(f"#{topic}: no other agent is subscribed; `fairlead topics` lists topics and subscribers")
        return living

    def _project_agents(self, sender: Agent, project: str) -> list[Agent]:
        """Return the living sessions of a project except the sender. Raises `NobodyThere` if there are none.

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


# -- the words of generated names: short, easy to say and to distinguish, and friendly -------------------

ADJECTIVES: Final = tuple(
    """
    able agile airy alert alpine amber ample apt arctic autumn azure balmy bold brave breezy brief bright brisk broad
    bronze calm candid cedar cheery civil clear clever cobalt copper coral cosy crimson crisp curious dapper daring deft
    dusky eager early earnest easy elated ember even fabled fair faithful fancy fine fleet fluent fond frank fresh
    frosty gentle giddy glad gleaming golden grand green handy happy hardy hazel hearty honest humble indigo ivory jade
    jaunty jolly jovial keen kind lilac lively loyal lucid lucky lunar maple mellow merry mild minty misty modest mossy
    neat nimble noble olive opal patient pearly plucky polite proud quick quiet quirky rapid ready royal ruby rustic
    sage sandy scarlet serene sharp shiny silent silken silver simple sleek smooth snowy solar solid spry stable steady
    sturdy subtle sunny swift tame teal tender thrifty tidy tranquil trusty upbeat velvet vivid warm wise witty woven
    young zesty
    """.split()  # noqa: SIM905 - a list would take a hundred lines
)

NOUNS: Final = tuple(
    """
    acorn alder anchor antler apple arbor aspen aster atlas badger barley basin beacon beaver birch bison bloom breeze
    bridge brook canyon canoe cactus candle castle cedar cliff clover comet compass condor cove crane creek cricket
    crystal cypress daisy dawn delta dolphin dove dune eagle elk elm falcon fern ferry finch fjord flute forest fox
    garden geyser glacier glade grove gull harbor hare harp hawk hazel heron hill island iris ivy jasmine kestrel kite
    koala lagoon lake lantern lark laurel lemur lily linden lotus lynx magnolia mango maple marlin marten meadow mesa
    meteor mill moon moose moth nectar newt oak oasis ocean orbit orchid oriole osprey otter owl panda parrot pebble
    pelican pepper petal pine planet plum pond poplar prairie puffin quail quartz rabbit raven reef ridge river robin
    rocket rowan sail salmon seal shore sparrow spring spruce star stream summit sunset swan thistle tiger trail tulip
    turtle valley violet walnut walrus willow wren zebra
    """.split()  # noqa: SIM905 - a list would take a hundred lines
)
