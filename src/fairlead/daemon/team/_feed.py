"""Streams the sessions of the other hosts to views and to notifications. Used only in the event loop."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any

from fairlead.journal import DOCTOR_SESSION
from fairlead.sessions import CONTACT_STALE_AFTER, with_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.sessions import Session

_KEEPALIVE = 5.0
"""Seconds after which a reader gets the `hosts` event again if nothing has changed."""


class TeamFeed:
    """Yields the sessions of the other hosts when they change."""

    def __init__(self, directory: TeamDirectory, log: ConnectionLog) -> None:
        self._directory = directory
        self._log = log
        self.revision = 0
        """Increases with every change."""
        self._changed = asyncio.Event()
        self._is_closed = False
        self._listed: set[tuple[str, float]] = set()
        """The id and the start of the state of each session that `live` yielded last."""

    def notify(self) -> None:
        """Wake the streams: a snapshot of a host has changed."""
        self.revision += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def close(self) -> None:
        """End the streams."""
        self._is_closed = True
        self.notify()

    # -- for views -------------------------------------------------------------------------------------

    async def follow(self) -> AsyncIterator[list[tuple[str, Any]]]:
        """Yield lists of events, each a name and a document: at once, at each change, and at least every five seconds.

        `host` has the sessions of one host if they have changed, `hosts` the time at which each host was last seen.
        """
        sent: dict[str, object] = {}
        while not self._is_closed:
            changed, events = self._changed, list[tuple[str, Any]]()
            rows = dict(self._directory.hosts())
            for name, remote in rows.items():
                if sent.get(name) is not remote.sessions:
                    document = {
                        "host": name,
                        "sessions": remote.sessions,
                        "left_out": remote.left_out,
                        "heard": remote.at,
                    }
                    events.append(("host", document))
            sent = {name: remote.sessions for name, remote in rows.items()}
            yield [*events, ("hosts", {"heard": {name: round(remote.at, 1) for name, remote in rows.items()}})]
            try:
                await asyncio.wait_for(changed.wait(), _KEEPALIVE)
            except TimeoutError:
                continue

    # -- for notifications -----------------------------------------------------------------------------

    @property
    def is_checked(self) -> bool:
        """Whether the snapshots were read. Before that, an open question looks as if it were over."""
        return self._log.last_read > 0

    def changes_since(self, revision: int) -> list[Any] | None:
        """Return an empty list if nothing has changed since `revision`; `None` if `live` must be read again."""
        return [] if revision == self.revision else None

    def live(self) -> Iterator[Session]:
        """Yield the sessions of other hosts. Of an absent host, only those that were yielded before.

        So the user is not notified of old questions of an absent host. Nor is the user notified twice of a question
        that is still open when the host is back.
        """
        before, self._listed, now = self._listed, set(), time()
        for name, remote in self._directory.hosts():
            is_stale = now - remote.at > CONTACT_STALE_AFTER
            for session in remote.sessions:
                named = with_host(session, name)
                key = (named.id, session.since)
                if session.id.partition("/")[0] != DOCTOR_SESSION and (not is_stale or key in before):
                    self._listed.add(key)
                    yield named

    def root_of(self, session: Session) -> Session:
        """Return the main session of a subagent of another host.

        Returns the session itself if it is a main session, or if its main session is unknown.
        """
        if not session.parent:
            return session
        parents = (other for other in self.live() if other.id == session.parent)
        return next(parents, session)
