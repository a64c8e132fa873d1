"""Leases across hosts: two daemons with checkouts of their own, a real PostgreSQL, and what each fault does."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from daemon.callers import person
from daemon.daemon_home import FAIRLEAD, until
from team.daemon_hosts import TeamHost, member, shown, team_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.clients import Client
    from daemon.daemon_home import Done
    from team.postgres_server import PostgresServer

BLOCK = "leases: block\npreToolUse: {preventRootAdditions: false}\n"


@pytest.fixture
def url(postgres_server: PostgresServer, database: str) -> str:
    """The relay of one test."""
    return postgres_server.url(database)


@pytest.fixture
def alpha() -> Iterator[TeamHost]:
    with team_host("alpha") as host:
        clone(host, "git@git.example.com:acme/app.git")
        yield host


@pytest.fixture
def beta() -> Iterator[TeamHost]:
    with team_host("beta") as host:
        clone(host, "https://git.example.com/acme/app")
        host.home.policy(BLOCK)
        yield host


@pytest.fixture
def team(alpha: TeamHost, beta: TeamHost, url: str) -> tuple[TeamHost, TeamHost]:
    """Two members, each with a checkout of one repository. On beta leases block."""
    return member(alpha, url), member(beta, url, alpha)


def clone(host: TeamHost, remote: str) -> None:
    """Make the project of a host a repository with a remote, as a clone has it."""
    for words in (("init", "-q"), ("remote", "add", "origin", remote)):
        subprocess.run(["git", *words], cwd=host.home.project, check=True)
    (host.home.project / "src").mkdir()
    for name in ("src/a.py", "src/b.py", "c.md"):
        (host.home.project / name).write_text("x = 1\n")


def edit(agent: Client, path: str) -> Done:
    """Ask whether an agent may edit a file of its checkout."""
    return agent.hook("PreToolUse", tool_name="Edit", tool_input={"file_path": str(agent.home.project / path)})


def bash(agent: Client, command: str) -> Done:
    return agent.hook("PreToolUse", tool_name="Bash", tool_input={"command": command})


def leases(agent: Client, *words: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(agent.fairlead("lease", "--json", *words).stdout)["leases"]
    return rows


def refused(agent: Client, *words: str) -> str:
    """Run a command that must fail, and return its error."""
    done = agent.start([str(FAIRLEAD), *words], b"").end()
    assert done.exit_code == 1, done
    return done.stderr


def blocked(agent: Client, path: str) -> bool:
    return edit(agent, path).exit_code == 2


def test_a_lease_of_one_host_blocks_on_the_other_whose_checkout_has_another_name(
    team: tuple[TeamHost, TeamHost],
) -> None:
    alpha, beta = team
    fox, owl = alpha.agent(), beta.agent()
    until(lambda: beta.knows(f"{fox.name}@alpha"), "beta knows the agent of alpha")

    taken = fox.fairlead("lease", "src", "*.md", "--for", "1h", "--why", "splitting it")

    assert taken.stdout.splitlines() == [
        f"{fox.name} holds src for 1h00m, on all hosts of the team",
        f"{fox.name} holds *.md for 1h00m, on all hosts of the team",
    ]
    until(lambda: blocked(owl, "src/a.py"), "beta knows the lease")
    for done in (bash(owl, "sed -i s/1/2/ src/a.py"), edit(owl, "docs/new.md"), bash(owl, "rm -rf src")):
        assert done.exit_code == 2, done
        assert f"{fox.name}@alpha holds a lease on it for another 59m. Why: 'splitting it'." in done.stderr
        assert f"fairlead send {fox.name}@alpha --request" in done.stderr
    assert edit(owl, "other.py").exit_code == 0
    assert edit(fox, "src/a.py").exit_code == 0

    told = shown_at(fox, "which you have leased")
    assert f'from Fairlead@beta: "{owl.name}@beta wanted to change src/a.py, which you have leased"' in told
    assert "fairlead lease --release src" in told

    listed = owl.fairlead("lease").stdout
    assert re.search(rf"^src +{fox.name}@alpha +exclusive +59m left +splitting it$", listed, re.MULTILINE)
    assert [row["host"] for row in leases(owl)] == ["alpha", "alpha"]
    assert leases(owl, "--here") == []
    error = refused(owl, "lease", "src/b.py")
    assert f"nothing was leased: {fox.name}@alpha holds {beta.home.project / 'src'} for another 59m" in error
    assert "only the host alpha can release it" in refused(owl, "lease", "--release", "src")

    assert fox.fairlead("lease", "--release", "src").stdout == "released src\n"
    until(lambda: not blocked(owl, "src/a.py"), "beta knows the release")
    assert owl.fairlead("lease", "src/b.py").exit_code == 0
    fox.hook("SessionEnd", reason="other")
    until(lambda: not blocked(owl, "docs/new.md"), "it ended with the session")


def shown_at(agent: Client, words: str) -> str:
    """What an agent is shown once it has a message with some words."""
    found = ""

    def look() -> bool:
        nonlocal found
        found += shown(agent)
        return words in found

    until(look, f"{agent.session} is told {words}")
    return found
