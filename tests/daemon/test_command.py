"""`fairlead daemon run | start | stop | status`, for people."""

from __future__ import annotations

import signal
import subprocess
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import FAIRLEAD, PATIENCE, Done, until

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome


NO_DURATION = "--idle: expected a duration such as 30s, 10m, 2h or 1d, or a number of seconds above 0, got"


def begin(home: DaemonHome, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(FAIRLEAD), *words], env=home.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end(process: subprocess.Popen[str]) -> Done:
    stdout, stderr = process.communicate(timeout=PATIENCE)
    return Done(process.returncode, stdout, stderr)


def test_a_daemon_is_begun_asked_and_stopped(home: DaemonHome) -> None:
    none = home.fairlead("daemon", "status")
    assert (none.exit_code, none.stderr) == (3, "")
    assert none.stdout == f"no daemon is running (no socket at {home.socket}); start one: fairlead daemon start\n"
    assert home.fairlead("daemon", "status", "--json").answer["running"] is False

    started = home.fairlead("daemon", "start")
    assert started.exit_code == 0, started
    assert started.stdout.startswith("started: pid ")
    assert started.stdout.endswith(f"listens at {home.socket}\n")

    again = home.fairlead("daemon", "start")
    assert (again.exit_code, again.stdout[:20]) == (0, "running already: pid")

    status = home.fairlead("daemon", "status")
    assert status.exit_code == 0
    assert [line.split()[0] for line in status.stdout.splitlines()] == [
        "running",
        "listens",
        "events",
        "memory",
        "loop",
        "attention",
    ]
    told = home.fairlead("daemon", "status", "--json").answer
    assert told["running"] is True
    assert told["listens"] == [str(home.socket)]

    stopped = home.fairlead("daemon", "stop")
    assert (stopped.exit_code, stopped.stdout) == (0, f"stopped: pid {told['pid']}\n")
    assert home.fairlead("daemon", "stop") == Done(0, "no daemon is running\n", "")


def test_what_a_killed_daemon_left_is_no_daemon(home: DaemonHome) -> None:
    daemon = home.start()
    daemon.kill()
    daemon.wait()

    status = home.fairlead("daemon", "status")

    assert status == Done(3, f"the daemon at {home.socket} is gone; start another: fairlead daemon start\n", "")
    assert home.fairlead("daemon", "stop") == Done(0, "no daemon is running\n", "")


def test_without_a_command_the_help_is_on_stderr(home: DaemonHome) -> None:
    done = home.fairlead("daemon")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Usage: fairlead daemon COMMAND [OPTIONS]\n")


def test_the_idle_time_is_a_duration_and_the_daemon_gets_it(home: DaemonHome) -> None:
    started = home.fairlead("daemon", "start", "--idle", "2s")
    assert started.exit_code == 0, started
    until(lambda: home.status() is None, "it stops by itself")


def test_run_stays_and_ends_by_a_signal(home: DaemonHome) -> None:
    daemon = begin(home, "daemon", "run", "--port", "0")
    until(lambda: home.status() is not None, "it answers")

    daemon.send_signal(signal.SIGINT)
    done = end(daemon)

    assert done.exit_code == 0
    assert done.stderr.startswith(f"fairlead: listening at {home.socket} and http://127.0.0.1:")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["strat"], "unknown command 'strat' of daemon; did you mean start?"),
        (["start", "--prot", "1"], "unknown option '--prot'; did you mean --port?"),
        (["run", "--idle", "soon"], f"{NO_DURATION} 'soon'"),
        (["run", "--idle"], "--idle needs a value"),
        (["start", "--idle", "nan"], f"{NO_DURATION} 'nan'"),
        (["start", "--port=70000"], "--port: expected a whole number, 0 to 65535, got '70000'"),
        (["start", "--port", "-1"], "--port: expected a whole number, 0 to 65535, got '-1'"),
        (["stop", "now"], "daemon stop: unexpected argument 'now'; see fairlead daemon stop --help"),
        (["status", "--jsno"], "unknown option '--jsno'; did you mean --json?"),
    ],
)
def test_a_wrong_command_line_is_told(home: DaemonHome, words: list[str], message: str) -> None:
    assert home.fairlead("daemon", *words) == Done(1, "", f"fairlead: {message}\n")


def test_a_port_that_is_taken_is_told(home: DaemonHome) -> None:
    with home.daemon("--port", "0"):
        status = home.status()
        assert status is not None
        port = status["listens"][1].rpartition(":")[2]
        own = str(home.folder / "s2")

        run = home.fairlead("daemon", "run", "--port", port, FAIRLEAD_HOME=own)
        start = home.fairlead("daemon", "start", "--port", port, FAIRLEAD_HOME=own)

    message = f"port {port}: cannot listen there: Address already in use; choose another with --port"
    assert run == Done(1, "", f"fairlead: {message}\n")
    assert start.exit_code == 1
    assert f"the daemon did not start: fairlead: {message}; see {own}/daemon.log" in start.stderr


def test_a_daemon_that_hangs_is_told_in_time_and_events_are_answered(home: DaemonHome) -> None:
    home.policy("preToolUse: {uneditableFiles: [kept.txt]}\n")
    with home.daemon() as daemon:
        daemon.send_signal(signal.SIGSTOP)
        begun = monotonic()
        asked = [begin(home, "daemon", word) for word in ("status", "stop")]

        blocked = home.hook("PreToolUse", home.edit("kept.txt"), FAIRLEAD_DEADLINE_MS="200")
        let = home.hook("PreToolUse", home.edit("src/other.txt"), FAIRLEAD_DEADLINE_MS="200")
        assert (blocked.exit_code, let.exit_code) == (2, 0)
        assert monotonic() - begun < 5

        status, stop = map(end, asked)
        assert monotonic() - begun < 15
        hangs = f"the daemon does not answer within 5 s (pid {daemon.pid}); if it hangs, end it: kill -9 {daemon.pid}"
        assert status == Done(1, f"{hangs}\n", "")
        assert stop == Done(1, "", f"fairlead: {hangs}\n")

        daemon.send_signal(signal.SIGCONT)
        assert daemon.wait(PATIENCE) == 0, "it goes on, and finds that it was told to stop"
    with home.daemon():
        assert len(home.happened()) == 2, "each event once"
        assert home.spooled() == []


def test_a_state_folder_that_cannot_be_made_is_told(home: DaemonHome) -> None:
    home.state.rmdir()
    home.state.write_text("in the way")
    done = home.fairlead("daemon", "start")
    assert (done.exit_code, done.stdout) == (1, "")
    advice = "it must be a folder: remove what is there, or set FAIRLEAD_HOME"
    assert done.stderr == f"fairlead: the daemon cannot be started: {home.state}: File exists; {advice}\n"
