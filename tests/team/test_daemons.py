"""Two hosts with daemons of their own and a real PostgreSQL: mail, receipts, and what each fault does to them."""

from __future__ import annotations

import json
import re
import shutil
import signal
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.clients import client
from daemon.daemon_home import FAIRLEAD, scratch_home, until
from team.daemon_hosts import TeamHost, letters, member, shown

if TYPE_CHECKING:
    from daemon.clients import Client
    from team.postgres_server import PostgresServer


def agents_of(alpha: TeamHost, beta: TeamHost) -> tuple[Client, Client, str]:
    """An agent on each host, and how the first can write to the second."""
    asker, other = alpha.agent(), beta.agent()
    name = f"{other.name}@beta"
    until(lambda: alpha.knows(name), "alpha knows the agent of beta")
    return asker, other, name


def test_an_agent_asks_one_on_another_host_which_is_woken_and_answers(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    beta.home.policy("mail: {stay: always, wait: 60}\n")
    asker, answerer = alpha.agent(), beta.agent()
    until(lambda: alpha.knows(f"{answerer.name}@beta"), "alpha knows the agent of beta")
    stop = answerer.begin("Stop")
    until(lambda: beta.home.ask("GET", "/v1/status")["waiting"] == 1, "it waits")

    sent = asker.send(f"{answerer.name}@beta", "Is the migration done?", "", "--request")

    reason = stop.end().answer["reason"]
    assert f'From: {asker.name}@alpha - "Is the migration done?"' in reason
    until(lambda: letters(asker, sent["id"])[0]["stage"] == "shown", "the receipt has come")
    number = json.loads(answerer.fairlead("inbox", "--all", "--json").stdout)["messages"][0]["id"]
    answerer.fairlead("reply", str(number), "Yes, since noon.")
    until(lambda: letters(asker, sent["id"])[0]["stage"] == "answered", "the answer has come")
    assert "Yes, since noon." in shown(asker)
    until(lambda: alpha.status()["on_its_way"] == beta.status()["on_its_way"] == 0, "nothing is on its way")


def test_a_message_says_that_it_is_on_its_way_while_the_relay_is_gone(
    own_team: tuple[TeamHost, TeamHost], own_server: PostgresServer
) -> None:
    alpha, beta = own_team
    asker, other, name = agents_of(alpha, beta)
    own_server.stop(hard=True)
    until(lambda: not alpha.is_connected(), "alpha notices")

    told = asker.fairlead("send", name, "Are you there?").stdout

    assert re.fullmatch(rf"sent as #\d+ to {name} \(waits here: the team's relay cannot be reached\)\n", told)
    number = int(re.findall(r"#(\d+)", told)[0])
    assert re.search(r"on its way to beta since \d\d:\d\d", asker.fairlead("status", str(number)).stdout)
    status = alpha.home.fairlead("team", "status").stdout
    assert "unreachable for" in status
    assert "on its way  1 packet; it waits until the relay is reached" in status

    own_server.start()
    until(lambda: alpha.is_connected() and beta.is_connected(), "both are back")
    until(lambda: alpha.status()["on_its_way"] == 0, "it has arrived")
    assert "at beta, not shown yet" in asker.fairlead("status", str(number)).stdout
    assert shown(other).count("> Are you there?") == 1
    until(lambda: letters(asker, number)[0]["stage"] == "shown", "the receipt has come")


def test_a_relay_that_is_restored_from_an_old_backup_loses_and_doubles_nothing(
    own_team: tuple[TeamHost, TeamHost], own_server: PostgresServer
) -> None:
    alpha, beta = own_team
    asker, other, name = agents_of(alpha, beta)
    backup = own_server.backup()
    asker.send(name, "before")
    until(lambda: alpha.status()["on_its_way"] == 0, "it has arrived")
    beta.stop(signal.SIGKILL)
    asker.send(name, "meanwhile")
    until(lambda: alpha.status()["pushed"] >= 2, "the relay has it")

    own_server.restore(backup)
    beta.start()
    asker.send(name, "after")

    until(lambda: alpha.is_connected() and beta.is_connected(), "both are back")
    until(lambda: alpha.status()["on_its_way"] == 0, "all has arrived")
    text = shown(other)
    assert [text.count(word) for word in ("before", "meanwhile", "after")] == [1, 1, 1]
    assert text.index("before") < text.index("meanwhile") < text.index("after")


def test_a_daemon_that_is_killed_in_between_sends_and_takes_everything_once(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    asker, other, name = agents_of(alpha, beta)

    for number in range(6):
        asker.send(name, f"message-{number}")
        killed = (alpha, beta)[number % 2]
        killed.stop(signal.SIGKILL)
        killed.start()

    until(lambda: alpha.status()["on_its_way"] == 0, "all has arrived")
    text = shown(other)
    assert re.findall(r"message-\d", text) == [f"message-{number}" for number in range(6)]


@pytest.mark.parametrize("is_mail_first", [False, True])
def test_mail_of_a_host_that_is_not_confirmed_waits_until_it_is(
    alpha: TeamHost, beta: TeamHost, postgres_server: PostgresServer, database: str, *, is_mail_first: bool
) -> None:
    """Also if alpha, which stands still, finds the mail before it has heard of the host."""
    url = postgres_server.url(database)
    member(alpha, url)
    other = alpha.agent()
    name = f"{other.name}@alpha"
    published = "SELECT encode(body, 'escape') FROM fairlead.snapshots"
    until(lambda: other.name in repr(postgres_server.execute(published, database)), "the relay has the agent")
    daemon = alpha.daemon
    assert daemon is not None
    if is_mail_first:
        daemon.send_signal(signal.SIGSTOP)
    beta.join(url)
    asker = beta.agent()
    until(lambda: beta.knows(name), "beta knows the agent of alpha")

    asker.send(name, "let me in")

    until(lambda: beta.status()["pushed"] == 1, "the relay has it")
    daemon.send_signal(signal.SIGCONT)
    until(lambda: alpha.host("beta").get("waiting"), "alpha has it, and does not deliver it")
    until(lambda: "beta wants to join your team" in alpha.user_mail(), "the person is told")
    assert "let me in" not in shown(other)
    assert "its mail waits until it is confirmed" in alpha.home.fairlead("team", "status").stdout

    alpha.confirm(beta)

    until(lambda: beta.status()["on_its_way"] == 0, "it has arrived")
    assert "let me in" in shown(other)
    assert alpha.user_mail().count("beta wants to join your team") == 1


def test_what_a_removed_host_sends_is_refused_and_what_is_sent_to_it_bounces(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    asker, other = alpha.agent(), beta.agent()
    until(lambda: alpha.knows(f"{other.name}@beta") and beta.knows(f"{asker.name}@alpha"), "they know each other")
    name = f"{other.name}@beta"
    beta.stop()
    sent = asker.send(name, "too late")

    assert alpha.home.fairlead("team", "remove", "beta", "--yes").stdout == "beta was removed from the team\n"

    until(lambda: letters(asker, sent["id"])[0]["stage"] == "bounced", "it bounces")
    assert letters(asker, sent["id"])[0]["why"] == "beta was removed from the team"
    beta.start()
    until(lambda: beta.status().get("connection") == "refused", "beta notices")
    assert "was removed from the team" in beta.status()["why"]
    until(lambda: "Your team's relay refuses this host" in beta.user_mail(), "the person there is told")
    refused = alpha.home.fairlead("send", name, "hello")
    assert refused.exit_code == 1
    assert "the host beta was removed from the team; no mail goes to it" in refused.stderr


def test_a_copy_of_a_host_is_refused_and_can_join_as_another_one(alpha: TeamHost, beta: TeamHost, url: str) -> None:
    member(alpha, url)
    alpha.stop()
    shutil.rmtree(beta.home.state / "team", ignore_errors=True)
    beta.stop()
    shutil.copytree(alpha.home.state / "team", beta.home.state / "team")
    beta.start()
    until(beta.is_connected, "the copy is first")

    alpha.start()
    until(lambda: alpha.status().get("error") == "HostCloned", "the other one notices", 40)

    assert "--new-identity" in alpha.status()["why"]
    done = beta.home.fairlead("team", "join", "--name", "beta", "--new-identity", "--yes")
    assert done.exit_code == 0, done
    until(lambda: beta.status()["name"] == "beta" and beta.is_connected(), "it is another host now")


def test_what_was_sent_while_offline_arrives_in_order(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    asker, other, name = agents_of(alpha, beta)
    beta.stop()
    alpha.stop(signal.SIGKILL)
    alpha.start()
    for number in range(8):
        asker.send(name, f"message-{number}")
    alpha.stop()
    beta.start()
    alpha.start()

    until(lambda: alpha.status().get("on_its_way") == 0 and alpha.is_connected(), "all has arrived")
    assert re.findall(r"message-\d", shown(other)) == [f"message-{number}" for number in range(8)]


def test_sessions_and_agents_of_the_other_host_are_listed(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team
    other = beta.agent()
    other.hook("UserPromptSubmit", prompt="work")
    name = other.name
    until(lambda: alpha.knows(f"{name}@beta"), "alpha knows the agent of beta")

    listed = alpha.home.fairlead("agents", "--all").stdout
    assert re.search(rf"^beta, as of \d+s ago\n{name}@beta ", listed, re.MULTILINE)
    assert "beta" not in alpha.home.fairlead("agents", "--all", "--here").stdout
    listed_session = re.compile(r"^beta, as of \d+s ago:\n  > working .* work\n", re.MULTILINE)
    until(lambda: listed_session.search(alpha.home.fairlead("sessions").stdout), "its session is listed")
    assert "beta" not in alpha.home.fairlead("sessions", "--here").stdout
    until(lambda: "beta: 1 working" in alpha.home.fairlead("sessions", "--line").stdout, "it is in the line")


def test_without_a_team_nothing_of_one_is_loaded() -> None:
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as home, home.daemon(PYTHONPROFILEIMPORTTIME="1"):
        until(home.has_mail, "there is mail")
        with client(home, "11111111-1111-4111-8111-111111111111") as agent:
            agent.hook("SessionStart", source="startup")
            agent.send("User", "hello")
            agent.fairlead("agents")
            agent.fairlead("lease", "a.py")
            agent.fairlead("lease", "--release")
        done = home.fairlead("team")
        loaded = re.findall(r"\| +([\w.]+)$", (home.folder / "daemon.err").read_text(), re.MULTILINE)

    assert (done.exit_code, done.stdout) == (3, "this host is in no team; to join one: fairlead team join URL\n")
    assert "fairlead.daemon.team._service_holder" in loaded
    unwanted = r"psycopg|cryptography|fairlead\.(team|mail\.remote|daemon\.(team\.(?!_service_holder)|leases\._re))"
    assert [name for name in loaded if re.match(unwanted, name)] == []


def test_only_a_person_changes_the_team(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, _ = team
    agent = alpha.agent()
    for words in (("join", "postgresql:///x"), ("confirm", "beta"), ("remove", "beta"), ("leave",)):
        done = agent.start([str(FAIRLEAD), "team", *words, "--yes"], b"").end()
        assert done.exit_code == 1
        assert "only a person can" in done.stderr


def test_a_host_that_leaves_says_so_to_the_others(team: tuple[TeamHost, TeamHost]) -> None:
    alpha, beta = team

    assert beta.home.fairlead("team", "leave", "--yes").stdout == "beta has left the team\n"

    assert beta.status() == {"in_team": False}
    assert not (beta.home.state / "team/membership.json").exists()
    until(lambda: alpha.host("beta").get("state") == "removed", "alpha knows")


def test_a_forged_packet_is_refused_and_the_right_one_comes(
    team: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta = team
    asker, other, name = agents_of(alpha, beta)
    beta.stop()
    asker.send(name, "the right one")
    until(lambda: alpha.status()["pushed"] == 1, "the relay has it")
    forge = "UPDATE fairlead.parcels SET body = replace(encode(body, 'escape'), 'right', 'wrong')::bytea"
    postgres_server.execute(forge, database)

    beta.start()
    until(lambda: beta.status().get("refused") == 1, "it is refused")

    until(lambda: "Mail of alpha was refused" in beta.user_mail(), "the person is told")
    assert alpha.status()["on_its_way"] == 1
    alpha.stop()
    alpha.start()
    until(lambda: alpha.status().get("on_its_way") == 0 and alpha.is_connected(), "it was sent again")
    text = shown(other)
    assert ("the right one" in text, "wrong" in text) == (True, False)


def test_a_relay_that_does_not_answer_holds_up_neither_sending_nor_the_end_of_the_daemon(
    own_team: tuple[TeamHost, TeamHost], own_server: PostgresServer
) -> None:
    alpha, beta = own_team
    asker, _, name = agents_of(alpha, beta)
    own_server.freeze()
    try:
        begun = monotonic()
        asker.send(name, "into the silence")
        assert monotonic() - begun < 5
        begun = monotonic()
        alpha.stop()
        assert monotonic() - begun < 10
    finally:
        own_server.thaw()


def test_the_password_is_kept_private_and_never_shown(
    alpha: TeamHost, postgres_server: PostgresServer, database: str
) -> None:
    url = postgres_server.url(database, tcp=True, password="open-sesame")  # noqa: S106 - it is to be found

    done = alpha.join(url)

    shown_anywhere = done.stdout + done.stderr + alpha.home.fairlead("team", "status", "--json").stdout
    assert "sesame" not in shown_anywhere
    file = alpha.home.state / "team/membership.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "open-sesame" in file.read_text()


def test_a_relay_that_cannot_be_reached_is_named_without_its_password(alpha: TeamHost) -> None:
    done = alpha.home.fairlead("team", "join", "postgresql://fox:open-sesame@127.0.0.1:1/team", "--yes")

    assert done.exit_code == 1
    assert "postgresql://fox:***@127.0.0.1:1/team" in done.stderr
    assert "sesame" not in done.stderr
    assert alpha.status() == {"in_team": False}
