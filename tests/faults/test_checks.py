"""A check that cannot be made blocks, and says which check and why; at `Stop` not for ever."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import FAIRLEAD, LAUNCHER
from launcher.fakes import Daemon, answer_202

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

ONLY_PYTHON = "stop: {maxBlocks: 3, commands: [{run: 'true', notifyPerCommand: true}]}\n"
"""A plan that the compiled launcher leaves to Python."""


def stop(home: DaemonHome, *, active: bool = True) -> bytes:
    return home.payload(hook_event_name="Stop", stop_hook_active=active)


def test_a_stop_that_can_never_be_checked_blocks_some_times_and_then_tells_the_user(home: DaemonHome) -> None:
    home.policy(ONLY_PYTHON)
    reason = "fairlead cannot run the policy's check, so the event is blocked: cannot run /no/python: no such file"
    with home.daemon():
        for active in (False, True, True):
            done = home.hook("Stop", stop(home, active=active), "--python", "/no/python")
            assert (done.exit_code, done.stdout, done.stderr) == (
                2,
                "",
                f"{reason}. Reinstall Fairlead if this continues\n",
            )
        done = home.hook("Stop", stop(home), "--python", "/no/python")
        message = (
            "Kept going 3 times in a row (stop.maxBlocks), the agent may stop now, although its check could not be run "
            "once: true. Reinstall Fairlead if this continues"
        )
        assert (done.exit_code, done.answer, done.stderr) == (0, {"systemMessage": message}, "")
        again = home.hook("Stop", stop(home, active=False), "--python", "/no/python")
        assert again.exit_code == 2, "the next turn is checked again"
    assert [(record.event, record.verdict) for record in home.happened()] == [("Stop", "none")] * 3 + [
        ("Stop", "said"),
        ("Stop", "none"),
    ]


def test_a_check_that_was_run_sets_the_count_back(home: DaemonHome) -> None:
    home.policy(ONLY_PYTHON)
    with home.daemon():
        for _ in range(2):
            assert home.hook("Stop", stop(home), "--python", "/no/python").exit_code == 2
            assert home.hook("Stop", stop(home), "--python", "/no/python").exit_code == 2
            done = home.hook("Stop", stop(home))
            assert (done.exit_code, done.stdout) == (0, "")


@pytest.mark.parametrize("command", [LAUNCHER, FAIRLEAD], ids=["launcher", "python"])
@pytest.mark.parametrize("with_daemon", [True, False], ids=["daemon", "cold"])
def test_a_failing_check_blocks_though_the_client_ignores_sigchld(
    home: DaemonHome, command: object, *, with_daemon: bool
) -> None:
    home.policy("stop: {commands: [{run: 'exit 3', notifyPerCommand: true}]}\n")

    def hook() -> None:
        done = subprocess.run(
            [str(command), "Stop"],
            input=stop(home),
            capture_output=True,
            cwd=home.project,
            env=home.environment(),
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
            check=False,
        )
        assert done.returncode == 0
        answer = json.loads(done.stdout)
        assert answer == {"decision": "block", "reason": "Command failed with exit code 3: exit 3"}

    if with_daemon:
        with home.daemon():
            hook()
    else:
        hook()


@pytest.mark.parametrize("plan", [b"garbage", b"{}x", b'{"plan":7}', b'{"plan":{"steps":"x"}}'])
def test_a_plan_that_cannot_be_read_is_decided_again(home: DaemonHome, plan: bytes) -> None:
    home.policy("stop: {commands: [{run: 'exit 1'}]}\n")
    home.socket.parent.mkdir(parents=True)
    with Daemon(home.socket) as daemon:
        daemon.answer = answer_202(plan)
        done = home.hook("Stop", stop(home))
    assert (done.exit_code, done.answer["decision"]) == (0, "block")
    assert done.answer["reason"] == "Command failed with exit code 1: exit 1"
    (spooled,) = home.spooled()
    assert json.loads(spooled.read_bytes())["verdict"] == "blocked"


def test_a_slash_command_whose_check_cannot_be_started_is_blocked(home: DaemonHome) -> None:
    home.policy("userPromptSubmit: {slashCommands: {commands: {deploy: [{run: 'true', shell: no-such-shell}]}}}\n")
    payload = home.payload(hook_event_name="UserPromptSubmit", prompt="/deploy now")
    reason = (
        "This could not be checked, so it is blocked: Command could not be started (cannot start 'no-such-shell': "
        "[Errno 2] No such file or directory: 'no-such-shell'): true"
    )
    cold = home.hook("UserPromptSubmit", payload)
    with home.daemon():
        warm = home.hook("UserPromptSubmit", payload)
    for done in (cold, warm):
        assert (done.exit_code, done.answer) == (2, {"decision": "block", "reason": reason})
        assert done.stderr.endswith(f"{reason}\n")


@pytest.mark.parametrize("with_daemon", [True, False], ids=["daemon", "cold"])
def test_a_policy_that_cannot_be_read_blocks_what_it_may_have_a_check_for(
    home: DaemonHome, *, with_daemon: bool
) -> None:
    """One file is broken and never was valid, so that no file applies: neither the check that another one has."""
    home.policy("stop: {commands: [{run: 'exit 1'}]}\n")
    (home.state / "config.yaml").write_text("stop: [\n")
    why = "The policy cannot be read, so its checks cannot be made: "
    with home.daemon() if with_daemon else nullcontext():
        first, second = home.hook("Stop", stop(home, active=False)), home.hook("Stop", stop(home))
        slash, plain = (
            home.hook("UserPromptSubmit", home.payload(hook_event_name="UserPromptSubmit", prompt=prompt))
            for prompt in ("/deploy now", "deploy now")
        )

    assert (first.exit_code, first.answer["decision"]) == (0, "block")
    assert first.answer["reason"].startswith(f"{why}{home.state}/config.yaml:")
    assert (second.exit_code, list(second.answer)) == (0, ["systemMessage"]), "no agent is kept going for ever"
    assert (slash.exit_code, slash.answer["decision"]) == (2, "block")
    assert (plain.exit_code, list(plain.answer)) == (0, ["systemMessage"]), "the person is told"


@pytest.mark.parametrize("module", ["fairlead.cli.main", "fairlead.clients"])
def test_a_python_that_cannot_load_fairlead_says_so_in_lines_and_advises_what_can_be_done(
    home: DaemonHome, module: str
) -> None:
    """Not `fairlead doctor`, which needs that Python too."""
    site = home.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(f"import sys\nsys.modules['{module}'] = None\n")
    python = home.folder / "python"
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={site} exec {sys.executable} "$@"\n')  # without -E
    python.chmod(0o755)
    done = home.hook("PreToolUse", home.edit("a.txt"), "--python", str(python))
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert "doctor" not in done.stderr
    assert f"ModuleNotFoundError: import of {module} halted" in done.stderr
