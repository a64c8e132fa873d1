"""`mail.stay: wake`: a hook that the client does not wait for ends when mail comes, and never outlives its session."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from daemon.clients import client
from daemon.daemon_home import until

if TYPE_CHECKING:
    from daemon.clients import Client, Running
    from daemon.daemon_home import DaemonHome

WAKE = "mail: {stay: wake}\n"


def waiting(home: DaemonHome) -> int:
    status = home.status()
    return 0 if status is None else int(status["waiting"])


@pytest.fixture
def asleep(posted: DaemonHome, owl: Client) -> Running:
    """A hook that waits to wake an agent which has stopped."""
    posted.policy(WAKE)
    waiter = owl.begin("Stop", "--wake")
    assert owl.hook("Stop").stdout == ""
    until(lambda: waiting(posted) == 1, "it waits")
    return waiter


def test_mail_wakes_an_agent_once(posted: DaemonHome, fox: Client, owl: Client, asleep: Running) -> None:
    sent = fox.send(owl.name, "Please review this")

    done = asleep.end()

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f'You have 1 unread message:\n- From: {fox.name} - "Please review this"\n')
    assert fox.ledger(sent) == [(owl.name, "shown", "wake")]
    assert owl.hook("UserPromptSubmit", prompt="woken").stdout == ""
    assert waiting(posted) == 0


def test_of_the_hooks_of_many_stops_the_last_one_waits(
    posted: DaemonHome, fox: Client, owl: Client, asleep: Running
) -> None:
    second = owl.begin("Stop", "--wake")

    assert (asleep.end().exit_code, asleep.end().stderr) == (0, "")
    assert waiting(posted) == 1
    fox.send(owl.name, "hello")
    assert second.end().exit_code == 2


@pytest.mark.parametrize("reason", ["other", "clear"])
def test_it_ends_with_its_session(owl: Client, asleep: Running, reason: str) -> None:
    owl.hook("SessionEnd", reason=reason)

    done = asleep.end()
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_it_does_not_outlive_a_client_that_is_killed(posted: DaemonHome, owl: Client, asleep: Running) -> None:
    owl.kill()

    until(lambda: waiting(posted) == 0, "nobody waits")


def test_what_came_before_is_told_by_the_hook_that_the_client_waits_for(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    posted.policy(WAKE)
    fox.send(owl.name, "hello")

    waiter, stop = owl.begin("Stop", "--wake"), owl.begin("Stop")

    assert stop.end().answer["decision"] == "block"
    assert owl.hook("Stop").stdout == ""
    assert not waiter.is_over
    fox.send(owl.name, "again")
    assert waiter.end().exit_code == 2


def test_mail_in_a_turn_is_left_to_its_events_and_wakes_an_agent_whose_turn_was_interrupted(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    posted.policy(WAKE)
    owl.hook("UserPromptSubmit", prompt="Go.")
    waiter = owl.begin("UserPromptSubmit", "--wake", prompt="Go.")
    until(lambda: waiting(posted) == 1, "it waits")

    fox.send(owl.name, "in the turn")
    assert owl.hook("Stop").answer["decision"] == "block"
    assert not waiter.is_over

    assert owl.hook("Stop").stdout == ""
    fox.send(owl.name, "after it")
    done = waiter.end()
    assert (done.exit_code, '"after it"' in done.stderr, '"in the turn"' in done.stderr) == (2, True, False)


def test_a_session_listens_from_its_start_and_at_another_daemon(open_home: DaemonHome) -> None:
    home = open_home
    home.policy(WAKE)
    with home.daemon(), client(home, "fox-1") as fox, client(home, "owl-1") as owl:
        until(home.has_mail, "there is mail")
        for agent in (fox, owl):
            agent.hook("SessionStart", source="startup")
        waiter = owl.begin("SessionStart", "--wake", source="startup")
        until(lambda: waiting(home) == 1, "it waits")
        (first,) = home.daemons()
        os.kill(first, signal.SIGKILL)
        until(lambda: first not in home.daemons() and waiting(home) == 1, "it waits at another daemon")

        fox.send(owl.name, "hello")

        done = waiter.end()
        assert (done.exit_code, '"hello"' in done.stderr) == (2, True)


@pytest.mark.parametrize("stay", ["no", "always"])
def test_it_waits_only_where_agents_are_to_be_woken(posted: DaemonHome, owl: Client, stay: str) -> None:
    posted.policy(f"mail: {{stay: {stay}}}\n")

    done = owl.hook("Stop", "--wake")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_the_settings_say_it_too_and_the_policy_has_the_last_word(posted: DaemonHome, fox: Client) -> None:
    with client(posted, "s9", FAIRLEAD_STAY="wake") as owl:
        owl.hook("SessionStart", source="startup")
        waiter = owl.begin("Stop", "--wake")
        until(lambda: waiting(posted) == 1, "it waits")
        fox.send(owl.name, "hello")
        assert waiter.end().exit_code == 2

        posted.policy("mail: {stay: no}\n")
        assert owl.hook("Stop", "--wake").exit_code == 0


def test_a_client_without_a_terminal_is_not_kept(posted: DaemonHome) -> None:
    posted.policy(WAKE)
    with client(posted, "s9", CLAUDE_CODE_ENTRYPOINT="sdk-cli") as owl:
        assert owl.hook("Stop", "--wake").exit_code == 0


def test_it_waits_on_at_another_daemon(open_home: DaemonHome) -> None:
    home = open_home
    home.policy(WAKE)
    with home.daemon(), client(home, "fox-1") as fox, client(home, "owl-1") as owl:
        until(home.has_mail, "there is mail")
        for agent in (fox, owl):
            agent.hook("SessionStart", source="startup")
        waiter = owl.begin("Stop", "--wake")
        until(lambda: waiting(home) == 1, "it waits")
        (first,) = home.daemons()

        os.kill(first, signal.SIGKILL)

        until(lambda: first not in home.daemons() and waiting(home) == 1, "it waits at another daemon")
        fox.send(owl.name, "hello")
        done = waiter.end()
        assert done.exit_code == 2
        assert '"hello"' in done.stderr


@pytest.mark.parametrize("moment", ["at another daemon", "when mail is shown"])
def test_a_policy_that_has_changed_since_the_session_began_is_not_trusted_by_it(
    open_home: DaemonHome, moment: str
) -> None:
    home = open_home
    home.policy(f"preToolUse: {{preventRootAdditions: false, uneditableFiles: [a]}}\n{WAKE}")
    with home.daemon(), client(home, "fox-1") as fox, client(home, "owl-1") as owl:
        until(home.has_mail, "there is mail")
        for agent in (fox, owl):
            agent.hook("SessionStart", source="startup")
        waiter = owl.begin("SessionStart", "--wake", source="startup")
        until(lambda: waiting(home) == 1, "it waits")
        (home.project / ".fairlead.yaml").write_text(f"preToolUse: {{preventRootAdditions: false}}\n{WAKE}")

        if moment == "at another daemon":
            (first,) = home.daemons()
            os.kill(first, signal.SIGKILL)
            until(lambda: first not in home.daemons() and waiting(home) == 1, "it waits at another daemon")
        else:
            fox.send(owl.name, "hello")
            assert waiter.end().exit_code == 2

        edit = {"tool_name": "Edit", "tool_input": {"file_path": str(home.project / "a")}}
        assert owl.hook("PreToolUse", **edit).exit_code == 2


def test_a_gate_cannot_be_passed_by_it(posted: DaemonHome, owl: Client) -> None:
    posted.policy("preToolUse: {uneditableFiles: [a]}\n")

    done = owl.hook("PreToolUse", "--wake", tool_name="Edit", tool_input={"file_path": str(posted.project / "a")})

    assert done.exit_code == 2
