"""The sessions of the other hosts as they change: for views, and for notifications. Belongs to the event loop."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any

from fairlead.journal import DOCTOR_SESSION
from fairlead.sessions import NEWS_STALE_AFTER, with_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.sessions import Session

_KEEPALIVE = 5.0
"""Seconds after which a reader is told anew when each host was heard of."""


class TeamFeed:
    """Follows the news of the other hosts."""

    def __init__(self, directory: TeamDirectory, log: ConnectionLog) -> None:
        self._directory = directory
        self._log = log
        self.revision = 0
        self._changed = asyncio.Event()
        self._is_closed = False
        self._listed: set[tuple[str, float]] = set()
        """The sessions, each with when its state began, that `live` has yielded while their host was heard of."""

    def notify(self) -> None:
        """Note that the news of a host have changed."""
        self.revision += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def close(self) -> None:
        """End the streams."""
        self._is_closed = True
        self.notify()

    # -- for views -------------------------------------------------------------------------------------

    async def follow(self) -> AsyncIterator[list[tuple[str, Any]]]:
        """Yield events: `host` with the sessions of one that are new, `hosts` with when each was heard of."""
        sent: dict[str, object] = {}
        while not self._is_closed:
            changed, events = self._changed, list[tuple[str, Any]]()
            rows = dict(self._directory.hosts())
            for name, news in rows.items():
                if sent.get(name) is not news.sessions:
                    document = {"host": name, "sessions": news.sessions, "left_out": news.left_out, "heard": news.at}
                    events.append(("host", document))
            sent = {name: news.sessions for name, news in rows.items()}
            yield [*events, ("hosts", {"heard": {name: round(news.at, 1) for name, news in rows.items()}})]
            try:
                await asyncio.wait_for(changed.wait(), _KEEPALIVE)
            except TimeoutError:
                continue

    # -- for notifications -----------------------------------------------------------------------------

    @property
    def is_checked(self) -> bool:
        """Whether the news were read: before that, a question that was notified of looks as if it were over."""
        return self._log.last_read > 0

    def changes_since(self, revision: int) -> list[Any] | None:
        """Return no changes if there were none, `None` if `live` must be read again."""
        return [] if revision == self.revision else None

    def live(self) -> Iterator[Session]:
        """Yield the sessions of other hosts; of one that is not heard of, only those that were listed before.

        So nobody is notified of what an absent host told long ago, nor twice of what is still asked when it is back.
        """
        before, self._listed, now = self._listed, set(), time()
        for name, news in self._directory.hosts():
            is_stale = now - news.at > NEWS_STALE_AFTER
            for session in news.sessions:
                named = with_host(session, name)
                key = (named.id, session.since)
                if session.id.partition("/")[0] != DOCTOR_SESSION and (not is_stale or key in before):
                    self._listed.add(key)
                    yield named

    def root_of(self, session: Session) -> Session:
        """Return the main session of a subagent of another host."""
        if not session.parent:
            return session
        found = (one for one in self.live() if one.id == session.parent)
        return next(found, session)
