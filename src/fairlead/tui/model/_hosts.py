"""The other hosts of the team in the tree of sessions: what they told, and when they were heard of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.sessions import NEWS_STALE_AFTER, HostSessions, team_sessions
from fairlead.text import duration

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from fairlead.sessions import Session
    from fairlead.tui.model._tree import SessionTree


class HostStatus(NamedTuple):
    """What is known of another host, besides its sessions."""

    heard: float = 0.0
    """When it was last heard of, in Unix time."""
    left_out: int = 0
    """Sessions of it that are not listed."""

    def is_stale(self, now: float) -> bool:
        """Return whether it was not heard of for so long that what is known may be wrong."""
        return now - self.heard > NEWS_STALE_AFTER

    def text(self, now: float) -> str:
        """Return how old the news of it are."""
        age = duration(max(0.0, now - self.heard))
        more = f" · {self.left_out} more sessions" if self.left_out else ""
        return (f"NO NEWS for {age}: this is what it told last" if self.is_stale(now) else f"heard {age} ago") + more


def host_of_folder(folder: str, hosts: Collection[str]) -> str:
    """Return the host that a folder `HOST:FOLDER` is on; "" for one of this host."""
    host, has_host, _ = folder.partition(":")
    return host if has_host and host in hosts else ""


class TeamSessions:
    """Keeps the sessions of other hosts in a tree."""

    def __init__(self, tree: SessionTree) -> None:
        self._tree = tree
        self._told: dict[str, tuple[Session, ...]] = {}

    def put(self, host: str, sessions: Iterable[Session], status: HostStatus, now: float) -> None:
        """Replace what is known of a host."""
        self._told[host] = tuple(sessions)
        self._tree.hosts[host] = status
        self._update(host, now)

    def set_heard(self, heard: Mapping[str, float], now: float) -> None:
        """Set when each host was heard of; forget those that are not named."""
        for host in [*self._told]:
            if host in heard:
                self._tree.hosts[host] = self._tree.hosts[host]._replace(heard=heard[host])
            else:
                self._told[host] = ()
                self._update(host, now)
                del self._told[host], self._tree.hosts[host]
        self.refresh(now)

    def refresh(self, now: float) -> None:
        """Mark the sessions of hosts as stale that are not heard of, and of those that are as live."""
        for host in self._told:
            self._update(host, now)

    def _update(self, host: str, now: float) -> None:
        """Change the sessions of a host in the tree that differ: most are as they were."""
        tree, status = self._tree, self._tree.hosts[host]
        told = HostSessions(host, now - status.heard, self._told[host], status.left_out)
        wanted = {session.id: session for session in team_sessions([told])}
        for name in [one.id for one in tree.sessions.values() if one.host == host and one.id not in wanted]:
            tree.drop(name)
        for session in wanted.values():
            if tree.sessions.get(session.id) != session:
                tree.put(session)
