"""Mail and the life of the daemon: crashes, upgrades, a box that cannot be opened. Nothing is lost or comes twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from daemon.clients import client
from daemon.daemon_home import LAUNCHER, until

from fairlead.daemon._metrics import resident_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome

ALWAYS = "mail: {stay: always, wait: 60}\n"


def waiting(home: DaemonHome) -> int:
    status = home.status()
    return 0 if status is None else int(status["waiting"])


@pytest.fixture
def begun(open_home: DaemonHome) -> Iterator[tuple[DaemonHome, Client, Client]]:
    """A home in which events start daemons, and two agents in it."""
    home = open_home
    home.policy(ALWAYS)
    with home.daemon(), client(home, "fox-1") as fox, client(home, "owl-1") as owl:
        until(home.has_mail, "there is mail")
        for agent in (fox, owl):
            agent.hook("SessionStart", source="startup")
        yield home, fox, owl


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_agent_that_waits_outlives_its_daemon(
    begun: tuple[DaemonHome, Client, Client], number: signal.Signals
) -> None:
    home, fox, owl = begun
    name = owl.name
    stop = owl.begin("Stop")
    until(lambda: waiting(home) == 1, "it waits")

    (first,) = home.daemons()
    os.kill(first, number)

    until(lambda: [pid for pid in home.daemons() if pid != first] and waiting(home) == 1, "it waits at another daemon")
    assert not stop.is_over
    assert owl.name == name
    fox.send(name, "Please review this")
    told = stop.end().answer
    assert told["decision"] == "block"
    assert '"Please review this"' in told["reason"]


def test_what_was_shown_by_a_daemon_that_was_killed_before_it_answered_is_shown_again(
    begun: tuple[DaemonHome, Client, Client],
) -> None:
    """The launcher goes the other road, and leaves word of it."""
    home, fox, owl = begun
    name = owl.name
    sent = fox.send(name, "hello")
    (daemon,) = home.daemons()
    os.kill(daemon, signal.SIGSTOP)
    prompt = owl.begin("UserPromptSubmit", prompt="hi")
    assert prompt.end().stdout == "", "decided without a daemon"
    os.kill(daemon, signal.SIGCONT)

    until(lambda: not home.spooled(), "the daemon has heard of it")
    until(lambda: fox.ledger(sent)[0][1] == "queued", "it is queued again")
    assert '"hello' in owl.hook("UserPromptSubmit", prompt="hi").stdout.replace('\\"', '"')
    assert owl.hook("UserPromptSubmit", prompt="hi").stdout == ""


def test_without_a_daemon_nothing_of_the_mail_is_lost(begun: tuple[DaemonHome, Client, Client]) -> None:
    home, fox, owl = begun
    home.policy("mail: {stay: no}\n")
    sent = fox.send(owl.name, "hello")
    (daemon,) = home.daemons()
    os.kill(daemon, signal.SIGKILL)

    first = owl.hook("UserPromptSubmit", prompt="hi")
    until(home.has_mail, "another daemon has come")

    told = [first, *(owl.hook("UserPromptSubmit", prompt="hi") for _ in range(2))]
    assert sum('\\"hello' in one.stdout for one in told) == 1
    assert fox.ledger(sent) == [(owl.name, "shown", "UserPromptSubmit")]


def test_a_stop_that_finds_no_daemon_begins_one_and_waits_there(open_home: DaemonHome) -> None:
    open_home.policy("mail: {stay: always, wait: 1}\n")
    with client(open_home, "owl-1") as owl:
        told = owl.hook("Stop").answer

    assert told["decision"] == "block"
    assert told["reason"].startswith("No new messages.")
    assert [record.event for record in open_home.happened()] == ["Stop"]


def test_without_any_daemon_an_agent_stops_and_the_person_is_told(home: DaemonHome) -> None:
    home.policy(ALWAYS)
    with client(home, "owl-1") as owl:
        done = owl.hook("Stop")

    assert done.exit_code == 0
    assert done.answer == {
        "systemMessage": "fairlead: no daemon answers, so this agent waits for no mail; see fairlead doctor"
    }


def test_the_policy_does_not_run_its_checks_again_when_a_wait_breaks_off(
    begun: tuple[DaemonHome, Client, Client],
) -> None:
    home, fox, owl = begun
    home.policy(f"{ALWAYS}stop:\n  commands:\n    - run: echo x >> checked\n")
    stop = owl.begin("Stop")
    until(lambda: waiting(home) == 1, "it waits")

    (first,) = home.daemons()
    os.kill(first, signal.SIGKILL)

    until(lambda: home.daemons() != [first] and waiting(home) == 1, "it waits at another daemon")
    fox.send(owl.name, "hello")
    assert stop.end().answer["decision"] == "block"
    assert (home.project / "checked").read_text() == "x\n"


def test_a_client_that_is_killed_with_its_daemon_leaves_nothing_behind(
    begun: tuple[DaemonHome, Client, Client],
) -> None:
    home, _, owl = begun
    stop = owl.begin("Stop")
    until(lambda: waiting(home) == 1, "it waits")

    owl.kill()
    (first,) = home.daemons()
    os.kill(first, signal.SIGKILL)

    until(lambda: not is_running(stop.pid), "the hook has ended")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_events_are_answered_without_mail_if_the_box_cannot_be_opened(home: DaemonHome) -> None:
    (home.state / "mail.db").mkdir()
    with home.daemon(), client(home, "owl-1") as owl:
        for event in ("SessionStart", "UserPromptSubmit", "Stop"):
            done = owl.hook(event, source="startup", prompt="hi")
            assert (done.exit_code, done.stdout) == (0, "")
        refused = home.fairlead("agents")
    assert refused.exit_code == 1
    assert "the mail cannot be reached" in refused.stderr
    troubles = [record.what for record in home.journal() if hasattr(record, "what")]
    assert sum(what.startswith("mail is unavailable for now") for what in troubles) == 1


def test_waiting_launchers_are_small_and_the_daemon_stays_so(home: DaemonHome) -> None:
    home.policy(ALWAYS)
    home.is_forked = False  # a fork has more memory from the start
    many = 100
    with home.daemon() as daemon, client(home, "fox-1") as fox:
        until(home.has_mail, "there is mail")
        fox.hook("SessionStart", source="startup")
        before = resident_memory(daemon.pid)
        launchers = [begin(home, number) for number in range(many)]
        until(lambda: waiting(home) == many, "all wait")
        assert (resident_memory(daemon.pid) - before) / many < 80 * 1024
        for launcher in launchers:
            launcher.kill()
            launcher.communicate()
        until(lambda: waiting(home) == 0, "nobody waits")


def begin(home: DaemonHome, number: int) -> subprocess.Popen[bytes]:
    launcher = subprocess.Popen(
        [str(LAUNCHER), "Stop"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=home.project,
        env=home.environment(),
    )
    assert launcher.stdin is not None
    launcher.stdin.write(home.payload(session_id=f"s{number}", hook_event_name="Stop"))
    launcher.stdin.close()
    launcher.stdin = None
    return launcher


def test_mail_that_breaks_while_the_daemon_runs_is_salvaged_by_it(home: DaemonHome) -> None:
    database = home.state / "mail.db"
    with home.daemon():
        until(home.has_mail, "the mail is open")
        assert home.fairlead("send", "User", "--subject", "kept").exit_code == 0
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET rootpage = 99999 WHERE name = 'mail_messages_by_thread'")
            connection.execute("PRAGMA schema_version = 9999")
            connection.commit()

        until(lambda: home.fairlead("send", "User", "--subject", "after").exit_code == 0, "it can be sent again")

        assert list(home.state.glob("mail.db.damaged-*"))
        with closing(sqlite3.connect(database)) as connection:
            subjects = [row[0] for row in connection.execute("SELECT subject FROM mail_messages ORDER BY id")]
        assert (subjects[0], subjects[-1]) == ("kept", "after")
