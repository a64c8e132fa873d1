"""The fields about other hosts in the output of mail commands. Imports nothing of the team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.daemon.team._snapshots import AgentStatus, RemoteHost
    from fairlead.mail import Agent


class TeamView(Protocol):
    """The other hosts of a team, by their newest snapshots."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to the relay."""

    def agent_status(self, agent: Agent) -> AgentStatus | None:
        """Return the status of an agent of another host; None if it is unknown."""

    def host_name(self, host: str) -> str:
        """Return the name of a host."""

    def remote_hosts(self) -> Iterable[tuple[str, RemoteHost]]:
        """Return the name and the data of each host."""


def recipient_fields(agent: Agent, team: TeamView | None) -> dict[str, Any]:
    """Return the fields about a recipient on another host: its host, its presence, and when it is shown a message."""
    if not agent.host:
        return {"host": ""}
    name = agent.name.rpartition("@")[2]
    remote = team.agent_status(agent) if team is not None else None
    known = {"presence": remote.presence, "reach": remote.reach} if remote is not None else {"reach": ""}
    return {"host": name, "is_connected": team is not None and team.is_connected, **known}


def host_documents(team: TeamView | None, project: str | None, now: float) -> list[dict[str, Any]]:
    """Return the agents of the other hosts, of all projects or of one.

    Projects of other hosts are compared by the name of the folder, because their paths may differ.
    """
    wanted = None if project is None else project.rstrip("/").rpartition("/")[2]
    return [
        {
            "host": name,
            "age": round(max(0.0, now - remote.at), 1),
            "agents": [
                {
                    "name": f"{one.name}@{name}",
                    "project": one.project,
                    "presence": one.presence,
                    "reach": one.reach,
                    "doing": one.doing,
                    "session": one.session,
                }
                for one in sorted(remote.agents.values(), key=lambda one: one.name)
                if wanted is None or one.project.rstrip("/").rpartition("/")[2] == wanted
            ],
        }
        for name, remote in (team.remote_hosts() if team is not None else ())
    ]
