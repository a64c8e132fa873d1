"""The sessions of the team's other hosts in the tree of sessions, and the time of the last contact with each host."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.sessions import CONTACT_STALE_AFTER, HostSessions, team_sessions
from fairlead.text import duration

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from fairlead.sessions import Session
    from fairlead.tui.model._tree import SessionTree


class HostStatus(NamedTuple):
    """When another host was last in contact, and how many of its sessions are not listed."""

    last_contact: float = 0.0
    """In Unix time."""
    left_out: int = 0
    """How many sessions of the host are not listed."""

    def is_stale(self, now: float) -> bool:
        """Return whether the last contact is so old that the listed sessions may be wrong."""
        return now - self.last_contact > CONTACT_STALE_AFTER

    def text(self, now: float) -> str:
        """Return the status as text: the age of the last contact, and the number of unlisted sessions."""
        age = duration(max(0.0, now - self.last_contact))
        more = f" · {self.left_out} more sessions" if self.left_out else ""
        return (f"NO CONTACT for {age}: its last update" if self.is_stale(now) else f"last contact {age} ago") + more


def host_of_folder(folder: str, hosts: Collection[str]) -> str:
    """Return the host of a folder `HOST:FOLDER` if it is one of `hosts`; "" for a folder of this host."""
    host, has_host, _ = folder.partition(":")
    return host if has_host and host in hosts else ""


class TeamSessions:
    """Keeps the sessions of other hosts in a tree up to date."""

    def __init__(self, tree: SessionTree) -> None:
        self._tree = tree
        self._sessions: dict[str, tuple[Session, ...]] = {}

    def put(self, host: str, sessions: Iterable[Session], status: HostStatus, now: float) -> None:
        """Add a host, or replace its sessions and its status."""
        self._sessions[host] = tuple(sessions)
        self._tree.hosts[host] = status
        self._update(host, now)

    def set_last_contacts(self, times: Mapping[str, float], now: float) -> None:
        """Set the times of the last contacts, by host. Hosts that are missing in `times` are removed."""
        for host in [*self._sessions]:
            if host in times:
                self._tree.hosts[host] = self._tree.hosts[host]._replace(last_contact=times[host])
            else:
                self._sessions[host] = ()
                self._update(host, now)
                del self._sessions[host], self._tree.hosts[host]
        self.refresh(now)

    def refresh(self, now: float) -> None:
        """Mark sessions as stale, or as live again, by the last contact with their host."""
        for host in self._sessions:
            self._update(host, now)

    def _update(self, host: str, now: float) -> None:
        """Add, replace and remove sessions of a host in the tree. Unchanged ones, which are most, are not touched."""
        tree, status = self._tree, self._tree.hosts[host]
        listed = HostSessions(host, now - status.last_contact, self._sessions[host], status.left_out)
        wanted = {session.id: session for session in team_sessions([listed])}
        for name in [known.id for known in tree.sessions.values() if known.host == host and known.id not in wanted]:
            tree.drop(name)
        for session in wanted.values():
            if tree.sessions.get(session.id) != session:
                tree.put(session)
