"""Who belongs to whom: main sessions by the folders they work in, and the subagents below each. No screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.sessions import Session

_NOBODY: frozenset[str] = frozenset()


def folder_of(session: Session) -> str:
    """Give the folder that tells the project: it stays, where the agent itself walks about."""
    return session.project or session.cwd


class Family:
    """All sessions, in whatever order they came. A subagent whose maker is not known stands alone."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.roots: dict[str, set[str]] = {}
        """Folder → the main sessions that work there."""
        self._children: dict[str, set[str]] = {}

    def put(self, session: Session) -> frozenset[str]:
        """Take a session in, or its news; give those that belong elsewhere since then, and their main sessions."""
        old = self.sessions.get(session.id)
        if old is not None and (old.parent, folder_of(old)) == (session.parent, folder_of(session)):
            self.sessions[session.id] = session
            return _NOBODY
        moved = self._unlink(old) if old is not None else self._around(session.id)
        self.sessions[session.id] = session
        if session.parent:
            self._children.setdefault(session.parent, set()).add(session.id)
        around = self._around(session.id)
        self._settle(around)
        return moved | around

    def drop(self, session_id: str) -> frozenset[str]:
        """Forget a session. Its subagents stay until they are dropped, too."""
        session = self.sessions.get(session_id)
        return _NOBODY if session is None else self._unlink(session)

    def root(self, session_id: str) -> str:
        """Give the main session of a subagent; of one whose maker is not known, itself."""
        session = self.sessions.get(session_id)
        if session is None or session.parent not in self.sessions:
            return session_id
        seen = {session_id}
        while (session := self.sessions[session_id]).parent in self.sessions:
            session_id = session.parent
            if session_id in seen:
                return self._least_of_circle(session_id)
            seen.add(session_id)
        return session_id

    def above(self, session_id: str) -> Iterator[str]:
        """Give those to which a session belongs: its maker, and the makers of that."""
        seen = {session_id}
        while (session := self.sessions.get(session_id)) and session.parent in self.sessions:
            session_id = session.parent
            if session_id in seen:
                return
            seen.add(session_id)
            yield session_id

    def children(self, session_id: str) -> set[str] | frozenset[str]:
        """Give the ids of those that a session made."""
        return self._children.get(session_id, _NOBODY)

    def _below(self, session_id: str) -> Iterator[str]:
        waiting, seen = [session_id], {session_id}
        while waiting:
            for child in self._children.get(waiting.pop(), ()):
                if child not in seen and child in self.sessions:
                    seen.add(child)
                    waiting.append(child)
                    yield child

    def _least_of_circle(self, start: str) -> str:
        """Only nonsense makes a circle; one of it must be the root, and always the same."""
        circle = [start]
        while (above := self.sessions[circle[-1]].parent) != start:
            circle.append(above)
        return min(circle)

    def _around(self, session_id: str) -> frozenset[str]:
        """Give a session, those below it, and the main sessions of all of them."""
        if session_id not in self._children:
            return frozenset((session_id, self.root(session_id)))
        own = (session_id, *self._below(session_id))
        return frozenset((*own, *map(self.root, own)))

    def _unlink(self, session: Session) -> frozenset[str]:
        around = self._around(session.id)
        for name in around:
            self._lift(name)
        del self.sessions[session.id]
        if kin := self._children.get(session.parent):
            kin.discard(session.id)
            if not kin:
                del self._children[session.parent]
        after = around | {self.root(name) for name in around}
        self._settle(after)
        return after

    def _settle(self, names: frozenset[str]) -> None:
        """Put each where it belongs now."""
        for name in names:
            session = self.sessions.get(name)
            if session is None or self.root(name) != name:
                self._lift(name)
            else:
                self.roots.setdefault(folder_of(session), set()).add(name)

    def _lift(self, name: str) -> None:
        session = self.sessions.get(name)
        folder = folder_of(session) if session is not None else ""
        if roots := self.roots.get(folder):
            roots.discard(name)
            if not roots:
                del self.roots[folder]
