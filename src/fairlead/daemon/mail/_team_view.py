"""What mail commands show of other hosts: where a recipient is, and who is there. Loads nothing of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.daemon.team._news import AgentNews, HostNews
    from fairlead.mail import Agent


class TeamView(Protocol):
    """The other hosts of a team, by their newest news."""

    @property
    def is_connected(self) -> bool:
        """Whether the relay is reached."""

    def agent_news(self, agent: Agent) -> AgentNews | None:
        """Return what is known of an agent of another host."""

    def host_name(self, host: str) -> str:
        """Return the name of a host."""

    def host_news(self) -> Iterable[tuple[str, HostNews]]:
        """Return the name and the news of each host."""


def recipient_there(agent: Agent, team: TeamView | None) -> dict[str, Any]:
    """Return the fields that say when a recipient on another host is shown a message, as far as that is known."""
    if not agent.host:
        return {"host": ""}
    name = agent.name.rpartition("@")[2]
    news = team.agent_news(agent) if team is not None else None
    known = {"presence": news.presence, "reach": news.reach} if news is not None else {"reach": ""}
    return {"host": name, "is_connected": team is not None and team.is_connected, **known}


def host_documents(team: TeamView | None, project: str | None, now: float) -> list[dict[str, Any]]:
    """Return the agents of the other hosts; of a project, those of folders with the same name: paths differ."""
    wanted = None if project is None else project.rstrip("/").rpartition("/")[2]
    return [
        {
            "host": name,
            "age": round(max(0.0, now - news.at), 1),
            "agents": [
                {
                    "name": f"{one.name}@{name}",
                    "project": one.project,
                    "presence": one.presence,
                    "reach": one.reach,
                    "doing": one.doing,
                    "session": one.session,
                }
                for one in sorted(news.agents.values(), key=lambda one: one.name)
                if wanted is None or one.project.rstrip("/").rpartition("/")[2] == wanted
            ],
        }
        for name, news in (team.host_news() if team is not None else ())
    ]
