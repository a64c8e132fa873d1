"""One history of several hosts, with daemons of their own and a real PostgreSQL: what is copied, shown, and deleted."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import until
from team.daemon_hosts import TeamHost, letters, member

if TYPE_CHECKING:
    from daemon.clients import Client
    from team.postgres_server import PostgresServer

SECRET = "ghp_" + "a1B2" * 9
POLICY = "preToolUse: {uneditableFiles: [{pattern: '*.lock'}]}\n"

FORGE = """
UPDATE fairlead.events SET text = 'a forged prompt' WHERE event = 'UserPromptSubmit';
INSERT INTO fairlead.events SELECT 'stranger', id, at, session, event, verdict, body, stage, text, signature
    FROM fairlead.events;
INSERT INTO fairlead.events SELECT host, id || 'x', at, session, event, verdict, body, stage, text, signature
    FROM fairlead.events;
INSERT INTO fairlead.history SELECT 'stranger', session, started, last, folder, version, body, signature
    FROM fairlead.history;
INSERT INTO fairlead.history SELECT host, 'forged', started, last, folder, version, body, signature
    FROM fairlead.history;
"""
"""What somebody who may write to the database, and has no key, can do."""


def set_up(host: TeamHost, settings: str) -> None:
    """Write the user-wide policy of a host, and wait until it applies."""
    file = host.home.state / "config.yaml"
    file.write_text(f"team: {settings}\n")
    mode = re.findall(r"events: (\w+)", settings)[0]
    until(lambda: host.status()["events"]["mode"] == mode, f"{host.name} has the setting")


def work(host: TeamHost, prompt: str) -> Client:
    """Let a session work, and be blocked once."""
    host.home.policy(POLICY)
    agent = host.agent()
    agent.hook("UserPromptSubmit", prompt=prompt)
    agent.hook("PreToolUse", tool_name="Bash", tool_input={"command": f"pytest --token={SECRET}"})
    agent.hook("PreToolUse", tool_name="Edit", tool_input={"file_path": str(host.home.project / "uv.lock")})
    return agent


def history(host: TeamHost, *words: str) -> Any:
    done = host.home.fairlead("history", "--json", *words)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def listed(host: TeamHost, *words: str) -> list[tuple[str, str]]:
    return [(one.get("host", ""), one.get("prompt", "")) for one in history(host, *words)["sessions"]]


def is_copied(host: TeamHost, count: int) -> None:
    until(lambda: host.status()["events"]["copied"] >= count, f"{host.name} has copied {count} events")


def test_the_history_of_the_team_has_the_sessions_of_all_hosts(
    team: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta = team
    before = beta.agent()
    before.hook("UserPromptSubmit", prompt="before it was wanted")
    set_up(beta, "{events: all}")
    remote = work(beta, "fix the login on beta")
    work(alpha, "write the notes on alpha")
    is_copied(beta, 4)

    assert sorted(listed(alpha)) == [("alpha", "write the notes on alpha"), ("beta", "fix the login on beta")]
    assert listed(alpha, "--here") == [("", "write the notes on alpha")]
    assert listed(alpha, "--host", "beta") == [("beta", "fix the login on beta")]
    assert listed(alpha, "--host", "alpha") == [("alpha", "write the notes on alpha")]
    (one,) = history(alpha, "--host", "beta")["sessions"]
    assert (one["tools"], one["blocked"], one["prompts"], one["folder"]) == (2, 1, 1, str(beta.home.project))
    assert "ended" not in one
    text = alpha.home.fairlead("history").stdout
    assert re.search(r" 2 calls  \w{8}  beta   project         1 blocked; fix the login on beta", text)
    nobody = alpha.home.fairlead("history", "--host", "nobody")
    assert (nobody.exit_code, nobody.stderr.count("its members: alpha, beta")) == (1, 1)

    timeline = history(alpha, "--session", remote.session[:8])
    assert timeline["session"]["host"] == "beta"
    rows = [(row["event"], row.get("verdict", "none"), row.get("text", "")) for row in timeline["timeline"]]
    assert rows == [
        ("SessionStart", "none", ""),
        ("UserPromptSubmit", "none", "fix the login on beta"),
        ("PreToolUse", "none", "pytest --token=[redacted]"),
        ("PreToolUse", "blocked", str(beta.home.project / "uv.lock")),
    ]
    found = history(alpha, "--search", "THE")
    assert [(row["host"], row["kind"], row["text"]) for row in found["matches"]] == [
        ("alpha", "prompt", "write the notes on alpha"),
        ("beta", "prompt", "fix the login on beta"),
    ]
    stored = postgres_server.execute("SELECT text, body FROM fairlead.events", database)
    assert SECRET not in repr(stored)
    assert len(stored) == 4


@pytest.mark.timeout(120)
def test_without_the_relay_the_others_are_shown_as_they_were_and_what_happens_waits(
    alpha: TeamHost, beta: TeamHost, own_server: PostgresServer
) -> None:
    database = own_server.create_database()
    member(alpha, own_server.url(database))
    member(beta, own_server.url(database), alpha)
    set_up(beta, "{events: all}")
    remote = work(beta, "fix the login on beta")
    work(alpha, "write the notes on alpha")
    is_copied(beta, 4)
    assert len(listed(alpha)) == 2

    own_server.stop(hard=True)
    until(lambda: not alpha.is_connected(), "alpha notices")
    offline = alpha.home.fairlead("history")
    assert offline.exit_code == 0
    assert "fix the login on beta" in offline.stdout
    assert re.search(
        r"^the other hosts are shown as of (now|\d+s ago): \S+ cannot be reached", offline.stdout, re.MULTILINE
    )
    assert history(alpha)["others"]["state"] == "old"
    lost = alpha.home.fairlead("history", "--session", remote.session[:8])
    assert (lost.exit_code, "and the others cannot be asked" in lost.stderr) == (1, True)
    assert [row["host"] for row in history(alpha, "--search", "notes")["matches"]] == ["alpha"]

    remote.hook("UserPromptSubmit", prompt="while the relay is gone")
    until(lambda: beta.status()["events"]["pending"] == 1, "it waits")
    assert "events      all: 4 copied, 1 wait" in beta.home.fairlead("team", "status").stdout
    beta.stop(signal.SIGKILL)
    own_server.start()
    beta.start()
    is_copied(beta, 1)
    until(lambda: beta.status()["events"]["pending"] == 0, "nothing waits")
    assert own_server.execute("SELECT count(*), count(DISTINCT id) FROM fairlead.events", database) == [(5, 5)]


@pytest.mark.timeout(120)
def test_what_a_member_has_not_signed_is_not_shown_and_a_removed_host_is_forgotten(
    team: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta = team
    set_up(alpha, "{events: blocked, giveUpDays: 2}")
    set_up(beta, "{events: all}")
    remote, asker = work(beta, "the true prompt"), alpha.agent()
    is_copied(beta, 4)
    late = f"{remote.name}@beta"
    until(lambda: alpha.knows(late), "alpha knows the agent of beta")
    postgres_server.execute(FORGE, database)

    assert [(one["host"], one["prompt"]) for one in history(alpha)["sessions"] if one["host"] != "alpha"] == [
        ("beta", "the true prompt")
    ]
    assert "1 row on the relay is not shown: not signed by the host" in alpha.home.fairlead("history").stdout
    found = history(alpha, "--search", "prompt")
    assert (found["matches"], found["others"]["refused"]) == ([], 2)
    rows = [row["event"] for row in history(alpha, "--session", remote.session)["timeline"]]
    assert rows == ["SessionStart", "PreToolUse", "PreToolUse"]

    beta.stop()
    sent = asker.send(late, "are you there?")
    postgres_server.execute("UPDATE fairlead.hosts SET seen = seen - 3 * 86400 WHERE name = 'beta'", database)
    alpha.stop()
    alpha.start()
    until(lambda: letters(asker, sent["id"])[0]["stage"] == "bounced", "it bounces")
    assert letters(asker, sent["id"])[0]["why"] == "beta was not heard of for 2 days"

    assert alpha.home.fairlead("team", "remove", "beta", "--yes").exit_code == 0
    assert {one["host"] for one in history(alpha)["sessions"]} == {"alpha"}
    count = "SELECT (SELECT count(*) FROM fairlead.events), (SELECT count(*) FROM fairlead.history)"
    until(lambda: postgres_server.execute(count, database) == [(0, 0)], "what it copied is deleted")
