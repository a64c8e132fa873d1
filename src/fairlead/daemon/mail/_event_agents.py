"""Finds and creates the agents of events and sessions. A session keeps its agent after /clear and /resume."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from fairlead.events import SessionStart
from fairlead.sessions import project_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.events import Event
    from fairlead.mail import Agent, MessageService
    from fairlead.sessions import Session

_MAX_KNOWN = 20_000
_STARTS = frozenset({"startup", "resume"})
"""The sources of a `SessionStart` whose session may have an id that an agent had before a /clear."""
_AGENT_CONTINUES = frozenset({"clear", "fork"})
"""The end reasons of sessions whose agent continues in the next session."""
_KNOWN_WITHIN = 2.0
"""Seconds within which the tracker knows the session of a recorded event."""
_OTHER_RESUMED = "another session was resumed in its place"


class RecordedAgent(NamedTuple):
    """What a recorded event says about its agent."""

    agent_type: str
    """The type of the subagent; empty for a session."""
    folder: str
    """The folder of the project, or the working folder."""
    noted_at: float
    """When the event was recorded, by the monotonic clock."""


class EventAgents:
    """Finds and creates the agents of events.

    Call the methods in worker threads, except `is_known`, because they wait for the disk and the event loop.
    """

    def __init__(self, tracker: SessionTracker) -> None:
        self._tracker = tracker
        self.known: set[tuple[str, str]] = set()
        """Sessions and subagents for which `ensure` was called, with "" as the subagent of a session itself."""

    def of_event(self, service: MessageService, event: Event, request: HookRequest) -> Agent:
        """Return the agent of an event, alive; create or revive it if necessary."""
        session, agent_id = event.session_id, event.agent_id or ""
        is_start = False
        if isinstance(event, SessionStart):
            self._replace_predecessor(service, event, request)
            is_start = event.source in _STARTS
        else:
            agent = service.find_by_session(session, agent_id)
            if agent is not None and not agent.ended and (session, agent_id) in self.known:
                return agent
            if service.find_by_session(session) is None and (started := self._tracker.known(session)) is not None:
                self._continue_agent(service, started)
        is_known = service.find_by_session(session, agent_id) is not None and not isinstance(event, SessionStart)
        folder = "" if is_known else request.caller.project or event.cwd or request.cwd  # the folder may change later
        return self.ensure(service, session, agent_id, event.agent_type or "", folder, is_start=is_start)

    def ensure_recorded(self, service: MessageService, session: str, agent_id: str, recorded: RecordedAgent) -> bool:
        """Create or revive the agent of a recorded event if necessary. Return False if it is too early to do so.

        The tracker has to know the session first, because the session may continue that of an existing agent.
        """
        is_known = service.find_by_session(session, agent_id) is not None
        if service.find_by_session(session) is None:
            started = self._tracker.known(session)
            if started is not None:
                self._continue_agent(service, started)
            elif not self._tracker.all_replayed.is_set() or monotonic() - recorded.noted_at < _KNOWN_WITHIN:
                return False
        self.ensure(service, session, agent_id, recorded.agent_type, "" if is_known else recorded.folder)
        return True

    def _continue_agent(self, service: MessageService, session: Session) -> None:
        """Move the agent that was in the session's process, before one or several /clear, to the session."""
        for name in reversed(session.previous):
            before, agent = self._tracker.known(name), service.find_by_session(name)
            if before is None or before.end_reason != "clear":
                return
            if agent is not None:
                if agent.session == name:
                    service.change_session(name, session.id)
                return

    def ensure(
        self,
        service: MessageService,
        session: str,
        agent_id: str,
        agent_type: str,
        folder: str,
        *,
        is_start: bool = False,
    ) -> Agent:
        """Return the agent of a session, or of its subagent if `agent_id` is not empty; create or revive it if needed.

        The project of `folder` becomes that of the session's agents, unless `folder` is empty. `is_start` is as in
        `MessageService.ensure_agent`.
        """
        agent = service.ensure_agent(
            session, agent_id=agent_id, agent_type=agent_type, project=project_of(folder), is_start=is_start
        )
        if len(self.known) >= _MAX_KNOWN:
            self.known.clear()
        self.known.add((session, agent_id))
        return service.revive(agent) if agent.ended else agent

    def _replace_predecessor(self, service: MessageService, event: SessionStart, request: HookRequest) -> None:
        """Move or end the agent of the session that was in the same process before.

        After /clear, the agent is moved to the new session. After /resume, it is ended at once, because the resumed
        session may be one that the same agent had before a /clear.
        """
        if event.source not in {"clear", "resume"} or not request.caller.pid:
            return
        before = self._tracker.last_replaced((request.caller.pid, request.caller.start))
        if before is None or before.id == event.session_id or before.end_reason != event.source:
            return
        agent = service.find_by_session(before.id)
        if agent is None or agent.session != before.id:  # it has already moved
            return
        if event.source == "resume":
            service.end(agent, _OTHER_RESUMED)
        elif service.find_by_session(event.session_id) is None:
            service.change_session(before.id, event.session_id)

    @staticmethod
    def sync_sessions(service: MessageService, sessions: Iterable[Session]) -> None:
        """End the agents of sessions that have ended, and revive the agents of sessions that run again."""
        for session in sessions:
            root = session.id.removesuffix(f"/{session.agent_id}") if session.is_child else session.id
            agent = service.find_by_session(root, session.agent_id)
            if agent is None or agent.session != root:  # the agent continues in another session
                continue
            if session.ended is None and agent.ended:
                service.revive(agent)
            elif session.ended is not None and not agent.ended and session.end_reason not in _AGENT_CONTINUES:
                service.end(agent, session.end_reason or "it has ended")
