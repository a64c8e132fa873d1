"""Plans without Python: the launcher runs the steps, the daemon settles them, whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Literal, NamedTuple

import pytest
from daemon.daemon_home import LAUNCHER, PATIENCE, processes, until
from kills import ROUND, kill_rounds

from fairlead.journal import CommandsRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome, DaemonProcess

CHECK = 'echo "$ROUND" >> ran.{number}; sleep 0.03; sleep 0.02; {end}'
POLICY = {
    "stop": {"commands": [{"run": CHECK.format(number=1, end="true")}, {"run": CHECK.format(number=2, end="exit 1")}]}
}

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")


@pytest.fixture
def no_python(home: DaemonHome) -> Iterator[str]:
    """A program that is run in place of Python, and writes down that it was."""
    program = home.folder / "python"
    program.write_text('#!/bin/sh\necho "$@" >> "$HOME/python-was-run"\nexit 1\n')
    program.chmod(0o755)
    yield str(program)
    assert not (home.folder / "python-was-run").exists()


def stop(home: DaemonHome) -> bytes:
    return home.payload(hook_event_name="Stop", stop_hook_active=False)


def records(home: DaemonHome) -> list[CommandsRecord]:
    return [record for record in home.journal() if isinstance(record, CommandsRecord)]


def test_a_check_is_run_without_python(home: DaemonHome, no_python: str) -> None:
    home.policy("stop: {commands: [{run: 'echo seen; exit 3', message: No., showStdout: true}]}")
    with home.daemon():
        done = home.hook("Stop", stop(home), "--python", no_python)
        assert (done.exit_code, done.answer) == (0, {"decision": "block", "reason": "No.\nStdout: seen"})
        (record,) = records(home)
    assert (record.verdict, [(step.status, step.exit) for step in record.steps]) == ("blocked", [("failed", 3)])


@pytest.mark.parametrize("event", ["SubagentStop", "SubagentStart", "SessionStart", "PostToolUse", "UserPromptSubmit"])
def test_commands_of_other_events_are_run_without_python(home: DaemonHome, no_python: str, event: str) -> None:
    home.policy(
        "subagentStop: {commands: {'*': [{run: touch ran}]}}\n"
        "subagentStart: {commands: {'*': [{run: touch ran}]}}\n"
        "sessionStart: {commands: {'*': [{run: touch ran}]}}\n"
        "postToolUse: {commands: {'*': [{run: touch ran}]}}\n"
        "userPromptSubmit: {slashCommands: {commands: {'/x': [{run: touch ran}]}}}\n"
    )
    fields: dict[str, dict[str, object]] = {
        "SubagentStop": {"agent_id": "a", "agent_type": "t", "stop_hook_active": False, "agent_transcript_path": "/t"},
        "SubagentStart": {"agent_id": "a", "agent_type": "t"},
        "SessionStart": {"source": "startup"},
        "PostToolUse": {"tool_name": "Read", "tool_input": {}, "tool_response": {}, "tool_use_id": "u"},
        "UserPromptSubmit": {"prompt": "/x"},
    }
    with home.daemon():
        done = home.hook(event, home.payload(hook_event_name=event, **fields[event]), "--python", no_python)
    assert done.exit_code == 0, done.stderr
    assert (home.project / "ran").exists()


def test_a_check_that_depends_on_changed_files_is_run_without_python(home: DaemonHome, no_python: str) -> None:
    home.policy(
        "stop: {commands: [{run: touch for-go, when: '*.go'}, {run: touch for-py, when: '*.py'}, {run: exit 1}]}"
    )
    subprocess.run(["git", "init", "-q", home.project], check=True)
    (home.project / "a.py").touch()
    with home.daemon():
        for _ in range(2):
            done = home.hook("Stop", stop(home), "--python", no_python)
            assert done.answer["decision"] == "block"
        steps = records(home)[-1].steps
    assert [step.status for step in steps] == ["skipped", "passed", "failed"]
    assert sorted(file.name for file in home.project.glob("for-*")) == ["for-py"]


def test_an_agent_waits_for_mail_after_its_checks_without_python(home: DaemonHome, no_python: str) -> None:
    home.policy("mail: {stay: always, wait: 1}\nstop: {commands: [{run: touch ran}]}")
    with home.daemon():
        until(home.has_mail, "the mail is open")
        start = home.payload(hook_event_name="SessionStart", source="startup")
        assert home.hook("SessionStart", start, "--python", no_python).exit_code == 0
        done = home.hook("Stop", stop(home), "--python", no_python)
    assert (done.exit_code, done.answer["reason"].partition(".")[0]) == (0, "No new messages")
    assert (home.project / "ran").exists()


def test_the_daemon_says_the_same_as_python(home: DaemonHome) -> None:
    home.policy("stop: {commands: [{run: 'seq 30; echo e >&2; exit 3', showStdout: true, showStderr: true}]}")
    with home.daemon():
        native = home.hook("Stop", stop(home))
    assert native == home.cold("Stop", stop(home))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows the programs that are started")
def test_a_trace_of_a_plan_shows_no_python(home: DaemonHome) -> None:
    home.policy("stop: {commands: [{run: 'true'}]}")
    trace = home.folder / "trace"
    tracer = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=execve"]
    with home.daemon():
        assert home.hook("Stop", stop(home)).exit_code == 0
        done = home.run([*tracer, str(LAUNCHER), "Stop"], stop(home))
    assert done.exit_code == 0, done.stderr
    first, *others = [Path(call).name for call in re.findall(r'execve\("([^"]+)".* = 0', trace.read_text())]
    assert first == "fairlead-hook"
    assert set(others) <= {"sh", "bash", "dash", "true"}


# -- kills ---------------------------------------------------------------------------------------------


class Round(NamedTuple):
    """What one launcher came to."""

    number: int
    victim: Literal["launcher", "daemon", "step"]
    was_killed: bool
    exit_code: int
    stdout: str


@needs_proc
@pytest.mark.parametrize(("seed", "kills"), kill_rounds(24))
@pytest.mark.timeout(60 + ROUND * 10)
def test_no_step_runs_twice_no_gate_opens_and_nothing_is_left_whoever_is_killed(
    home: DaemonHome, seed: int, kills: int
) -> None:
    home.policy(json.dumps(POLICY))
    rng = random.Random(seed)
    daemon = home.start()
    rounds = []
    for number in range(kills):
        if daemon.poll() is not None:
            daemon = home.start()
        rounds.append(_round(home, number, rng, daemon))
    for one in rounds:
        blocked = one.exit_code == 2 or '"decision":"block"' in one.stdout.replace(" ", "")
        assert blocked or (one.victim == "launcher" and one.was_killed), one
    for file in ("ran.1", "ran.2"):
        often = Counter((home.project / file).read_text().split())
        assert max(often.values()) == 1, often.most_common(3)
    until(lambda: not _steps(home), "no step is left")
    if daemon.poll() is None:
        daemon.terminate()
        daemon.wait(PATIENCE)
    with home.daemon():
        until(lambda: not home.spooled(), "the spool is taken")
    events = Counter(record.id for record in home.happened() if record.event == "Stop")
    assert set(events.values()) == {1}
    assert len(events) >= sum(not (one.victim == "launcher" and one.was_killed) for one in rounds)


def _round(home: DaemonHome, number: int, rng: random.Random, daemon: DaemonProcess) -> Round:
    process = subprocess.Popen(
        [str(LAUNCHER), "Stop"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=home.project,
        env=home.environment(ROUND=str(number), FAIRLEAD_NO_DAEMON="1"),
    )
    assert process.stdin is not None
    process.stdin.write(stop(home))
    process.stdin.close()
    process.stdin = None
    victim: Literal["launcher", "daemon", "step"] = rng.choice(["launcher", "daemon", "step"])
    sleep(rng.random() * 0.13)  # the moment of the kill is what is tested
    was_alive = process.poll() is None
    pids = {"launcher": [process.pid] if was_alive else [], "daemon": [daemon.pid], "step": _steps(home)}[victim]
    for pid in pids[:1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if victim == "daemon":
        daemon.wait(PATIENCE)
    stdout, _ = process.communicate(timeout=PATIENCE)
    return Round(number, victim, process.returncode == -signal.SIGKILL, process.returncode, stdout.decode())


def _steps(home: DaemonHome) -> list[int]:
    """Return the shells that run a step."""
    own = f"HOME={home.folder}".encode()
    return [pid for pid, words, env in processes() if own in env and b"-c" in words and words[0] in {b"bash", b"sleep"}]
