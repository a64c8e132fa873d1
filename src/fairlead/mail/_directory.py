"""All agents in memory, by id, name, session and parent. There is no I/O and no lock.

Only one thread at a time may write. Readers need not wait for it, because each lookup is one access to a dict, and an
agent is replaced, never modified.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._addresses import generate_name, normalize_name, quote, subagent_kind
from fairlead.mail._errors import NoSuchAgent
from fairlead.mail._types import FAIRLEAD, FIRST_ID, FIRST_REMOTE_ID
from fairlead.text import replace_surrogates_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.mail._types import Agent


class AgentDirectory:
    """All agents and the indexes to find them.

    Agents of other hosts are found only by their id (`get`), and with `remote`, `remote_of` and `remote_by_name`.
    """

    def __init__(self, agents: Iterable[Agent], sessions: Mapping[str, int], names: Mapping[str, int]) -> None:
        """Add the agents. `sessions` has agents' ids by former session id, and `names` by former name."""
        self._by_id: dict[int, Agent] = {}
        self._by_name: dict[str, int] = {}
        self._by_session: dict[tuple[str, str], int] = {}
        """Ids of agents by session id and the client's id of the subagent, which is empty for the session itself."""
        self._children: dict[int, dict[int, None]] = {}
        self._former_sessions = dict(sessions)
        self._former_names = {name: owner for name, owner in names.items() if owner < FIRST_REMOTE_ID}
        self._remote: dict[tuple[str, int], int] = {}
        """Ids of agents of other hosts, by host and the id on that host."""
        self._remote_names = {name: owner for name, owner in names.items() if owner >= FIRST_REMOTE_ID}
        """Ids of agents of other hosts, by current and former names."""
        self._seen: dict[int, float] = {}
        self._unsaved: dict[int, None] = {}
        """Ids of agents that were active since the last `take_unsaved_seen`. The values are not used."""
        self.host_name = ""
        """The name of this host in its team; empty if it is in none."""
        for agent in agents:
            self.put(agent)
        self._next_id = max([FIRST_ID, *(number + 1 for number in self._by_id if number < FIRST_REMOTE_ID)])
        self._next_remote_id = max([FIRST_REMOTE_ID, *(number + 1 for number in self._by_id)])

    # -- lookups ---------------------------------------------------------------------------------------

    def __contains__(self, name: object) -> bool:
        """Return whether any agent of this host has or had that name, ignoring case."""
        if not isinstance(name, str):
            return False
        key = normalize_name(name)
        return key in self._by_name or key in self._former_names

    def get(self, number: int) -> Agent | None:
        """Return the current state of the agent with that id; None if there is no such agent."""
        agent = self._by_id.get(number)
        seen = self._seen.get(number)
        return agent if agent is None or seen is None else replace(agent, seen=seen)

    def current(self, agent: Agent) -> Agent:
        """Return the current state of an agent. Raises `NoSuchAgent` if it was deleted."""
        if (current := self.get(agent.id)) is None:
            raise NoSuchAgent(f"{quote(agent.name)} no longer exists: it ended long ago")
        return current

    def by_session(self, session: str, agent_id: str = "") -> Agent | None:
        """Return the agent of a session, or of its subagent if `agent_id` is not empty; None if there is no such agent.

        Session ids from before a /clear are found, too.
        """
        if not (session.isascii() and agent_id.isascii()):
            session, agent_id = replace_surrogates_in(session, agent_id)
        if (number := self._by_session.get((session, agent_id))) is not None:
            return self.get(number)
        parent = self._by_id.get(self._former_sessions.get(session, 0))
        if parent is None or not agent_id:
            return parent and self.get(parent.id)
        number = self._by_session.get((parent.session, agent_id))
        return None if number is None else self.get(number)

    def is_former_session(self, session: str) -> bool:
        """Return whether an agent had that session id before, and no agent has it now."""
        return (session, "") not in self._by_session and session in self._former_sessions

    def by_name(self, name: str) -> Agent:
        """Return the agent of this host that has or had a name, ignoring case.

        Raises `NoSuchAgent`, which lists similar names, if there is none.
        """
        key = normalize_name(name)
        number = self._id_of(key)
        agent = None if number is None else self.get(number)
        if agent is None:
            nearest = self._nearest(key)
            hint = f"; did you mean {' or '.join(nearest)}?" if nearest else "; `fairlead agents` lists agents"
            raise NoSuchAgent(f"no agent is called {quote(name)}{hint}", nearest)
        return agent

    def all(self) -> list[Agent]:
        """Return all sessions and subagents of this host, sorted by name, including ended ones."""
        numbers = [number for number in list(self._by_id) if FIRST_ID <= number < FIRST_REMOTE_ID]
        agents = [agent for number in numbers if (agent := self.get(number))]
        return sorted(agents, key=lambda agent: normalize_name(agent.name))

    def remote(self, host: str, number: int) -> Agent | None:
        """Return the agent that has the id `number` on another host; None if no message has named it."""
        return self._by_id.get(self._remote.get((host, number), 0))

    def remote_of(self, host: str) -> list[Agent]:
        """Return the agents of another host that messages have named."""
        return [self._by_id[number] for (owner, _), number in list(self._remote.items()) if owner == host]

    def remote_by_name(self, name: str) -> Agent | None:
        """Return the agent that has or had a name of the form `name@host`, on another host; None if there is none."""
        return self._by_id.get(self._remote_names.get(normalize_name(name), 0))

    def name_for_others(self, agent: Agent) -> str:
        """Return an agent's name for other hosts, `name@host`; without the host if this host is in no team."""
        return agent.name if agent.host or not self.host_name else f"{agent.name}@{self.host_name}"

    def former_names(self) -> dict[int, list[str]]:
        """Return the former names of the agents of this host, in lower case, by the agent's id."""
        names: dict[int, list[str]] = {}
        for name, owner in self._former_names.items():
            names.setdefault(owner, []).append(name)
        return names

    def subagents_of(self, parent: int) -> list[Agent]:
        """Return the subagents of the agent with that id, including ended ones."""
        return [agent for number in self._children.get(parent, ()) if (agent := self.get(number))]

    def with_subagents(self, agent: Agent) -> list[Agent]:
        """Return an agent, unchanged, followed by its subagents."""
        return [agent, *self.subagents_of(agent.id)]

    def new_session_name(self, session: str) -> str:
        """Return a name that no agent of this host has or had, for a new session."""
        return generate_name(session, self)

    def new_subagent_name(self, parent: Agent, agent_type: str) -> str:
        """Return a free name for a subagent, such as `calm-otter/explore-2`, from its parent, type and a number."""
        prefix = f"{parent.name}/{subagent_kind(agent_type)}-"
        names = [child.name for child in self.subagents_of(parent.id) if child.name.startswith(prefix)]
        suffixes = [name.removeprefix(prefix) for name in names]
        return f"{prefix}{max((int(suffix) for suffix in suffixes if suffix.isdecimal()), default=0) + 1}"

    # -- changes ---------------------------------------------------------------------------------------

    def new_id(self) -> int:
        """Return a new id for a session or subagent of this host."""
        number, self._next_id = self._next_id, self._next_id + 1
        return number

    def new_remote_id(self) -> int:
        """Return a new id for an agent of another host."""
        number, self._next_remote_id = self._next_remote_id, self._next_remote_id + 1
        return number

    def put(self, agent: Agent) -> None:
        """Add an agent, or replace the one with the same id.

        The former name and session id of an agent that is not a subagent still resolve to it.
        """
        old = self._by_id.get(agent.id)
        self._by_id[agent.id] = agent
        if agent.id >= FIRST_REMOTE_ID:
            self._remote[agent.host, agent.remote] = agent.id
            self._remote_names[normalize_name(agent.name)] = agent.id
            return
        self._by_name[normalize_name(agent.name)] = agent.id
        if agent.id >= FIRST_ID:
            self._by_session[agent.session, agent.agent_id] = agent.id
        if agent.parent:
            self._children.setdefault(agent.parent, {})[agent.id] = None
        if old is not None:
            self._keep_aliases(old, agent)

    def remove(self, number: int) -> None:
        """Remove the agent with that id, and its former names and session ids. Does nothing if there is none."""
        agent = self._by_id.pop(number, None)
        if agent is None:
            return
        if number >= FIRST_REMOTE_ID:
            self._remote.pop((agent.host, agent.remote), None)
            self._remote_names = {name: owner for name, owner in self._remote_names.items() if owner != number}
            return
        self._by_name.pop(normalize_name(agent.name), None)
        self._by_session.pop((agent.session, agent.agent_id), None)
        self._children.get(agent.parent, {}).pop(number, None)
        self._children.pop(number, None)
        self._seen.pop(number, None)
        self._unsaved.pop(number, None)
        for former in (self._former_sessions, self._former_names):
            for key in [key for key, owner in former.items() if owner == number]:
                del former[key]

    def mark_seen(self, number: int, at: float, now: float) -> None:
        """Record that an agent was active at the Unix time `at`. Does nothing if there is no such agent.

        A later recorded time is kept, except one after `now`: the clock was then set back, and `at` replaces it.
        """
        agent = self._by_id.get(number)
        if agent is None:
            return
        last = self._seen.get(number, agent.seen)
        if at > last or last > now:
            self._seen[number] = at
            self._unsaved[number] = None

    def take_unsaved_seen(self) -> list[tuple[int, float]]:
        """Return the agents that were active since the last call, as pairs of id and Unix time of the last activity."""
        unsaved, self._unsaved = self._unsaved, {}
        return [(number, self._seen[number]) for number in unsaved if number in self._seen]

    def restore_unsaved_seen(self, seen: Iterable[tuple[int, float]]) -> None:
        """Put back what `take_unsaved_seen` returned, because it could not be stored."""
        self._unsaved.update(dict.fromkeys(number for number, _ in seen))

    # -- internal --------------------------------------------------------------------------------------

    def _keep_aliases(self, old: Agent, new: Agent) -> None:
        old_key, new_key = normalize_name(old.name), normalize_name(new.name)
        if old_key != new_key:
            self._by_name.pop(old_key, None)
            if not new.parent:
                self._former_names[old_key] = new.id
        if old.session != new.session:
            self._by_session.pop((old.session, old.agent_id), None)
            if not new.parent:
                self._former_sessions[old.session] = new.id

    def _id_of(self, key: str) -> int | None:
        if (number := self._by_name.get(key)) is not None:
            return number
        first, slash, rest = key.partition("/")
        parent = self._by_id.get(self._former_names.get(first, 0))
        if parent is None:
            return None
        return self._by_name.get(f"{normalize_name(parent.name)}/{rest}") if slash else parent.id

    def _nearest(self, key: str) -> tuple[str, ...]:
        """Return up to three similar names of living agents of this host."""
        living = {
            normalize_name(agent.name): agent.name
            for agent in list(self._by_id.values())
            if not agent.ended and agent.id != FAIRLEAD.id and agent.id < FIRST_REMOTE_ID
        }
        return tuple(living[match] for match in get_close_matches(key[:100], living, n=3, cutoff=0.6))
