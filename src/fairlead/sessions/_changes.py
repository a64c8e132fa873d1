"""The log of changed sessions. It numbers each change, so that a reader can ask for the changes after a number."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from fairlead.sessions._limits import bounded_session
from fairlead.sessions._session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHANGES = 2_000
"""The number of latest changes that are kept for readers."""


class SessionChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session after one change. A long question is cut."""

    revision: int
    """Increases by one with each change."""
    session: Session
    gone: bool = False
    """Whether the session was dropped; `session` is its last state."""


class ChangeLog:
    """The latest changes of all sessions, oldest first."""

    def __init__(self, revision: int = 0) -> None:
        """Create an empty log, whose first change has the number `revision + 1`."""
        self.revision = revision
        self._changes: deque[SessionChange] = deque(maxlen=MAX_CHANGES)
        self._oldest = revision
        """The revision before the oldest change that is kept."""

    def add(self, sessions: Iterable[Session], *, gone: bool = False) -> list[SessionChange]:
        """Add a change for each session, and return these changes. `gone` is for sessions that were dropped."""
        added = []
        for session in sessions:
            self.revision += 1
            change = SessionChange(self.revision, bounded_session(session), gone)
            if len(self._changes) == MAX_CHANGES:
                self._oldest = self._changes[0].revision
            self._changes.append(change)
            added.append(change)
        return added

    def since(self, revision: int) -> list[SessionChange] | None:
        """Return the latest change of each session after a revision, oldest first.

        Return `None` if the log does not reach back that far, or if that revision does not exist yet. The reader then
        has to read all sessions again.
        """
        if not self._oldest <= revision <= self.revision:
            return None
        latest: dict[str, SessionChange] = {}
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            latest.setdefault(change.session.id, change)
        return list(reversed(latest.values()))
