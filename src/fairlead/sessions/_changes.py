"""The numbered log of changed sessions, from which a reader can catch up."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from fairlead.sessions._limits import bounded_session
from fairlead.sessions._session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHANGES = 2_000
"""Changes that are kept for readers that lag behind."""


class SessionChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session after one change. A long question is cut."""

    revision: int
    """Increases by one with each change."""
    session: Session
    gone: bool = False
    """The session was dropped; `session` is its last state."""


class ChangeLog:
    """The latest changes, in order."""

    def __init__(self, revision: int = 0) -> None:
        """Number the next change `revision + 1`."""
        self.revision = revision
        self._changes: deque[SessionChange] = deque(maxlen=MAX_CHANGES)
        self._oldest = revision
        """The revision before the first change that is kept."""

    def add(self, sessions: Iterable[Session], *, gone: bool = False) -> list[SessionChange]:
        """Number changed sessions and return the changes."""
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
        """Return the latest change of each session after a revision; `None` if the log does not reach back that far.

        Then, and for a revision that was never issued, the reader has to read all sessions again.
        """
        if not self._oldest <= revision <= self.revision:
            return None
        latest: dict[str, SessionChange] = {}
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            latest.setdefault(change.session.id, change)
        return list(reversed(latest.values()))
