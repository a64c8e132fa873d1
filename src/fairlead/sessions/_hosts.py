"""The sessions of the other hosts of a team, shown with those of this host: unique names, the age of the snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.sessions._session import AttentionNeeded, Session, Working

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTACT_STALE_AFTER = 90.0
"""Seconds without a snapshot after which a host counts as gone. A connected host sends one at least every 60."""


class HostSessions(msgspec.Struct, frozen=True):
    """The sessions that run on another host of the team."""

    host: str
    age: float
    """Seconds since the last snapshot of that host."""
    sessions: tuple[Session, ...] = ()
    left_out: int = 0
    """The number of its sessions that are not listed."""

    @property
    def is_stale(self) -> bool:
        """Whether the last snapshot of the host is so old that it may be wrong."""
        return self.age > CONTACT_STALE_AFTER


def team_sessions(hosts: Iterable[HostSessions]) -> list[Session]:
    """Return the sessions of other hosts as they are shown and counted with those of this host."""
    return [
        _last_known(shown) if host.is_stale else shown
        for host in hosts
        for shown in (with_host(session, host.host) for session in host.sessions)
    ]


def with_host(session: Session, host: str) -> Session:
    """Return a session of another host with `@HOST` at its ids, and its folder as `HOST:FOLDER`.

    So neither is mistaken for a session or folder of this host or a third one.
    """
    parent = f"{session.parent}@{host}" if session.parent else ""
    folder = f"{host}:{session.folder}"
    return replace(session, id=f"{session.id}@{host}", parent=parent, project=folder, host=host)


def _last_known(session: Session) -> Session:
    """Return a session of a host without a recent snapshot: stale, and with an open question as its activity."""
    state = session.state
    if isinstance(state, AttentionNeeded):
        about = state.about.partition("\n")[0]
        state = Working(f"{state.reason}: {about}" if about else state.reason)
    return replace(session, state=state, last_activity=0.0, calls={})
