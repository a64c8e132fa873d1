"""Who there is, in memory: agents by id, by name, by session, by parent. No I/O, no lock: one writer at a time.

Who only looks need not wait for the writer: every look is one step in a dict, and an agent is replaced, never changed.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._errors import NoSuchAgent
from fairlead.mail._names import folded, kind_of, speakable
from fairlead.mail._types import FAIRLEAD, FIRST_ID
from fairlead.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.mail._types import Agent


class AgentDirectory:
    """All agents, and the ways to them."""

    def __init__(self, agents: Iterable[Agent], sessions: Mapping[str, int], names: Mapping[str, int]) -> None:
        """Take agents, and the session ids and names that they had before."""
        self._by_id: dict[int, Agent] = {}
        self._by_name: dict[str, int] = {}
        self._by_place: dict[tuple[str, str], int] = {}
        """By session and agent id; "" is the session itself."""
        self._children: dict[int, dict[int, None]] = {}
        self._former_sessions = dict(sessions)
        self._former_names = dict(names)
        self._seen: dict[int, float] = {}
        self._unkept: dict[int, None] = {}
        """Those that were seen since the last `take_seen`."""
        for agent in agents:
            self.put(agent)
        self._next_id = max([FIRST_ID, *(number + 1 for number in self._by_id)])

    # -- to look ---------------------------------------------------------------------------------------

    def __contains__(self, name: object) -> bool:
        """Tell whether a name is taken, now or before, by anybody."""
        return isinstance(name, str) and (folded(name) in self._by_name or folded(name) in self._former_names)

    def get(self, number: int) -> Agent | None:
        """Give the agent of an id as it is now."""
        agent = self._by_id.get(number)
        at = self._seen.get(number)
        return agent if agent is None or at is None else replace(agent, seen=at)

    def current(self, agent: Agent) -> Agent:
        """Give an agent as it is now."""
        if (found := self.get(agent.id)) is None:
            raise NoSuchAgent(f"{quoted(agent.name)} is not kept any more: it ended long ago")
        return found

    def at(self, session: str, agent_id: str = "") -> Agent | None:
        """Give who is at a place, now or before a /clear."""
        if (number := self._by_place.get((session, agent_id))) is not None:
            return self.get(number)
        parent = self._by_id.get(self._former_sessions.get(session, 0))
        if parent is None or not agent_id:
            return parent and self.get(parent.id)
        number = self._by_place.get((parent.session, agent_id))
        return None if number is None else self.get(number)

    def is_former(self, session: str) -> bool:
        """Tell whether the agent of a session id goes by another one by now."""
        return (session, "") not in self._by_place and session in self._former_sessions

    def find(self, name: str) -> Agent:
        """Give the agent of a name, which may be a former one."""
        number = self._named(folded(name))
        agent = None if number is None else self.get(number)
        if agent is None:
            nearest = self._nearest(folded(name))
            hint = f"; did you mean {' or '.join(nearest)}?" if nearest else "; `fairlead agents` lists who is there"
            raise NoSuchAgent(f"nobody is called {quoted(name)}{hint}", nearest)
        return agent

    def everybody(self) -> list[Agent]:
        """Give sessions and subagents by name, the ended ones too."""
        found = [agent for number in list(self._by_id) if number >= FIRST_ID and (agent := self.get(number))]
        return sorted(found, key=lambda agent: folded(agent.name))

    def below(self, parent: int) -> list[Agent]:
        """Give the subagents of an agent."""
        return [agent for number in self._children.get(parent, ()) if (agent := self.get(number))]

    def family(self, agent: Agent) -> list[Agent]:
        """Give an agent and its subagents."""
        return [agent, *self.below(agent.id)]

    def name_for(self, session: str) -> str:
        """Choose a name for a session."""
        return speakable(session, self)

    def name_below(self, parent: Agent, agent_type: str) -> str:
        """Choose a name for a subagent: its kind, and a number that no other had."""
        start = f"{parent.name}/{kind_of(agent_type)}-"
        ends = [child.name.removeprefix(start) for child in self.below(parent.id) if child.name.startswith(start)]
        return f"{start}{max((int(end) for end in ends if end.isdecimal()), default=0) + 1}"

    # -- to change -------------------------------------------------------------------------------------

    def next_id(self) -> int:
        """Give an id that nobody ever had."""
        number, self._next_id = self._next_id, self._next_id + 1
        return number

    def put(self, agent: Agent) -> None:
        """Keep an agent in place of the one with its id; what it was called before leads to it."""
        old = self._by_id.get(agent.id)
        self._by_id[agent.id] = agent
        self._by_name[folded(agent.name)] = agent.id
        if agent.id >= FIRST_ID:
            self._by_place[agent.session, agent.agent_id] = agent.id
        if agent.parent:
            self._children.setdefault(agent.parent, {})[agent.id] = None
        if old is not None:
            self._leave(old, agent)

    def drop(self, number: int) -> None:
        """Forget an agent."""
        agent = self._by_id.pop(number, None)
        if agent is None:
            return
        self._by_name.pop(folded(agent.name), None)
        self._by_place.pop((agent.session, agent.agent_id), None)
        self._children.get(agent.parent, {}).pop(number, None)
        self._children.pop(number, None)
        self._seen.pop(number, None)
        self._unkept.pop(number, None)
        for former in (self._former_sessions, self._former_names):
            for key in [key for key, owner in former.items() if owner == number]:
                del former[key]

    def see(self, number: int, at: float, now: float) -> None:
        """Note a sign of life. An earlier one than the last is late, unless that was of a clock that ran ahead."""
        agent = self._by_id.get(number)
        if agent is None:
            return
        last = self._seen.get(number, agent.seen)
        if at > last or last > now:
            self._seen[number] = at
            self._unkept[number] = None

    def take_seen(self) -> list[tuple[int, float]]:
        """Give who was seen since the last time, and when."""
        unkept, self._unkept = self._unkept, {}
        return [(number, self._seen[number]) for number in unkept if number in self._seen]

    def give_back_seen(self, seen: Iterable[tuple[int, float]]) -> None:
        """Take back what could not be kept."""
        self._unkept.update(dict.fromkeys(number for number, _ in seen))

    # -- within ----------------------------------------------------------------------------------------

    def _leave(self, old: Agent, new: Agent) -> None:
        if folded(old.name) != folded(new.name):
            self._by_name.pop(folded(old.name), None)
            if not new.parent:
                self._former_names[folded(old.name)] = new.id
        if old.session != new.session:
            self._by_place.pop((old.session, old.agent_id), None)
            if not new.parent:
                self._former_sessions[old.session] = new.id

    def _named(self, name: str) -> int | None:
        if (number := self._by_name.get(name)) is not None:
            return number
        first, slash, rest = name.partition("/")
        parent = self._by_id.get(self._former_names.get(first, 0))
        if parent is None:
            return None
        return self._by_name.get(f"{folded(parent.name)}/{rest}") if slash else parent.id

    def _nearest(self, name: str) -> tuple[str, ...]:
        """Find names that look alike, of those who live."""
        living = {
            folded(agent.name): agent.name
            for agent in list(self._by_id.values())
            if not agent.ended and agent.id != FAIRLEAD.id
        }
        return tuple(living[match] for match in get_close_matches(name[:100], living, n=3, cutoff=0.6))
