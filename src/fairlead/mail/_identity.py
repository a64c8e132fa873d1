"""How agents come to be, and keep who they are: through /clear, a new name, a restart of the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._errors import BadName, TooLarge
from fairlead.mail._names import checked_name, folded
from fairlead.mail._storage import Former
from fairlead.mail._types import FIRST_ID, Agent
from fairlead.text import quoted, replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage

LONGEST_STATUS = 20_000


class Identity:
    """Makes agents and changes what they are called. Each change is kept before it is seen."""

    def __init__(self, box: MailStorage, memory: MailCache, now: Callable[[], float]) -> None:
        """Name where agents are kept, and the clock."""
        self._box = box
        self._memory = memory
        self._people = memory.people
        self._now = now

    def known(self, session: str, agent_id: str) -> Agent | None:
        """Give the agent at a place, if there is one."""
        return self._people.at(replace_surrogates(session), replace_surrogates(agent_id))

    def agent_for(self, session: str, agent_id: str, agent_type: str, project: str, *, begins: bool) -> Agent:
        """Give the agent at a place, or make it."""
        session, agent_id, project = (
            replace_surrogates(session),
            replace_surrogates(agent_id),
            replace_surrogates(project),
        )
        if not session:
            raise BadName("a session without an id has no agent")
        found = self._people.at(session, agent_id)
        comes_back = begins and self._people.is_former(session)
        if found and not comes_back and (found.parent or project in ("", found.project)):
            return found
        with self._memory.turn():
            parent = self._session(session, project, begins=begins)
            return self._subagent(parent, agent_id, agent_type) if agent_id else parent

    def continue_as(self, old_session: str, new_session: str) -> Agent | None:
        """Let an agent go on under another session id; None if there is nothing to be done."""
        old_session, new_session = replace_surrogates(old_session), replace_surrogates(new_session)
        with self._memory.turn():
            agent = self._people.at(old_session)
            there = self._people.at(new_session)
            if agent is None or not new_session or (there is not None and not self._people.is_former(new_session)):
                return None
            return self._move(agent, new_session)

    def rename(self, agent: Agent, name: str) -> Agent:
        """Give a session another name, which nobody else had."""
        wished = checked_name(name)
        with self._memory.turn():
            agent = self._people.current(agent)
            if agent.parent or agent.id < FIRST_ID:
                raise BadName(f"{agent.name} cannot be renamed; a subagent is called by its session's name")
            if wished in self._people and self._people.find(wished).id != agent.id:
                raise BadName(f"{quoted(wished)} is another agent's name; choose another name")
            family = self._people.family(agent)
            renamed = [replace(one, name=wished + one.name[len(agent.name) :]) for one in family]
            self._keep(renamed, [Former("name", folded(agent.name), agent.id)])
            return renamed[0]

    def save(self, agent: Agent, status: str) -> Agent:
        """Keep what an agent wants to be told about itself."""
        if len(status) > LONGEST_STATUS:
            raise TooLarge(f"a status may have {LONGEST_STATUS} characters, not {len(status)}")
        with self._memory.turn():
            saved = replace(self._people.current(agent), saved=replace_surrogates(status))
            self._keep([saved])
            return saved

    def flush(self) -> None:
        """Keep who was seen."""
        with self._memory.turn():
            seen = self._people.take_seen()
            try:
                if seen:
                    self._box.see(seen)
            except BaseException:
                self._people.give_back_seen(seen)
                raise

    def _session(self, session: str, project: str, *, begins: bool) -> Agent:
        """Give the agent of a session. A former id that begins again gets its agent back, unless that lives on."""
        agent = self._people.at(session)
        if agent is not None and begins and self._people.is_former(session):
            agent = self._move(agent, session) if agent.ended else None
        if agent is None:
            return self._make(name=self._people.name_for(session), session=session, project=project)
        if project in ("", agent.project):
            return agent
        moved = [replace(one, project=project) for one in self._people.family(agent)]
        self._keep(moved)
        return moved[0]

    def _subagent(self, parent: Agent, agent_id: str, agent_type: str) -> Agent:
        if found := self._people.at(parent.session, agent_id):
            return found
        return self._make(
            name=self._people.name_below(parent, agent_type),
            session=parent.session,
            project=parent.project,
            parent=parent.id,
            agent_id=agent_id,
        )

    def _make(self, *, name: str, session: str, project: str, parent: int = 0, agent_id: str = "") -> Agent:
        now = self._now()
        agent = Agent(
            id=self._people.next_id(),
            name=name,
            session=session,
            project=project,
            parent=parent,
            agent_id=agent_id,
            created=now,
            seen=now,
        )
        self._keep([agent])
        return agent

    def _move(self, agent: Agent, session: str) -> Agent:
        moved = [replace(one, session=session) for one in self._people.family(agent)]
        self._keep(moved, [Former("session", agent.session, agent.id)])
        return moved[0]

    def _keep(self, agents: Sequence[Agent], former: Sequence[Former] = ()) -> None:
        self._box.put_agents(agents, former)
        for agent in agents:
            self._people.put(agent)
