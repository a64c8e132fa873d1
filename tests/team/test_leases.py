"""Leases across hosts: two daemons with checkouts of their own, a real PostgreSQL, and what each fault does."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from random import Random
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any

import pytest
from daemon.callers import person
from daemon.daemon_home import FAIRLEAD, until
from team.daemon_hosts import TeamHost, member, shown
from team.wrong_clock import wrong_clock

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.clients import Client
    from daemon.daemon_home import Done
    from team.postgres_server import PostgresServer

pytestmark = pytest.mark.timeout(180)  # two hosts are many processes, and some tests start them several times

BLOCK = "leases: block\npreToolUse: {preventRootAdditions: false}\n"


@pytest.fixture
def alpha(alpha: TeamHost) -> TeamHost:
    """A host with a checkout."""
    clone(alpha, "git@git.example.com:acme/app.git")
    return alpha


@pytest.fixture
def beta(beta: TeamHost) -> TeamHost:
    """A host with another checkout of the same repository, on which leases block."""
    clone(beta, "https://git.example.com/acme/app")
    beta.home.policy(BLOCK)
    return beta


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


def test_of_two_hosts_that_ask_at_once_one_gets_the_lease_and_shared_ones_both(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    fox, owl = alpha.agent(), beta.agent()
    fox.fairlead("lease", "warm.up")
    for number in range(8):
        path = ("src/a.py", "src", "src/*.py", f"new{number}.py")[number % 4]
        asked = [agent.start([str(FAIRLEAD), "lease", path], b"") for agent in (fox, owl)]
        done = [each.end() for each in asked]

        assert sorted(each.exit_code for each in done) == [0, 1], done
        winner, loser = (fox, owl) if done[0].exit_code == 0 else (owl, fox)
        host = "alpha" if winner is fox else "beta"
        assert f"nothing was leased: {winner.name}@{host} holds" in "".join(each.stderr for each in done)
        assert winner.fairlead("lease", "--release", path).exit_code == 0
        assert loser.fairlead("lease", path).exit_code == 0, "a release reaches the relay before it is confirmed"
        loser.fairlead("lease", "--release", path)

    asked = [agent.start([str(FAIRLEAD), "lease", "--shared", "src"], b"") for agent in (fox, owl)]
    assert [each.end().exit_code for each in asked] == [0, 0]
    until(lambda: len(leases(owl)) == 3, "beta knows both")
    assert edit(owl, "src/a.py").exit_code == 0, "it shares it too"
    assert "shares" in refused(owl, "lease", "src/a.py")


def test_without_the_relay_leases_are_refused_or_local_and_those_that_are_known_hold(
    own_team: tuple[TeamHost, TeamHost], own_server: PostgresServer
) -> None:
    alpha, beta = own_team
    fox, owl = alpha.agent(), beta.agent()
    fox.fairlead("lease", "src/a.py", "src/b.py")
    until(lambda: blocked(owl, "src/a.py"), "beta knows the lease")

    own_server.freeze()
    begun = monotonic()
    silent = refused(owl, "lease", "c.md")
    assert monotonic() - begun < 5
    again = refused(owl, "lease", "c.md")
    own_server.thaw()
    own_server.stop(hard=True)
    until(lambda: not alpha.is_connected() and not beta.is_connected(), "both notice")
    begun = monotonic()
    gone = refused(owl, "lease", "c.md")
    assert monotonic() - begun < 5
    assert silent == again
    assert "nothing was leased: the team's relay has not answered within 3 s. Leases of the team need" in silent
    assert "nothing was leased: the team's relay cannot be reached: " in gone
    assert "for this host only: fairlead lease --local PATH" in gone

    assert blocked(owl, "src/a.py"), "what is known holds"
    assert f"{fox.name}@alpha holds" in refused(owl, "lease", "--local", "src/a.py")
    local = owl.fairlead("lease", "--local", "c.md")
    assert local.stdout == f"{owl.name} holds c.md for 30m, on this host only\n"
    assert re.search(r"^c\.md .* exclusive, this host ", owl.fairlead("lease").stdout, re.MULTILINE)
    assert fox.fairlead("lease", "--release", "src/a.py").stdout == (
        "released src/a.py\nthe other hosts learn of it when the team's relay is reached\n"
    )
    beta.stop(signal.SIGKILL)
    beta.start()
    assert blocked(owl, "src/b.py"), "a new daemon still knows it"

    own_server.start()
    until(lambda: alpha.is_connected() and beta.is_connected(), "both are back")
    until(lambda: not blocked(owl, "src/a.py"), "beta learns of the release")
    assert blocked(owl, "src/b.py")
    assert owl.fairlead("lease", "src/a.py").exit_code == 0
    assert fox.fairlead("lease", "c.md").exit_code == 0, "a local lease concerns this host only"
    until(lambda: blocked(owl, "c.md"), "and the team's counts there")


def test_a_lease_ends_by_the_clock_of_the_relay_when_its_host_is_gone(
    team: tuple[TeamHost, TeamHost], tmp_path: Path
) -> None:
    alpha, beta = team
    alpha.stop()
    alpha.home.env |= wrong_clock(tmp_path, 7 * 3600)
    alpha.start()
    until(alpha.is_connected, "alpha is back")
    assert alpha.status()["offset"] < -6 * 3600
    fox, owl = alpha.agent(), beta.agent()
    fox.fairlead("lease", "src/a.py", "--for", "4s")
    fox.fairlead("lease", "src/b.py", "--for", "1h")
    begun = monotonic()
    until(lambda: blocked(owl, "src/a.py"), "beta knows the lease")
    assert "59m" in edit(owl, "src/b.py").stderr

    alpha.stop(signal.SIGKILL)
    fox.kill()

    until(lambda: not blocked(owl, "src/a.py"), "its time is up")
    assert 2 < monotonic() - begun < 10
    assert blocked(owl, "src/b.py"), "the other one's is not"
    assert "holds" in refused(owl, "lease", "src/b.py")
    owl.fairlead("lease", "src/a.py")
    alpha.start()
    until(lambda: not blocked(owl, "src/b.py"), "the new daemon of alpha releases what the dead held")


def test_rows_that_no_member_has_signed_count_for_nothing(
    team: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta = team
    fox, owl = alpha.agent(), beta.agent()
    fox.fairlead("lease", "src/a.py")
    until(lambda: blocked(owl, "src/a.py"), "beta knows the lease")

    def forge(statement: str) -> None:
        touch = "UPDATE fairlead.lease_versions SET version = version + 1"
        begun = time()
        postgres_server.execute(f"{statement}; {touch}; SELECT pg_notify('fairlead_leases', 'x')", database)
        until(lambda: beta.status()["leases"]["read"] > begun, "beta has read it")

    copied = "INSERT INTO fairlead.leases SELECT {}, id || '{}', project, until, {}, signature FROM fairlead.leases"
    whole = """'{"path": "", "holder": "fox"}'::bytea"""
    forge(copied.format("host", "1", whole))  # in the name of alpha, on all files
    forge(copied.format("'unknown'", "2", whole) + " WHERE host <> 'unknown'")
    forge("UPDATE fairlead.leases SET until = until + 3600 WHERE length(id) > 32")
    assert edit(owl, "src/b.py").exit_code == 0
    assert owl.fairlead("lease", "src/b.py").exit_code == 0
    assert blocked(owl, "src/a.py")

    forge("UPDATE fairlead.leases SET until = until + 3600, body = convert_to('{}', 'UTF8')")
    until(lambda: not blocked(owl, "src/a.py"), "a row that was changed counts no more")
    fox.fairlead("lease", "c.md")  # alpha looks at its rows: it removes the forged ones, and corrects its own
    until(lambda: blocked(owl, "src/a.py"), "the right one is back")

    alpha.stop()
    postgres_server.execute("DELETE FROM fairlead.leases; DELETE FROM fairlead.lease_versions", database)
    assert owl.fairlead("lease", "src/a.py").exit_code == 0
    alpha.start()
    told = shown_at(fox, "You have lost your lease on")
    assert f"{owl.name}@beta has taken one on the same files since" in told
    until(lambda: blocked(owl, "c.md"), "what nobody has taken meanwhile is there again")
    until(lambda: rows(postgres_server, database) == 3, "so is what beta held besides")


def test_a_host_that_is_not_confirmed_or_removed_holds_nothing(alpha: TeamHost, beta: TeamHost, url: str) -> None:
    member(alpha, url)
    beta.join(url)
    alpha.home.policy(BLOCK)
    fox, owl = alpha.agent(), beta.agent()
    assert "this host is not confirmed, so its leases count for nobody" in refused(owl, "lease", "src/a.py")
    alpha.confirm(beta)
    owl.fairlead("lease", "src/a.py")
    until(lambda: blocked(fox, "src/a.py"), "alpha knows the lease")
    fox.fairlead("lease", "src/b.py")

    assert alpha.home.fairlead("team", "remove", "beta", "--yes").exit_code == 0

    assert not blocked(fox, "src/a.py")
    assert fox.fairlead("lease", "src/a.py").exit_code == 0
    until(lambda: beta.status().get("connection") == "refused", "beta notices")
    assert "was removed from the team" in refused(owl, "lease", "c.md")
    beta.home.fairlead("team", "leave", "--force", "--yes")
    assert owl.fairlead("lease", "c.md").stdout == f"{owl.name} holds c.md for 30m\n"
    assert [row["team"] for row in leases(owl)] == [None, None], "it holds for itself what it held for the team"

    with person(alpha.home) as user:
        assert user.fairlead("team", "leave", "--yes").exit_code == 0
    assert [row["host"] for row in leases(fox)] == ["", ""]


def test_a_repository_without_an_identity_has_local_leases_and_says_so(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    alpha.home.policy("leases: warn\n")
    fox, owl = alpha.agent(), beta.agent()
    git = ["git", "-C", str(beta.home.project)]
    subprocess.run([*git, "remote", "remove", "origin"], check=True)

    taken = owl.fairlead("lease", "src/a.py", "/elsewhere")

    only = f"{owl.name} holds {{}} for 30m, on this host only: {{}}\n"
    assert taken.stdout == (
        only.format("src/a.py", "its repository has no remote; name it: git config fairlead.project NAME")
        + only.format("/elsewhere", "it is in no git repository")
    )
    for host in (alpha, beta):
        subprocess.run(["git", "-C", str(host.home.project), "config", "fairlead.project", "app"], check=True)
    assert owl.fairlead("lease", "src/a.py").stdout == f"{owl.name} holds src/a.py for 30m, on all hosts of the team\n"
    until(lambda: f"{owl.name}@beta" in edit(fox, "src/a.py").stdout, "alpha warns of it")
    warned = edit(fox, "src/a.py")
    assert warned.exit_code == 0
    assert f"{owl.name}@beta was notified. Do not change it before you have asked" in warned.stdout


def test_after_kills_the_relay_shows_what_the_host_holds(
    team: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, _ = team
    fox, expected = alpha.agent(), set()
    moments = Random(7)
    for number in range(4):
        path = f"src/{number}.py"
        taken = fox.start([str(FAIRLEAD), "lease", path], b"")
        sleep(moments.uniform(0.0, 0.1))  # the moment of the kill is another one each time
        alpha.stop(signal.SIGKILL)
        alpha.start()
        if taken.end().exit_code == 0:
            expected.add(path)
    fox.fairlead("lease", "last.py")

    held = {row["path"].removeprefix(f"{alpha.home.project}/"): row for row in leases(fox)}
    assert expected <= set(held) <= {*(f"src/{number}.py" for number in range(4)), "last.py"}
    assert all(row["team"] for row in held.values())
    until(lambda: rows(postgres_server, database) == len(held), "the relay has just these")


def rows(server: PostgresServer, database: str) -> int:
    return len(server.execute("SELECT id FROM fairlead.leases", database))
