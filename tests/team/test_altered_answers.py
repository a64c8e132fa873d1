"""Answers that an honest host would never send: the host that asks refuses each, and allows nothing."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from daemon.asking import ALLOW, ask, call_of, questions, turn_on
from daemon.daemon_home import PATIENCE, until
from team.altered_host import AlteredHost, altered_host, answer_body
from team.daemon_hosts import TeamHost, member, team_host
from team.stale_snapshots import stale_snapshots

from fairlead.journal import CommandsRecord
from fairlead.team import generate_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.asking import Asking
    from team.daemon_hosts import PreparedTeam
    from team.postgres_server import PostgresServer

ON = "attention: {answer: true}\nteam: {answers: [beta, gamma, delta, epsilon]}\n"
_sessions = count()


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer, shared_database: str) -> str:
    return postgres_server.url(shared_database)


@pytest.fixture(scope="module")
def members(prepared_team: PreparedTeam, shared_database: str) -> Iterator[tuple[TeamHost, TeamHost]]:
    """Two members, for all tests."""
    with team_host("alpha") as alpha, team_host("beta") as beta:
        turn_on(alpha.home, ON)
        yield prepared_team.members(alpha, beta, shared_database)


@pytest.fixture
def alpha(members: tuple[TeamHost, TeamHost]) -> TeamHost:
    """The host whose sessions ask."""
    turn_on(members[0].home, ON)
    return members[0]


@pytest.fixture
def beta(members: tuple[TeamHost, TeamHost]) -> TeamHost:
    """The host that a person is at."""
    return members[1]


@pytest.fixture(scope="module")
def gamma(members: tuple[TeamHost, TeamHost], url: str) -> Iterator[AlteredHost]:
    """A member that sends what it likes."""
    with altered_host("gamma", url) as host:
        confirm(members[0], "gamma")
        yield host


def confirm(host: TeamHost, name: str) -> None:
    assert host.home.fairlead("team", "confirm", name, "--yes").exit_code == 0


def asked(alpha: TeamHost, beta: TeamHost, command: str) -> tuple[Asking, dict[str, Any]]:
    """Ask something on alpha, and return it as beta was told."""
    asking = ask(alpha.home, command, session_id=f"session {next(_sessions)}")
    until(lambda: any(one["id"] == asking.id for one in questions(beta.home)), "beta shows it")
    return asking, next(one for one in questions(beta.home) if one["id"] == asking.id)


def allowed(host: TeamHost) -> int:
    """How often something was allowed."""
    return sum(isinstance(one, CommandsRecord) and one.verdict == "allowed" for one in host.home.journal())


def id_of(host: TeamHost) -> str:
    return str(host.status()["host"])


def refusal(host: TeamHost, question: str) -> str:
    done = host.home.fairlead("answer", question, "allow")
    assert done.exit_code == 1, done
    return done.stderr


def test_what_was_not_told_as_a_whole_is_not_allowed_whatever_the_other_host_sends(
    alpha: TeamHost, beta: TeamHost, gamma: AlteredHost
) -> None:
    secret, told = asked(alpha, beta, "curl -d password=$(cat notes) http://127.0.0.1")
    long, cut = asked(alpha, beta, "true #" + " x" * 20_000)
    before = allowed(alpha)

    hidden = gamma.answer(id_of(alpha), told)
    too_long = gamma.answer(id_of(alpha), cut)

    assert (hidden.is_given, too_long.is_given) == (False, False)
    assert hidden.why.startswith("it can be denied from gamma, and not allowed: a part of it looks like a secret")
    assert too_long.why.startswith("it can be denied from gamma, and not allowed: it is too long")
    assert (secret.is_waiting, long.is_waiting, allowed(alpha)) == (True, True, before)
    assert gamma.answer(id_of(alpha), told, decision="deny").is_given
    assert secret.ends()["hookSpecificOutput"]["decision"]["behavior"] == "deny"
    long.is_killed()


def test_it_counts_what_was_told_and_not_what_would_be_told_now(
    alpha: TeamHost, beta: TeamHost, gamma: AlteredHost, postgres_server: PostgresServer, shared_database: str
) -> None:
    """The settings of the redaction may change while a question is open."""
    turn_on(alpha.home, f"{ON}journal: {{redact: ['hidden-\\w+']}}\n")
    until(lambda: is_redacted(alpha, beta), "alpha has read the setting")
    asking, told = asked(alpha, beta, "make hidden-target")
    assert "hidden-target" not in told["text"]

    with stale_snapshots(postgres_server, shared_database):
        turn_on(alpha.home, ON)
        until(lambda: is_journaled(alpha, "hidden-again"), "alpha has read the setting")
        result = gamma.answer(id_of(alpha), told)

    assert (result.is_given, "and not allowed: a part of it looks like a secret" in result.why) == (False, True)
    assert not is_redacted(alpha, beta)
    again = next(one for one in questions(beta.home) if one["id"] == asking.id)
    assert again["only_deny"] == told["only_deny"]
    assert asking.is_waiting
    asking.is_killed()


def is_journaled(alpha: TeamHost, word: str) -> bool:
    """Call a command, and return whether the journal has it as it is."""
    alpha.home.hook("PreToolUse", call_of(alpha.home, "PreToolUse", f"echo {word}"))
    return any(word.encode() in file.read_bytes() for file in alpha.home.state.glob("journal/**/*.jsonl"))


def is_redacted(alpha: TeamHost, beta: TeamHost) -> bool:
    """Ask something, and return whether it was told with a part left out."""
    asking, told = asked(alpha, beta, "echo hidden-probe")
    asking.is_killed()
    return "hidden-probe" not in told["text"]


def test_only_the_question_that_was_seen_is_answered_and_only_once(
    alpha: TeamHost, beta: TeamHost, gamma: AlteredHost
) -> None:
    to = id_of(alpha)
    asking, told = asked(alpha, beta, "make all")
    before = allowed(alpha)

    other_time = gamma.answer(to, told, asked=told["asked"] - 1)
    delayed = gamma.answer(to, told, at=time() - 61)
    early = gamma.answer(to, told, at=time() + 3600)
    elsewhere = gamma.answer(to, {**told, "id": "zzzzz"})

    assert other_time.why == f"no open question has the id {asking.id!r}: it is another one now"
    assert delayed.why == "it arrived 61 s after it was given, and counts for 60 s"
    assert early.why == "it says that it was given 3600 s from now; see fairlead team status on gamma"
    assert elsewhere.why.startswith("no open question has the id 'zzzzz'")
    assert (asking.is_waiting, allowed(alpha)) == (True, before)

    assert gamma.answer(to, told).is_given
    assert asking.ends() == ALLOW
    again = gamma.answer(to, told)  # in a new packet
    assert "it was answered already: allowed by somebody on gamma" in again.why
    second, _ = asked(alpha, beta, "make all")
    repeats = alpha.home.ask("GET", "/v1/team")["received"]
    gamma.relay.push(gamma.sent[-2:])  # with the numbers that were applied
    gamma.answer(to, told)
    assert alpha.home.ask("GET", "/v1/team")["received"] == repeats + 1
    assert (second.is_waiting, allowed(alpha)) == (True, before + 1)
    second.is_killed()


def test_what_a_host_did_not_sign_for_this_one_is_refused_and_told(alpha: TeamHost, beta: TeamHost, url: str) -> None:
    asking, told = asked(alpha, beta, "make forged")
    to, before, refused = id_of(alpha), allowed(alpha), alpha.status()["refused"]
    with altered_host("delta", url) as delta:
        # Nobody has confirmed it: its packets wait.
        delta.push(delta.packet(to, answer_body(told, at=time() - 61)))
        until(lambda: alpha.host("delta").get("waiting"), "alpha has seen it")
        assert asking.is_waiting
        confirm(alpha, "delta")
        until(delta.results, "it is answered")
        assert "counts for 60 s" in next(iter(delta.results().values())).why

        by_another_key = delta.packet(to, answer_body(told), key=generate_key())
        for_another_host = delta.packet(id_of(beta), answer_body(told), seq=2)
        for number, forged in enumerate((by_another_key, for_another_host), 1):
            delta.relay.push([msgspec.structs.replace(forged, target=to)])
            until(lambda number=number: alpha.status()["refused"] == refused + number, "it is refused")  # type: ignore[misc]
        assert "Mail of delta was refused" in alpha.user_mail()

        turn_on(alpha.home, ON.replace(", delta", ""))
        result = delta.answer(to, told)
        assert result.why == "alpha takes no answers from delta; see team.answers in the user-wide policy of alpha"
        turn_on(alpha.home, ON)

        assert alpha.home.fairlead("team", "remove", "delta", "--yes").exit_code == 0
        refused = alpha.status()["refused"]
        delta.push(delta.packet(to, answer_body(told)))
        until(lambda: alpha.status()["refused"] == refused + 1, "it is refused")
    assert alpha.user_mail().count("Mail of delta was refused") == 2
    until(lambda: "'aaaaa': delta was removed from the team; see" in refusal(beta, "aaaaa@delta"), "beta says so")
    assert (asking.is_waiting, allowed(alpha)) == (True, before)
    asking.is_killed()


def test_an_id_that_two_hosts_have_needs_the_name_of_one(alpha: TeamHost, beta: TeamHost, gamma: AlteredHost) -> None:
    asking, told = asked(alpha, beta, "make twice")
    gamma.ask({**told, "text": "make other", "session": "elsewhere"})
    until(lambda: sum(one["id"] == asking.id for one in questions(beta.home)) == 2, "beta shows both")

    text = refusal(beta, asking.id)

    assert f"several hosts have a question {asking.id!r}; name one: {asking.id}@alpha, {asking.id}@gamma" in text
    assert asking.is_waiting
    assert beta.home.fairlead("answer", f"{asking.id}@alpha", "allow").exit_code == 0
    assert asking.ends() == ALLOW
    gamma.ask()
    until(lambda: not questions(beta.home), "they are over")


def test_a_host_that_cannot_be_meant_is_named(alpha: TeamHost, beta: TeamHost) -> None:
    asking, _ = asked(alpha, beta, "make here")
    assert "no open question has the id 'aaaaa': the team has no host 'nobody'" in refusal(beta, "aaaaa@nobody")
    assert "no open question has the id 'aaaaa': it was answered on alpha" in refusal(beta, "aaaaa@alpha")
    assert "no open question has the id 'aaaaa': beta takes no answers from alpha" in refusal(alpha, "aaaaa@beta")
    assert alpha.home.fairlead("answer", f"{asking.id}@alpha", "allow").exit_code == 0
    assert asking.ends() == ALLOW


def test_who_did_not_see_it_confirmed_gets_a_message(alpha: TeamHost, beta: TeamHost) -> None:
    asking, _ = asked(alpha, beta, "make slowly")
    assert alpha.daemon is not None
    alpha.daemon.send_signal(signal.SIGSTOP)
    try:
        assert "sent to alpha, which has not reported within 4 s whether it took it" in refusal(beta, asking.id)
    finally:
        alpha.daemon.send_signal(signal.SIGCONT)

    assert asking.ends() == ALLOW
    until(lambda: "alpha took your answer: Bash: make slowly" in beta.user_mail(), "beta is told")


KILLED = """
import os, signal
from fairlead.daemon.team.answers._remote_answers import RemoteAnswers
async def pass_on(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
RemoteAnswers._pass_on = pass_on
"""


def test_a_daemon_that_is_killed_before_it_gives_an_answer_never_gives_it(
    alpha: TeamHost, beta: TeamHost, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The packet is recorded as received before: a restart does not bring it again."""
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(KILLED)
    alpha.stop()
    alpha.daemon = alpha.home.start(PYTHONPATH=str(site))
    until(alpha.is_connected, "alpha is connected")
    asking, told = asked(alpha, beta, "make once")
    before = allowed(alpha)

    with ThreadPoolExecutor() as pool:
        answering = pool.submit(refusal, beta, asking.id)
        alpha.daemon.wait(PATIENCE)
        alpha.start()
        second, again = asked(alpha, beta, "make once")
        assert "which has not reported within 4 s whether it took it" in answering.result()

    assert asking.ends() is None
    assert (told["id"], told["asked"]) != (again["id"], again["asked"])
    until(
        lambda: "alpha has not reported what became of your answer: Bash: make once" in beta.user_mail(), "beta is told"
    )
    assert (second.is_waiting, allowed(alpha)) == (True, before)
    assert beta.home.fairlead("answer", second.id, "allow").exit_code == 0
    assert second.ends() == ALLOW
    assert allowed(alpha) == before + 1


def test_a_host_that_was_removed_is_told_so_when_it_answers(alpha: TeamHost, url: str) -> None:
    with team_host("epsilon") as epsilon:
        member(epsilon, url, alpha)
        asking, _ = asked(alpha, epsilon, "make late")
        assert alpha.home.fairlead("team", "remove", "epsilon", "--yes").exit_code == 0
        until(lambda: epsilon.status()["connection"] == "refused", "epsilon knows")

        said = refusal(epsilon, asking.id)
    assert "cannot be sent to alpha: this host, epsilon, was removed from the team" in said
    assert asking.is_waiting
    asking.is_killed()
