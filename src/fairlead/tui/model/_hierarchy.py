"""The main sessions by folder, and their subagents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.sessions import Session

_EMPTY: frozenset[str] = frozenset()


class SessionHierarchy:
    """All sessions as a hierarchy, added in any order. A subagent with an unknown parent counts as a main session."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.roots: dict[str, set[str]] = {}
        """Folder → the ids of its main sessions."""
        self._children: dict[str, set[str]] = {}

    def put(self, session: Session) -> frozenset[str]:
        """Add or replace a session. Return the ids of the sessions that may have moved, and of their main sessions."""
        old = self.sessions.get(session.id)
        if old is not None and (old.parent, old.folder) == (session.parent, session.folder):
            self.sessions[session.id] = session
            return _EMPTY
        moved = self._unlink(old) if old is not None else self._related(session.id)
        self.sessions[session.id] = session
        if session.parent:
            self._children.setdefault(session.parent, set()).add(session.id)
        related = self._related(session.id)
        self._update_roots(related)
        return moved | related

    def drop(self, session_id: str) -> frozenset[str]:
        """Remove a session, but not its subagents. Return ids like `put`."""
        session = self.sessions.get(session_id)
        return _EMPTY if session is None else self._unlink(session)

    def root(self, session_id: str) -> str:
        """Return the id of a session's main session; the same id for a main session, or if its parent is unknown."""
        session = self.sessions.get(session_id)
        if session is None or session.parent not in self.sessions:
            return session_id
        seen = {session_id}
        while (session := self.sessions[session_id]).parent in self.sessions:
            session_id = session.parent
            if session_id in seen:
                return self._root_of_cycle(session_id)
            seen.add(session_id)
        return session_id

    def ancestors(self, session_id: str) -> Iterator[str]:
        """Yield the id of a session's parent, then of the parent's parent, and so on."""
        seen = {session_id}
        while (session := self.sessions.get(session_id)) and session.parent in self.sessions:
            session_id = session.parent
            if session_id in seen:
                return
            seen.add(session_id)
            yield session_id

    def children(self, session_id: str) -> set[str] | frozenset[str]:
        """Return the ids of a session's direct subagents."""
        return self._children.get(session_id, _EMPTY)

    def _descendants(self, session_id: str) -> Iterator[str]:
        pending, seen = [session_id], {session_id}
        while pending:
            for child in self._children.get(pending.pop(), ()):
                if child not in seen and child in self.sessions:
                    seen.add(child)
                    pending.append(child)
                    yield child

    def _root_of_cycle(self, start: str) -> str:
        """Return one session of a cycle, the same one for each start. Only corrupt data contains cycles."""
        cycle = [start]
        while (parent := self.sessions[cycle[-1]].parent) != start:
            cycle.append(parent)
        return min(cycle)

    def _related(self, session_id: str) -> frozenset[str]:
        """Return the ids of a session, of its descendants, and of the main sessions of all these."""
        if session_id not in self._children:
            return frozenset((session_id, self.root(session_id)))
        related = (session_id, *self._descendants(session_id))
        return frozenset((*related, *map(self.root, related)))

    def _unlink(self, session: Session) -> frozenset[str]:
        related = self._related(session.id)
        for name in related:
            self._remove_root(name)
        del self.sessions[session.id]
        if siblings := self._children.get(session.parent):
            siblings.discard(session.id)
            if not siblings:
                del self._children[session.parent]
        moved = related | {self.root(name) for name in related}
        self._update_roots(moved)
        return moved

    def _update_roots(self, names: frozenset[str]) -> None:
        for name in names:
            session = self.sessions.get(name)
            if session is None or self.root(name) != name:
                self._remove_root(name)
            else:
                self.roots.setdefault(session.folder, set()).add(name)

    def _remove_root(self, name: str) -> None:
        session = self.sessions.get(name)
        folder = session.folder if session is not None else ""
        if roots := self.roots.get(folder):
            roots.discard(name)
            if not roots:
                del self.roots[folder]
