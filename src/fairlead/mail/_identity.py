"""Creates agents and keeps their identity across /clear, renames and restarts of the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._addresses import normalize_name, quote, validate_name
from fairlead.mail._errors import BadName, TooLarge
from fairlead.mail._storage import Alias
from fairlead.mail._types import FIRST_ID, Agent
from fairlead.text import replace_surrogates, replace_surrogates_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage

MAX_STATUS_LENGTH = 20_000


class IdentityService:
    """Creates and renames agents. Each change is stored before it becomes visible."""

    def __init__(self, storage: MailStorage, cache: MailCache, now: Callable[[], float]) -> None:
        self._storage = storage
        self._cache = cache
        self._agents = cache.agents
        self._now = now

    def ensure_agent(self, session: str, agent_id: str, agent_type: str, project: str, *, is_start: bool) -> Agent:
        """Return the agent of a session, or of its subagent if `agent_id` is not empty; create it if it does not exist.

        Moves the session's agents to `project` unless that is empty. With `is_start` the session starts now: if a
        living agent had its id before, the session gets a new agent. Raises `BadName` if `session` is empty.
        """
        session, agent_id, project = replace_surrogates_in(session, agent_id, project)
        if not session:
            raise BadName("a session without an id has no agent")
        agent = self._agents.by_session(session, agent_id)
        is_reused_id = is_start and self._agents.is_former_session(session)
        if agent and not is_reused_id and (agent.parent or project in ("", agent.project)):
            return agent
        with self._cache.locked():
            parent = self._ensure_session(session, project, is_start=is_start)
            return self._ensure_subagent(parent, agent_id, agent_type) if agent_id else parent

    def change_session(self, old_session: str, new_session: str) -> Agent | None:
        """Move an agent and its subagents to another session id, and return the agent.

        Returns None, and changes nothing, if the old session has no agent, or if the new id is empty or in use.
        """
        old_session, new_session = replace_surrogates_in(old_session, new_session)
        with self._cache.locked():
            agent = self._agents.by_session(old_session)
            other = self._agents.by_session(new_session)
            is_taken = other is not None and not self._agents.is_former_session(new_session)
            if agent is None or not new_session or is_taken:
                return None
            return self._move(agent, new_session)

    def rename(self, agent: Agent, name: str) -> Agent:
        """Rename the agent of a session and its subagents, and return the agent.

        Raises `BadName` if the name is invalid, if another agent has or had it, or if `agent` does not belong to a
        session itself.
        """
        requested = validate_name(name)
        with self._cache.locked():
            agent = self._agents.current(agent)
            if agent.parent or agent.id < FIRST_ID:
                raise BadName(f"{agent.name} cannot be renamed; a subagent takes its name from its session")
            if requested in self._agents and self._agents.by_name(requested).id != agent.id:
                raise BadName(f"{quote(requested)} is the name of another agent; choose another name")
            agents = self._agents.with_subagents(agent)
            renamed = [replace(member, name=requested + member.name[len(agent.name) :]) for member in agents]
            self._save(renamed, [Alias("name", normalize_name(agent.name), agent.id)])
            return renamed[0]

    def save_status(self, agent: Agent, status: str) -> Agent:
        """Store a text of which the agent is reminded after a compaction, and return the agent.

        Raises `TooLarge` if the text has more than `MAX_STATUS_LENGTH` characters.
        """
        if len(status) > MAX_STATUS_LENGTH:
            raise TooLarge(f"a status can have {MAX_STATUS_LENGTH} characters, not {len(status)}")
        with self._cache.locked():
            agent = replace(self._agents.current(agent), saved=replace_surrogates(status))
            self._save([agent])
            return agent

    def flush(self) -> None:
        """Store when agents were last active. After an error, the next call tries again."""
        with self._cache.locked():
            seen = self._agents.take_unsaved_seen()
            try:
                if seen:
                    self._storage.save_last_seen(seen)
            except BaseException:
                self._agents.restore_unsaved_seen(seen)
                raise

    def _ensure_session(self, session: str, project: str, *, is_start: bool) -> Agent:
        """Return the agent of a session; create it if it does not exist.

        A session that starts with a former id gets the agent of that id back; if this agent is alive, a new one.
        """
        agent = self._agents.by_session(session)
        if agent is not None and is_start and self._agents.is_former_session(session):
            agent = self._move(agent, session) if agent.ended else None
        if agent is None:
            return self._create(name=self._agents.new_session_name(session), session=session, project=project)
        if project in ("", agent.project):
            return agent
        moved = [replace(member, project=project) for member in self._agents.with_subagents(agent)]
        self._save(moved)
        return moved[0]

    def _ensure_subagent(self, parent: Agent, agent_id: str, agent_type: str) -> Agent:
        if agent := self._agents.by_session(parent.session, agent_id):
            return agent
        return self._create(
            name=self._agents.new_subagent_name(parent, agent_type),
            session=parent.session,
            project=parent.project,
            parent=parent.id,
            agent_id=agent_id,
        )

    def _create(self, *, name: str, session: str, project: str, parent: int = 0, agent_id: str = "") -> Agent:
        now = self._now()
        agent = Agent(
            id=self._agents.new_id(),
            name=name,
            session=session,
            project=project,
            parent=parent,
            agent_id=agent_id,
            created=now,
            seen=now,
        )
        self._save([agent])
        return agent

    def _move(self, agent: Agent, session: str) -> Agent:
        moved = [replace(member, session=session) for member in self._agents.with_subagents(agent)]
        self._save(moved, [Alias("session", agent.session, agent.id)])
        return moved[0]

    def _save(self, agents: Sequence[Agent], aliases: Sequence[Alias] = ()) -> None:
        self._storage.save_agents(agents, aliases)
        for agent in agents:
            self._agents.put(agent)
