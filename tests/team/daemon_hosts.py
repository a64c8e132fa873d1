"""Hosts of a team: homes with daemon processes of their own, and a real PostgreSQL between them."""

from __future__ import annotations

import json
import shutil
import signal
import uuid
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from daemon.callers import person
from daemon.clients import client
from daemon.daemon_home import PATIENCE, scratch_home, until
from team.small_disk import small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome, DaemonProcess, Done
    from team.network import HostNetwork
    from team.postgres_server import PostgresServer
    from team.small_disk import SmallDisk


@dataclass
class TeamHost:
    """One host: a home, its daemon, and the agents on it."""

    name: str
    home: DaemonHome
    stack: ExitStack
    daemon: DaemonProcess | None = None
    agents: list[Client] = field(default_factory=list)
    network: HostNetwork | None = None
    disk: SmallDisk | None = None

    def entered(self) -> AbstractContextManager[None]:
        """Be on the network of this host."""
        return self.network.entered() if self.network else nullcontext()

    def start(self) -> None:
        """Start the daemon."""
        with self.entered():
            self.daemon = self.home.start()
        until(self.home.has_mail, f"{self.name} has mail")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the daemon."""
        assert self.daemon is not None
        self.daemon.send_signal(number)
        self.daemon.wait(PATIENCE)
        self.daemon = None

    def join(self, url: str, *words: str) -> Done:
        """Join the team at a URL, as a person."""
        with self.entered():
            done = self.home.fairlead("team", "join", url, "--name", self.name, "--yes", *words)
        assert done.exit_code == 0, done
        until(self.is_connected, f"{self.name} is connected")
        return done

    def status(self) -> dict[str, Any]:
        """What the daemon says of the team."""
        document: dict[str, Any] = self.home.ask("GET", "/v1/team")
        return document

    def is_connected(self) -> bool:
        return bool(self.status().get("connection") == "connected")

    def host(self, name: str) -> dict[str, Any]:
        """What this host knows of another one; empty if it knows nothing."""
        return next((row for row in self.status()["hosts"] if row["name"] == name), {})

    def confirm(self, other: TeamHost) -> None:
        """Confirm another host, as a person."""
        done = self.home.fairlead("team", "confirm", other.name, "--yes")
        assert done.exit_code == 0, done
        until(lambda: other.status()["state"] == "member", f"{other.name} is a member")

    def agent(self) -> Client:
        """Start a session."""
        made = self.stack.enter_context(client(self.home, str(uuid.uuid4())))
        assert made.hook("SessionStart", source="startup").exit_code == 0
        self.agents.append(made)
        return made

    def knows(self, name: str) -> bool:
        """Whether the snapshots of other hosts name an agent."""
        hosts = self.home.ask("GET", "/v1/mail/agents?all=true")["hosts"]
        return any(row["name"] == name for host in hosts for row in host["agents"])

    def user_mail(self) -> list[str]:
        """The subjects of the mail to the person, oldest first."""
        with person(self.home) as reader:
            return [row["subject"] for row in reader.mail("inbox", "--all")["messages"]][::-1]


@contextmanager
def team_host(
    name: str, network: HostNetwork | None = None, *, disk: int = 0, env: dict[str, str] | None = None
) -> Iterator[TeamHost]:
    """Make a host with a daemon, in no team yet; on a network of its own if it is given one.

    `disk` is the size in MB of one that its state is on, within `small_disk.own_mounts`.
    """
    with ExitStack() as stack:
        home = stack.enter_context(scratch_home(FAIRLEAD_NO_DAEMON="1", **(env or {})))
        host = TeamHost(name, home, stack, network=network)
        if disk:
            host.disk = small_disk(home.state, disk)
        host.start()
        try:
            yield host
        finally:
            if host.daemon is not None:
                host.stop(signal.SIGKILL)


def member(host: TeamHost, url: str, first: TeamHost | None = None) -> TeamHost:
    """Make a host a member of the team."""
    host.join(url)
    if first is not None:
        first.confirm(host)
    return host


@dataclass(frozen=True)
class PreparedTeam:
    """Two members that were made once. To join takes a host a second of processor time."""

    database: str
    """Their relay. A test has a copy of it."""
    folder: Path
    """What each has kept."""

    def members(self, alpha: TeamHost, beta: TeamHost, database: str) -> tuple[TeamHost, TeamHost]:
        """Make two hosts these members, with a copy of the relay."""
        for host in (alpha, beta):
            host.stop()
            (host.home.state / _MEMBERSHIP).parent.mkdir(mode=0o700, exist_ok=True)
            for name in _KEPT_BY_MEMBERS:
                shutil.copy(self.folder / host.name / name, host.home.state / name)
            file = host.home.state / _MEMBERSHIP
            file.write_text(file.read_text().replace(self.database, database))
        for host in (alpha, beta):
            host.start()
        for host in (alpha, beta):
            until(host.is_connected, f"{host.name} is connected")
        return alpha, beta


_MEMBERSHIP = "team/membership.json"
_KEPT_BY_MEMBERS = (_MEMBERSHIP, "mail.db")


def prepare_team(server: PostgresServer, folder: Path) -> PreparedTeam:
    """Make two members, and keep what they have kept."""
    database = server.create_database()
    with team_host("alpha") as alpha, team_host("beta") as beta:
        member(beta, server.url(database), member(alpha, server.url(database)))
        for host in (alpha, beta):
            host.stop()
            for name in _KEPT_BY_MEMBERS:
                (folder / host.name / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(host.home.state / name, folder / host.name / name)
    return PreparedTeam(database, folder)


def shown(agent: Client) -> str:
    """What an agent is shown at its next prompt."""
    answer = agent.hook("UserPromptSubmit", prompt="go on").answer
    context: str = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    return context


def letters(agent: Client, number: int) -> list[dict[str, Any]]:
    """The ledger of a message."""
    done = agent.fairlead("status", str(number), "--json")
    rows: list[dict[str, Any]] = json.loads(done.stdout)["letters"]
    return rows
