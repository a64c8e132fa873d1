"""Where sessions are found: by id, by parent, by agent id, by process. Knows no events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.process import Process
    from fairlead.sessions._session import Session


class SessionIndex:
    """All sessions and the ways to them. The only place where they are replaced, so that every change is noted."""

    def __init__(self) -> None:
        self.by_id: dict[str, Session] = {}
        self.children: dict[str, dict[str, None]] = {}
        """The ids of the subagents of a session, the oldest first."""
        self.by_agent: dict[str, str] = {}
        """Agent id → the id of its session; where two sessions have agents of the same id, the newer one."""
        self.by_process: dict[Process, dict[str, None]] = {}
        """The ids of the main sessions of a process, the latest last."""
        self.touched: dict[str, None] = {}
        """What was put since the last `take_touched`, in order."""
        self.gone: list[Session] = []
        """What was dropped since the last `take_gone`."""

    def put(self, session: Session) -> Session:
        """Keep a session in place of the one with the same id."""
        name = session.id
        old = self.by_id.get(name)
        if old is session:
            return session
        self.by_id[name] = session
        self.touched[name] = None
        if old is None:
            if session.agent_id:
                self.by_agent[session.agent_id] = name
        elif old.parent != session.parent:
            self.children[old.parent].pop(name, None)
        if session.parent and (old is None or old.parent != session.parent):
            self.children.setdefault(session.parent, {})[name] = None
        if session.pid and (old is None or (old.pid, old.pid_start) != (session.pid, session.pid_start)):
            self._seat(session, old)
        return session

    def drop(self, name: str) -> None:
        """Forget a session and everything below it."""
        for child in list(self.children.get(name, ())):
            self.drop(child)
        session = self.by_id.pop(name)
        self.children.pop(name, None)
        self.touched.pop(name, None)
        if session.parent:
            self.children.get(session.parent, {}).pop(name, None)
        if self.by_agent.get(session.agent_id) == name:
            del self.by_agent[session.agent_id]
        self._leave(session)
        self.gone.append(session)

    def below(self, name: str) -> Iterator[Session]:
        """Give the subagents of a session, and theirs."""
        for child in self.children.get(name, ()):
            yield self.by_id[child]
            yield from self.below(child)

    def roots(self) -> list[Session]:
        """Give the main sessions."""
        return [session for session in self.by_id.values() if not session.parent]

    def root_of(self, session: Session) -> Session:
        """Give the main session that a subagent belongs to."""
        while session.parent and session.parent in self.by_id:
            session = self.by_id[session.parent]
        return session

    def take_touched(self) -> list[Session]:
        """Give what was put since the last time."""
        changed = [self.by_id[name] for name in self.touched]
        self.touched.clear()
        return changed

    def take_gone(self) -> list[Session]:
        """Give what was dropped since the last time."""
        gone, self.gone = self.gone, []
        return gone

    def _seat(self, session: Session, old: Session | None) -> None:
        if old is not None:
            self._leave(old)
        self.by_process.setdefault((session.pid, session.pid_start), {})[session.id] = None

    def _leave(self, session: Session) -> None:
        process = (session.pid, session.pid_start)
        seated = self.by_process.get(process)
        if seated is not None:
            seated.pop(session.id, None)
            if not seated:
                del self.by_process[process]
