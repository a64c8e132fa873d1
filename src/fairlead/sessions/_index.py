"""The container of all sessions, indexed by id, parent, agent id and process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.process import Process
    from fairlead.sessions._session import Session


class SessionIndex:
    """All sessions and their indexes. Every change goes through `put` and `drop`, which keep a list of what changed."""

    def __init__(self) -> None:
        self.by_id: dict[str, Session] = {}
        self.children: dict[str, dict[str, None]] = {}
        """By session id: the ids of its direct subagents, the oldest first. (The dicts serve as ordered sets.)"""
        self.by_agent: dict[str, str] = {}
        """By agent id: the id of the subagent's session. If several have the same agent id, that of the newest."""
        self.by_process: dict[Process, dict[str, None]] = {}
        """By process: the ids of its main sessions, the latest last."""
        self.changed: dict[str, None] = {}
        """The ids of sessions that were put since the last `pop_changed`, in the order of their first `put`."""
        self.dropped: list[Session] = []
        """The sessions that were dropped since the last `pop_dropped`."""

    def put(self, session: Session) -> Session:
        """Add a session, or replace the one with the same id. Return the session."""
        name = session.id
        old = self.by_id.get(name)
        if old is session:
            return session
        self.by_id[name] = session
        self.changed[name] = None
        if old is None:
            if session.agent_id:
                self.by_agent[session.agent_id] = name
        elif old.parent != session.parent:
            self.children[old.parent].pop(name, None)
        if session.parent and (old is None or old.parent != session.parent):
            self.children.setdefault(session.parent, {})[name] = None
        if session.pid and (old is None or (old.pid, old.pid_start) != (session.pid, session.pid_start)):
            if old is not None:
                self._remove_from_process(old)
            self.by_process.setdefault((session.pid, session.pid_start), {})[name] = None
        return session

    def drop(self, name: str) -> None:
        """Remove a session and its descendants. Raise `KeyError` if there is no session of that id."""
        for child in list(self.children.get(name, ())):
            self.drop(child)
        session = self.by_id.pop(name)
        self.children.pop(name, None)
        self.changed.pop(name, None)
        if session.parent:
            self.children.get(session.parent, {}).pop(name, None)
        if self.by_agent.get(session.agent_id) == name:
            del self.by_agent[session.agent_id]
        self._remove_from_process(session)
        self.dropped.append(session)

    def descendants(self, name: str) -> Iterator[Session]:
        """Yield the subagents of a session, each followed by its descendants."""
        for child in self.children.get(name, ()):
            yield self.by_id[child]
            yield from self.descendants(child)

    def roots(self) -> list[Session]:
        """Return the main sessions."""
        return [session for session in self.by_id.values() if not session.parent]

    def root_of(self, session: Session) -> Session:
        """Return the main session that a subagent belongs to; for a main session, that session itself."""
        while session.parent and session.parent in self.by_id:
            session = self.by_id[session.parent]
        return session

    def pop_changed(self) -> list[Session]:
        """Return the sessions that were put since the last call, in their current version."""
        changed = [self.by_id[name] for name in self.changed]
        self.changed.clear()
        return changed

    def pop_dropped(self) -> list[Session]:
        """Return the sessions that were dropped since the last call, in their last version."""
        dropped, self.dropped = self.dropped, []
        return dropped

    def _remove_from_process(self, session: Session) -> None:
        process = (session.pid, session.pid_start)
        names = self.by_process.get(process)
        if names is not None:
            names.pop(session.id, None)
            if not names:
                del self.by_process[process]
