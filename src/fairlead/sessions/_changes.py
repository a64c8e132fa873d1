"""The stream of what changed, numbered, so that a reader who was away can catch up."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from fairlead.sessions._session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_CHANGES = 2_000
"""Changes that are kept for those who were away."""


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as it is now."""

    revision: int
    """Rises by one with each change."""
    session: Session
    gone: bool = False
    """The session is no longer kept; this is how it was last seen."""


class ChangeLog:
    """The last changes, in order."""

    def __init__(self, revision: int = 0) -> None:
        """Number the next change by one more than `revision`."""
        self.revision = revision
        self._kept: deque[Change] = deque(maxlen=MOST_CHANGES)
        self._before = revision
        """The revision before the first change that is kept."""

    def add(self, sessions: Iterable[Session], *, gone: bool = False) -> list[Change]:
        """Number changed sessions."""
        added = []
        for session in sessions:
            self.revision += 1
            change = Change(self.revision, session, gone)
            if len(self._kept) == MOST_CHANGES:
                self._before = self._kept[0].revision
            self._kept.append(change)
            added.append(change)
        return added

    def since(self, revision: int) -> list[Change] | None:
        """Give what changed after a revision, each session once, as it was last; `None` if that is not known.

        Then, and when the number is one that was never given out, the reader has to read everything anew.
        """
        if not self._before <= revision <= self.revision:
            return None
        last: dict[str, Change] = {}
        for change in reversed(self._kept):
            if change.revision <= revision:
                break
            last.setdefault(change.session.id, change)
        return list(reversed(last.values()))
