"""Prepares the sessions of the other hosts of a team to be shown together with those of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.sessions._session import AttentionNeeded, Session, Working

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTACT_STALE_AFTER = 90.0
"""Seconds after the last snapshot from which a host counts as gone. A connected host sends one at least every 60 s."""


class HostSessions(msgspec.Struct, frozen=True):
    """The sessions that run on another host of the team."""

    host: str
    """The name of the host."""
    age: float
    """Seconds since the last snapshot of that host."""
    sessions: tuple[Session, ...] = ()
    left_out: int = 0
    """The number of further sessions of that host, which its snapshot does not list."""

    @property
    def is_stale(self) -> bool:
        """Whether the last snapshot of the host is older than `CONTACT_STALE_AFTER`, so that it may be wrong."""
        return self.age > CONTACT_STALE_AFTER


def team_sessions(hosts: Iterable[HostSessions]) -> list[Session]:
    """Return the sessions of all hosts, each as `with_host` returns it. Those of stale hosts do not need the user."""
    return [
        _last_known(shown) if host.is_stale else shown
        for host in hosts
        for shown in (with_host(session, host.host) for session in host.sessions)
    ]


def with_host(session: Session, host: str) -> Session:
    """Return a session of another host with `@HOST` appended to its ids, and `HOST:` put before its folder.

    So they differ from the sessions and folders of this host and of all other hosts.
    """
    parent = f"{session.parent}@{host}" if session.parent else ""
    folder = f"{host}:{session.folder}"
    return replace(session, id=f"{session.id}@{host}", parent=parent, project=folder, host=host)


def _last_known(session: Session) -> Session:
    """Return a session of a stale host as inactive.

    If it needed the user, it is working, with the question as detail.
    """
    state = session.state
    if isinstance(state, AttentionNeeded):
        about = state.about.partition("\n")[0]
        state = Working(f"{state.reason}: {about}" if about else state.reason)
    return replace(session, state=state, last_activity=0.0, calls={})
