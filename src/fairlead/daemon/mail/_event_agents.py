"""Which agent an event and a session belong to: a session keeps its agent through /clear and /resume."""

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
"""Sources of a session that begins in its process: an id that its agent had before a /clear is its own again."""
_AGENT_CONTINUES = frozenset({"clear", "fork"})
"""End reasons of a session whose agent goes on in the next one."""
_KNOWN_WITHIN = 2.0
"""Seconds after which the tracker knows the session of a recorded event."""
_OTHER_RESUMED = "another session was resumed in its place"


class RecordedAgent(NamedTuple):
    """What an event that was recorded says of its agent."""

    agent_type: str
    folder: str
    noted_at: float
    """On the monotonic clock."""


class EventAgents:
    """Finds and makes the agents of events. Called from worker threads: it may wait for the disk and the event loop."""

    def __init__(self, tracker: SessionTracker) -> None:
        self._tracker = tracker
        self._known: set[tuple[str, str]] = set()

    def is_known(self, session: str, agent_id: str) -> bool:
        """Return whether the agent of a session or a subagent was looked up before. Never blocks."""
        return (session, agent_id) in self._known

    def of_event(self, service: MessageService, event: Event, request: HookRequest) -> Agent:
        """Return the agent of an event; makes one if there is none."""
        session, agent_id = event.session_id, event.agent_id or ""
        is_start = False
        if isinstance(event, SessionStart):
            self._replace_predecessor(service, event, request)
            is_start = event.source in _STARTS
        elif service.find_by_session(session) is None and (started := self._tracker.known(session)) is not None:
            self._continue_agent(service, started)
        is_known = service.find_by_session(session, agent_id) is not None and not isinstance(event, SessionStart)
        folder = "" if is_known else request.caller.project or event.cwd or request.cwd  # it may change later
        return self.ensure(service, session, agent_id, event.agent_type or "", folder, is_start=is_start)

    def ensure_recorded(self, service: MessageService, session: str, agent_id: str, found: RecordedAgent) -> bool:
        """Make the agent of a recorded event, also of one that reached no daemon; False as long as it is too early.

        What came before a session is known once the tracker knows it: then it may be that of an agent that exists.
        """
        is_known = service.find_by_session(session, agent_id) is not None
        if service.find_by_session(session) is None:
            started = self._tracker.known(session)
            if started is not None:
                self._continue_agent(service, started)
            elif not self._tracker.all_replayed.is_set() or monotonic() - found.noted_at < _KNOWN_WITHIN:
                return False
        self.ensure(service, session, agent_id, found.agent_type, "" if is_known else found.folder)
        return True

    def _continue_agent(self, service: MessageService, session: Session) -> None:
        """Move the agent here that was in this process before a /clear, or before several of them."""
        for name in reversed(session.previous):
            before, agent = self._tracker.known(name), service.find_by_session(name)
            if before is None or before.end_reason != "clear":
                return
            if agent is not None:
                if agent.session == name:
                    service.change_session(name, session.id)
                return

    def ensure(  # noqa: PLR0913 - what is known of the agent
        self,
        service: MessageService,
        session: str,
        agent_id: str,
        agent_type: str,
        folder: str,
        *,
        is_start: bool = False,
    ) -> Agent:
        """Return the agent of a session or a subagent; one that had ended is alive again."""
        agent = service.ensure_agent(
            session, agent_id=agent_id, agent_type=agent_type, project=project_of(folder), is_start=is_start
        )
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known.add((session, agent_id))
        return service.revive(agent) if agent.ended else agent

    def _replace_predecessor(self, service: MessageService, event: SessionStart, request: HookRequest) -> None:
        """Follow what the session did that was in this process before.

        After /clear its agent goes on in the new session. After /resume it has ended, now: the resumed session may be
        one that the same agent had before a /clear.
        """
        if event.source not in {"clear", "resume"} or not request.caller.pid:
            return
        before = self._tracker.last_replaced((request.caller.pid, request.caller.start))
        if before is None or before.id == event.session_id or before.end_reason != event.source:
            return
        agent = service.find_by_session(before.id)
        if agent is None or agent.session != before.id:  # it has gone on already
            return
        if event.source == "resume":
            service.end(agent, _OTHER_RESUMED)
        elif service.find_by_session(event.session_id) is None:
            service.change_session(before.id, event.session_id)

    @staticmethod
    def follow(service: MessageService, sessions: Iterable[Session]) -> None:
        """End the agents of sessions that have ended, and revive those that are back."""
        for session in sessions:
            root = session.id.removesuffix(f"/{session.agent_id}") if session.is_child else session.id
            agent = service.find_by_session(root, session.agent_id)
            if agent is None or agent.session != root:  # an agent that goes on in another session
                continue
            if session.ended is None and agent.ended:
                service.revive(agent)
            elif session.ended is not None and not agent.ended and session.end_reason not in _AGENT_CONTINUES:
                service.end(agent, session.end_reason or "it has ended")
