"""Agents that stay: mail, then tasks, then a wait that a message, a heartbeat or the end of the session ends."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from daemon.clients import client
from daemon.daemon_home import LAUNCHER, PATIENCE, until

from fairlead.mail.render import HEARTBEAT

if TYPE_CHECKING:
    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome, Done

ALWAYS = "mail: {stay: always, wait: 60}\n"


def waiting(home: DaemonHome) -> int:
    told: dict[str, Any] = home.ask("GET", "/v1/status")
    return int(told["waiting"])


def is_blocked(done: Done, reason: str) -> bool:
    return done.exit_code == 0 and done.answer == {"decision": "block", "reason": reason}


def tasks_of(home: DaemonHome, agent: Client, **tasks: str) -> None:
    """Write the client's task files."""
    folder = home.folder / ".claude/tasks" / agent.session
    folder.mkdir(parents=True, exist_ok=True)
    for name, status in tasks.items():
        number = name.removeprefix("n")
        (folder / f"{number}.json").write_text(json.dumps({"id": number, "subject": "x", "status": status}))


def test_a_message_that_comes_ends_the_wait(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy(ALWAYS)
    stop = owl.begin("Stop")
    until(lambda: waiting(posted) == 1, "it waits")

    sent = fox.send(owl.name, "Please review this")

    told = stop.end()
    assert told.answer["decision"] == "block"
    assert told.answer["reason"].startswith(f'You have 1 unread message:\n- From: {fox.name} - "Please review this"')
    assert fox.ledger(sent) == [(owl.name, "shown", "Stop")]
    assert waiting(posted) == 0


def test_mail_that_is_there_already_is_told_before_tasks_and_without_waiting(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    posted.policy(ALWAYS)
    tasks_of(posted, owl, n1="pending")
    fox.send(owl.name, "Please review this")

    assert owl.hook("Stop").answer["reason"].startswith("You have 1 unread message:")
    assert owl.hook("Stop").answer["reason"].startswith("1 incomplete task(s): #1 [pending].")


def test_after_a_wait_in_vain_comes_the_heartbeat(posted: DaemonHome, owl: Client) -> None:
    posted.policy("mail: {stay: always, wait: 1}\n")

    begun = monotonic()
    assert is_blocked(owl.hook("Stop"), HEARTBEAT)
    assert monotonic() - begun >= 1
    assert is_blocked(owl.hook("Stop", stop_hook_active=True), HEARTBEAT)


def test_tasks_that_are_not_done_keep_an_agent_going(posted: DaemonHome, owl: Client) -> None:
    posted.policy("mail: {stay: always, wait: 1}\nstop: {maxBlocks: 2}\n")
    tasks_of(posted, owl, n1="in_progress", n2="pending", n3="completed", n4="deleted")
    reason = "2 incomplete task(s): #1 [in_progress], #2 [pending]. Complete ALL tasks before stopping."

    assert is_blocked(owl.hook("Stop"), reason)
    assert is_blocked(owl.hook("Stop"), reason)
    assert is_blocked(owl.hook("Stop"), HEARTBEAT), "the same tasks are not named for ever"

    tasks_of(posted, owl, n1="completed")
    assert is_blocked(owl.hook("Stop"), "1 incomplete task(s): #2 [pending]. Complete ALL tasks before stopping."), (
        "something has changed"
    )
    tasks_of(posted, owl, n2="completed")
    assert is_blocked(owl.hook("Stop"), HEARTBEAT)


def test_without_task_files_the_events_tell(posted: DaemonHome, owl: Client) -> None:
    posted.policy("mail: {stay: always, wait: 1}\n")
    for number in ("1", "2"):
        owl.hook("TaskCreated", task_id=number, task_subject="do it")
    owl.hook("TaskCompleted", task_id="1", task_subject="do it")

    assert is_blocked(owl.hook("Stop"), "1 incomplete task(s): #2 [pending]. Complete ALL tasks before stopping.")


def test_tasks_are_no_reason_for_one_who_does_not_stay(posted: DaemonHome, owl: Client) -> None:
    tasks_of(posted, owl, n1="pending")

    assert owl.hook("Stop").stdout == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_escape_ends_the_wait_at_once_and_nothing_counts_as_shown(
    posted: DaemonHome, fox: Client, owl: Client, number: signal.Signals
) -> None:
    posted.policy(ALWAYS)
    stop = owl.begin("Stop")
    until(lambda: waiting(posted) == 1, "it waits")

    os.kill(stop.pid, number)

    assert stop.end().exit_code == 128 + number
    until(lambda: waiting(posted) == 0, "nobody waits")
    sent = fox.send(owl.name, "Please review this")
    assert fox.ledger(sent) == [(owl.name, "queued", "")]
    assert '"Please review this"' in owl.hook("UserPromptSubmit", prompt="hello").stdout.replace('\\"', '"')


@pytest.mark.parametrize("reason", ["prompt_input_exit", "clear"])
def test_the_end_of_the_session_ends_its_wait(posted: DaemonHome, owl: Client, reason: str) -> None:
    posted.policy(ALWAYS)
    stop = owl.begin("Stop")
    until(lambda: waiting(posted) == 1, "it waits")

    owl.hook("SessionEnd", reason=reason)

    assert stop.end().stdout == ""


def test_a_client_that_is_killed_leaves_no_wait_behind(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy(ALWAYS)
    stop = owl.begin("Stop")
    until(lambda: waiting(posted) == 1, "it waits")

    owl.kill()

    until(lambda: waiting(posted) == 0, "nobody waits")
    until(lambda: not (fox.home.folder / f"/proc/{stop.pid}").exists(), "the launcher has gone")


def test_a_subagent_that_is_done_lets_its_parent_go_on(posted: DaemonHome, owl: Client) -> None:
    """Or the client could not tell the parent what came of it before the wait is over."""
    posted.policy(ALWAYS)
    owl.hook("SubagentStart", agent_id="a1", agent_type="Explore")
    working = [{"id": "a1", "type": "subagent", "status": "running"}]
    stop = owl.begin("Stop", background_tasks=working)
    until(lambda: waiting(posted) == 1, "it waits")

    owl.hook("SubagentStop", agent_id="a1", agent_type="Explore")

    assert stop.end().stdout == ""


def test_of_two_stops_of_a_session_the_later_one_waits(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy(ALWAYS)
    first = owl.begin("Stop")
    until(lambda: waiting(posted) == 1, "it waits")

    second = owl.begin("Stop")

    assert first.end().stdout == ""
    assert waiting(posted) == 1
    fox.send(owl.name, "hello")
    assert second.end().answer["decision"] == "block"


def test_each_waits_for_its_own_mail(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy(ALWAYS)
    stops = fox.begin("Stop"), owl.begin("Stop")
    until(lambda: waiting(posted) == 2, "both wait")

    fox.send(owl.name, "for you")

    assert '"for you' in stops[1].end().stdout.replace('\\"', '"')
    assert waiting(posted) == 1
    owl.send(fox.name, "and back")
    assert '"and back' in stops[0].end().stdout.replace('\\"', '"')


def test_a_wait_begins_when_the_policys_checks_have_passed(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy(f"{ALWAYS}stop:\n  commands:\n    - run: echo x >> checked\n")
    stop = owl.begin("Stop")
    until(lambda: waiting(posted) == 1, "it waits")
    assert Path(f"/proc/{stop.pid}/exe").readlink() == LAUNCHER.resolve(), "waiting costs no Python"

    fox.send(owl.name, "Please review this")

    assert stop.end().answer["decision"] == "block"
    assert (posted.project / "checked").read_text() == "x\n"


def test_a_check_that_fails_is_told_at_once(posted: DaemonHome, owl: Client) -> None:
    posted.policy(f"{ALWAYS}stop:\n  commands:\n    - run: exit 3\n")

    assert "exit code 3" in owl.hook("Stop").answer["reason"]


def test_an_idle_daemon_does_not_leave_while_somebody_waits(home: DaemonHome) -> None:
    home.policy("mail: {stay: always, wait: 6}\n")
    with home.daemon("--idle", "3") as daemon, client(home, "s1") as owl:
        assert is_blocked(owl.hook("Stop"), HEARTBEAT)
        daemon.wait(PATIENCE)
