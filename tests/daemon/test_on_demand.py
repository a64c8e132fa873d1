"""Nobody starts a daemon: the first event does, and the next version of Fairlead replaces it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import LAUNCHER, PATIENCE, until
from daemon.talk import talk

from fairlead.journal import DaemonRecord

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

linux_only = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")


def roads(home: DaemonHome) -> list[str]:
    return [record.route for record in home.happened()]


def ids(home: DaemonHome) -> Counter[str]:
    return Counter(record.id for record in home.happened())


def pid_of(home: DaemonHome) -> int:
    status = home.status()
    return status["pid"] if status else 0


# -- coming --------------------------------------------------------------------------------------------


def test_the_first_event_starts_a_daemon_that_takes_it_in(open_home: DaemonHome) -> None:
    home = open_home
    home.policy("preToolUse: {uneditableFiles: [kept.txt]}\n")

    first = home.hook("PreToolUse", home.edit("kept.txt"))
    until(lambda: pid_of(home), "a daemon has come")
    second = home.hook("PreToolUse", home.edit("kept.txt"))

    assert first == second
    assert first.exit_code == 2
    assert home.spooled() == []
    assert roads(home) == ["cold", "daemon"]
    assert set(ids(home).values()) == {1}
    assert {record.verdict for record in home.happened()} == {"blocked"}


def test_with_no_daemon_wanted_none_is_started(home: DaemonHome) -> None:
    home.hook("PreToolUse", home.edit("a"))

    assert len(home.spooled()) == 1
    assert not (home.state / "run").exists()
    assert not (home.state / "daemon.log").exists()


def test_a_daemon_that_cannot_start_is_not_started_at_every_event(open_home: DaemonHome) -> None:
    home = open_home
    (home.state / "run").mkdir(mode=0o700)
    (home.state / "run/daemon.lock").mkdir()
    log = home.state / "daemon.log"

    home.hook("PreToolUse", home.edit("a"))
    until(lambda: log.exists() and log.read_text().endswith("\n"), "it has said why")
    for _ in range(3):
        home.hook("PreToolUse", home.edit("a"))

    assert log.read_text() == f"fairlead: {home.state}/run/daemon.lock: cannot be created: Is a directory\n"
    assert len(home.spooled()) == 4


@linux_only
def test_many_events_at_once_end_with_one_daemon(open_home: DaemonHome) -> None:
    home = open_home
    hooks = []
    for _ in range(20):
        hook = subprocess.Popen(
            [str(LAUNCHER), "PreToolUse"], stdin=subprocess.PIPE, env=home.environment(), cwd=home.project
        )
        hooks.append(hook)
    for hook in hooks:
        assert hook.stdin is not None
        hook.stdin.write(home.edit("a"))
        hook.stdin.close()
    assert [hook.wait(PATIENCE) for hook in hooks] == [0] * 20

    assert len(home.daemons()) <= 3
    until(lambda: pid_of(home) and not home.spooled(), "a daemon has come and taken them in")

    assert len(home.happened()) == 20
    assert set(ids(home).values()) == {1}
    assert len([record for record in home.journal() if isinstance(record, DaemonRecord)]) == 1


@linux_only
def test_one_that_comes_second_does_not_wait_to_follow_the_first(home: DaemonHome) -> None:
    """Else it would take over when a person has stopped the first. For one that goes it waits for 10 seconds."""
    with home.daemon() as first:
        begun = monotonic()
        second = home.start("--on-demand")
        assert (second.wait(PATIENCE), first.poll()) == (0, None)
        assert monotonic() - begun < 9


def test_the_daemon_has_no_secrets_of_the_session_that_began_it(open_home: DaemonHome) -> None:
    home = open_home
    secrets = {"CLAUDE_CODE_MESSAGING_TOKEN": "s3cret", "ANTHROPIC_API_KEY": "s3cret", "XDG_DATA_HOME": "/kept"}

    home.hook("PreToolUse", home.edit("a"), **secrets)
    until(lambda: pid_of(home), "a daemon has come")
    environment = Path(f"/proc/{pid_of(home)}/environ").read_text()

    assert "s3cret" not in environment
    assert "XDG_DATA_HOME=/kept" in environment
    assert Path(f"/proc/{pid_of(home)}/cwd").readlink() == Path("/")


def test_the_daemon_keeps_nothing_open_that_the_client_had_open(open_home: DaemonHome) -> None:
    """A client that waits for the end of a pipe would wait for half an hour."""
    home = open_home
    reading, writing = os.pipe()
    done = subprocess.run(
        [str(LAUNCHER), "PreToolUse"],
        input=home.edit("a"),
        env=home.environment(),
        cwd=home.project,
        capture_output=True,
        pass_fds=[writing],
        check=False,
    )
    os.close(writing)
    until(lambda: pid_of(home), "a daemon has come")

    assert done.returncode == 0
    os.set_blocking(reading, False)
    assert os.read(reading, 1) == b"", "it is closed at the other end"
    os.close(reading)


def test_after_a_killed_daemon_the_next_event_is_answered_and_another_comes(open_home: DaemonHome) -> None:
    home = open_home
    daemon = home.start()
    home.hook("PreToolUse", home.edit("a"))
    daemon.kill()
    daemon.wait()

    home.hook("PreToolUse", home.edit("b"))
    until(lambda: pid_of(home) and not home.spooled(), "another daemon has come")

    assert roads(home) == ["daemon", "cold"]


# -- being replaced ------------------------------------------------------------------------------------


def test_a_newer_launcher_makes_an_older_daemon_go_and_nothing_is_lost(open_home: DaemonHome) -> None:
    home = open_home
    old = home.start()
    answers = []

    def work() -> None:
        answers.extend([home.hook("PreToolUse", home.edit("a")).exit_code for _ in range(8)])

    sessions = [threading.Thread(target=work) for _ in range(2)]
    for session in sessions:
        session.start()
    answer = talk(home.socket, "POST", "/v1/events/PreToolUse", home.edit("a"), fairlead_version="99.0.0")
    for session in sessions:
        session.join()

    assert (answer.status, answer.text) == (426, "this daemon is 0.1.0, and shuts down")
    assert old.wait(PATIENCE) == 0
    until(lambda: pid_of(home) and not home.spooled(), "a new daemon has come and taken in what came between")
    assert answers == [0] * 16
    assert len(home.happened()) == 16
    assert set(ids(home).values()) == {1}
    assert pid_of(home) != old.pid


def test_an_older_launcher_is_answered(home: DaemonHome) -> None:
    with home.daemon():
        for version in ("0.0.9", "0.1.0", "", "nonsense", "0.1"):
            answer = talk(home.socket, "POST", "/v1/events/PreToolUse", home.edit("a"), fairlead_version=version)
            assert answer.status == 200, version

        assert home.status() is not None


# -- another home --------------------------------------------------------------------------------------


def test_a_caller_with_other_folders_decides_for_itself(home: DaemonHome) -> None:
    home.policy("preToolUse: {uneditableFiles: [kept.txt]}\n")
    with home.daemon():
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            done = home.hook("PreToolUse", home.edit("kept.txt"), **{name: str(home.folder / "elsewhere")})
            assert done.exit_code == 2, name

        until(lambda: not home.spooled(), "the daemon has taken them in")
        assert roads(home) == ["cold"] * 4
        assert "\nfairlead_elsewhere_total 4\n" in home.ask("GET", "/metrics")


def test_a_caller_without_any_folder_of_its_own_decides_for_itself(home: DaemonHome) -> None:
    with home.daemon():
        answer = talk(home.socket, "POST", "/v1/events/PreToolUse", home.edit("a"), fairlead_env="")

    assert answer.status == 421


def test_a_home_may_be_named_relative_to_where_one_is(home: DaemonHome) -> None:
    """The daemon leaves the folder that it was begun in, and a launcher may be in another."""
    home.env["FAIRLEAD_HOME"] = "../state"
    started = home.fairlead("daemon", "start")
    assert started.exit_code == 0, started

    home.hook("PreToolUse", home.edit("a"))

    assert roads(home) == ["daemon"]
    assert home.hook("PreToolUse", home.edit("a"), FAIRLEAD_HOME=f"{home.folder}/project/../state/").exit_code == 0
    assert roads(home) == ["daemon", "daemon"]
    assert home.fairlead("daemon", "stop").exit_code == 0
