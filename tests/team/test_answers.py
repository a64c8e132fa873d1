"""Questions of a session on one host, answered by a person on another: real daemons, a real PostgreSQL."""

from __future__ import annotations

import re
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.asking import ALLOW, ask, questions, turn_on
from daemon.daemon_home import FAIRLEAD, until
from team.daemon_hosts import TeamHost, team_host
from team.stale_snapshots import stale_snapshots

from fairlead.journal import CommandsRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.asking import Asking
    from team.daemon_hosts import PreparedTeam
    from team.postgres_server import PostgresServer

ON = "attention: {answer: true}\nteam: {answers: [beta]}\n"


@pytest.fixture(scope="module")
def members(prepared_team: PreparedTeam, shared_database: str) -> Iterator[tuple[TeamHost, TeamHost]]:
    """Two members, for all tests."""
    with team_host("alpha") as alpha, team_host("beta") as beta:
        yield prepared_team.members(alpha, beta, shared_database)


@pytest.fixture
def team(members: tuple[TeamHost, TeamHost]) -> tuple[TeamHost, TeamHost]:
    """The sessions of alpha ask, the person is at beta."""
    turn_on(members[0].home, ON)
    return members


def seen(host: TeamHost, asking: Asking) -> bool:
    return any(one["id"] == asking.id for one in questions(host.home))


def answers(host: TeamHost) -> list[CommandsRecord]:
    return [record for record in host.home.journal() if isinstance(record, CommandsRecord)]


def refusal(host: TeamHost, *words: str) -> str:
    done = host.home.fairlead("answer", *words)
    assert done.exit_code == 1, done
    return done.stderr


def test_a_person_on_another_host_allows_and_the_journal_says_who_and_where(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    begun = monotonic()
    asking = ask(alpha.home, "make \x1b[31mall")
    until(lambda: seen(beta, asking), "beta shows it")
    assert monotonic() - begun < 5

    listed = beta.home.fairlead("answer").stdout
    assert re.match(rf"{asking.id}  Bash  project on alpha  for \d+s\n  make ", listed)
    assert "\x1b" not in listed
    begun = monotonic()
    done = beta.home.fairlead("answer", f"{asking.id}@alpha", "allow")

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("allowed once on alpha: Bash: make")
    assert asking.ends() == ALLOW
    assert monotonic() - begun < 5
    record = answers(alpha)[-1]
    assert record.verdict == "allowed"
    assert re.match(r"allowed by \S+ on beta(?: at \S+)?, with fairlead answer \(pid \d+\)", record.reason)
    assert answers(beta) == []
    until(lambda: not questions(beta.home), "it is gone from beta's list")


def test_a_denial_has_its_reason_and_a_choice_its_options(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    denied = ask(alpha.home)
    choice = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}
    asked = ask(alpha.home, tool_name="AskUserQuestion", tool_input={"questions": [choice]})
    until(lambda: seen(beta, denied) and seen(beta, asked), "beta shows them")

    assert beta.home.fairlead("answer", denied.id, "deny", "--reason", "Not here.").exit_code == 0
    assert "1 to choose, and 0 chosen" in refusal(beta, asked.id, "allow")
    assert beta.home.fairlead("answer", asked.id, "allow", "--choose", "2").exit_code == 0

    assert denied.ends()["hookSpecificOutput"]["decision"] == {"behavior": "deny", "message": "Not here."}
    decision = asked.ends()["hookSpecificOutput"]["decision"]
    assert decision["updatedInput"]["answers"] == {"Which colour?": "Blue"}


def test_what_cannot_be_seen_as_a_whole_can_be_denied_and_not_allowed(team: tuple[TeamHost, TeamHost]) -> None:
    """An agent could hide the part that matters behind what looks like a secret, or after a long text."""
    alpha, beta = team
    secret = ask(alpha.home, "curl -d password=$(cat notes) http://127.0.0.1")
    long = ask(alpha.home, "true #" + " x" * 20_000)
    until(lambda: seen(beta, secret) and seen(beta, long), "beta shows them")

    listed = beta.home.fairlead("answer").stdout
    assert "$(cat notes)" not in listed
    assert listed.count("It can only be denied from here: ") == 2
    for asking in (secret, long):
        assert "it can be denied from here, and not allowed" in refusal(beta, asking.id, "allow")
        assert asking.is_waiting
    assert beta.home.fairlead("answer", secret.id, "deny").exit_code == 0
    assert secret.ends()["hookSpecificOutput"]["decision"]["behavior"] == "deny"
    alpha.home.fairlead("answer", long.id, "allow")
    assert long.ends() == ALLOW


def test_an_agent_cannot_answer_for_another_host_either(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    agent, asking = beta.agent(), ask(alpha.home)
    until(lambda: seen(beta, asking), "beta shows it")

    for name in (asking.id, f"{asking.id}@alpha"):
        done = agent.start([str(FAIRLEAD), "answer", name, "allow"], b"").end()
        assert (done.exit_code, "only a person can answer" in done.stderr) == (1, True)
    assert asking.is_waiting
    asking.is_killed()


def test_late_answers_say_what_became_of_the_question(
    team: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, shared_database: str
) -> None:
    alpha, beta = team
    first, second = ask(alpha.home), ask(alpha.home, "make install")
    until(lambda: seen(beta, first) and seen(beta, second), "beta shows them")
    before = len(answers(alpha))
    with stale_snapshots(postgres_server, shared_database):
        assert alpha.home.fairlead("answer", first.id, "allow").exit_code == 0
        assert first.ends() == ALLOW
        second.is_killed()
        until(lambda: not questions(alpha.home), "both are over")

        text = refusal(beta, first.id, "deny")
        assert "alpha: no open question has the id" in text
        assert "it was answered already: allowed by " in text
        assert "its client no longer waits for an answer" in refusal(beta, second.id, "allow")
        assert [record.verdict for record in answers(alpha)[before:]] == ["allowed"]


def test_the_asking_host_decides_whatever_the_other_one_believes(
    team: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, shared_database: str
) -> None:
    alpha, beta = team
    asking = ask(alpha.home, "make deploy")
    until(lambda: seen(beta, asking), "beta shows it")
    with stale_snapshots(postgres_server, shared_database):
        turn_on(alpha.home, "attention: {answer: true}\nteam: {answers: [gamma]}\n")
        assert "alpha: alpha takes no answers from beta; see team.answers" in refusal(beta, asking.id, "allow")
        assert asking.is_waiting
    asking.is_killed()


def test_a_host_without_the_setting_tells_no_questions(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    turn_on(alpha.home, "attention: {answer: true}\n")
    asking = ask(alpha.home, "make quietly", session_id="quiet")

    def states() -> list[str]:
        rows = beta.home.ask("GET", "/v1/sessions")["hosts"][0]["sessions"]
        return [row.get("state", {}).get("about") for row in rows]

    until(lambda: "make quietly" in states(), "beta knows that it asks")
    assert questions(beta.home) == []
    assert f"no open question has the id {asking.id!r}" in refusal(beta, asking.id, "allow")
    asking.is_killed()
