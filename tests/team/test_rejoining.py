"""Joining that is not finished, and hosts that were removed: what they leave behind, and who can have their names."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import until
from team.daemon_hosts import TeamHost, letters, member, shown, team_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from team.postgres_server import PostgresServer


@pytest.fixture
def hosts() -> Iterator[list[TeamHost]]:
    """Three hosts in no team yet."""
    with ExitStack() as stack:
        yield [stack.enter_context(team_host(name)) for name in ("alpha", "beta", "gamma")]


def test_an_attempt_that_nobody_confirmed_leaves_nothing_behind(
    hosts: list[TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta, _ = hosts
    url = postgres_server.url(database)

    def listed() -> list[str]:
        return [str(name) for (name,) in postgres_server.execute("SELECT name FROM fairlead.hosts", database)]

    declined = alpha.home.fairlead("team", "join", url, "--name", "first")
    assert (declined.exit_code, "add --yes" in declined.stderr) == (1, True)
    assert listed() == []
    assert sorted(path.name for path in (alpha.home.state / "team").iterdir()) == ["lock"]

    member(alpha, url)  # under another name, as the first host of the team that nobody is in
    assert listed() == ["alpha"]
    wrong = beta.home.fairlead("team", "join", url, "--name", "beta", "--yes", "--fingerprint", "SHA256:other")
    assert (wrong.exit_code, "so it was not joined" in wrong.stderr) == (1, True)
    assert listed() == ["alpha"]
    member(beta, url, alpha)
    assert alpha.status()["state"] == beta.status()["state"] == "member"


def test_an_attempt_that_was_killed_goes_on_and_one_under_another_name_replaces_it(
    hosts: list[TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta, _ = hosts
    url = postgres_server.url(database)
    member(alpha, url)
    begun = {
        **json.loads((alpha.home.state / "team/membership.json").read_text()),
        "team": "",
        "host": "b" * 32,
        "name": "killed",
        "boots": ["nonce"],
        "anchors": [],
        "private_key": "a2V5LWtleS1rZXkta2V5LWtleS1rZXkta2V5LWtleTE=",
    }
    file = beta.home.state / "team/membership.json"
    file.parent.mkdir(mode=0o700)
    file.write_text(json.dumps(begun))
    file.chmod(0o600)
    beta.stop()
    beta.start()
    assert beta.status() == {"in_team": False}
    postgres_server.execute(
        f"INSERT INTO fairlead.hosts VALUES ('{'b' * 32}', 'killed', 'x', '1', 'nonce', 1, 1)",
        database,
    )

    beta.join(url)  # as beta

    names = postgres_server.execute("SELECT name FROM fairlead.hosts ORDER BY name", database)
    assert names == [("alpha",), ("beta",)]


@pytest.mark.timeout(120)
def test_the_name_of_a_removed_host_is_free_and_mail_goes_to_the_one_that_has_it_now(
    hosts: list[TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta, gamma = hosts
    url = postgres_server.url(database)
    member(alpha, url)
    member(beta, url, alpha)
    asker, old = alpha.agent(), beta.agent()
    late = f"{old.name}@beta"
    until(lambda: alpha.knows(late), "alpha knows the agent of the old beta")
    beta.stop()
    sent = asker.send(late, "too late")
    assert alpha.home.fairlead("team", "remove", "beta", "--yes").exit_code == 0
    until(lambda: letters(asker, sent["id"])[0]["stage"] == "bounced", "it bounces")
    assert alpha.host("beta")["state"] == "removed"

    gamma.name = "beta"
    member(gamma, url, alpha)

    new = gamma.agent()
    name = f"{new.name}@beta"
    until(lambda: alpha.knows(name), "alpha knows the agent of the new beta")
    asker.send(name, "welcome")
    until(lambda: alpha.status()["on_its_way"] == 0, "it has arrived")
    assert "welcome" in shown(new)
    assert [row["state"] for row in alpha.status()["hosts"] if row["name"] == "beta"] == ["member"]

    beta.start()
    until(lambda: beta.status().get("connection") == "refused", "the old one is refused")
    assert "was removed from the team, and another one has the name beta now" in beta.status()["why"]
    assert gamma.is_connected()
    assert beta.home.fairlead("team", "leave", "--force", "--yes").exit_code == 0
    beta.name = "beta-again"
    member(beta, url, alpha)
