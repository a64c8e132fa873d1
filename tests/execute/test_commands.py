"""A plan is run in the caller's process: what commands are given, what comes of them, and that none is left behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from threading import Thread
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

from fairlead import CancellationToken, Event, HookCancelled, HookOutput, parse, stop, user_prompt_submit
from fairlead.decide import Decision, StepResult, plan_outcome, settle
from fairlead.execute import run_commands
from fairlead.policy import Notifications, Plan, Step
from fairlead.policy.commands._planner import plan_commands
from fairlead.policy.config._types import Layer, Policy
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("FAIRLEAD_HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


class Ran(NamedTuple):
    """The results of a plan's commands, and what they mean for the event."""

    output: HookOutput
    stderr: str
    results: tuple[StepResult, ...]

    @property
    def stdout(self) -> str:
        """What the commands printed that are to show it."""
        return "\n".join(r.stdout for r in self.results if r.step.show_stdout and r.stdout.strip())


def run_plan(event: Event, folder: Path, document: dict[str, Any], payload: bytes = b"{}", **options: Any) -> Ran:
    layers = (Layer(f"{folder}/.fairlead.yaml", str(folder), msgspec.convert(document, Policy)),)
    planned = plan_commands(event, layers)
    results = run_commands(planned, payload, **options)
    output, log = plan_outcome(planned, results)
    return Ran(output, "\n".join(log), results)


def at_stop(folder: Path, *commands: dict[str, Any], active: bool | None = None, **section: Any) -> Ran:
    event = parse(make_payload("Stop", session_id="s", stop_hook_active=active))
    return run_plan(event, folder, {"stop": {"commands": list(commands), **section}})


def at_subagent_stop(folder: Path, *commands: dict[str, Any], **options: Any) -> Ran:
    event = parse(make_payload("SubagentStop", session_id="s", agent_id="a1", agent_type="coder"))
    return run_plan(event, folder, {"subagentStop": {"commands": {"*": list(commands)}}}, **options)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    give_up = monotonic() + seconds
    while not condition():
        assert monotonic() < give_up, "waited in vain"
        sleep(0.01)


def is_alive(pid: int) -> bool:
    """A process that has ended and is not reaped yet is not alive."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() != "" and not done.stdout.strip().startswith("Z")


def pid_in(file: Path) -> int:
    wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


# -- what a command is given ---------------------------------------------------------------------------


def test_the_whole_text_is_one_script(project: Path) -> None:
    script = "cd sub\nx=1\nif true; then\n  cat <<EOF\n$x\nEOF\nfi\n# a comment\necho \\\n  $(pwd)"
    (project / "sub").mkdir()
    outcome = at_subagent_stop(project, {"run": script, "showStdout": True})
    assert outcome.stdout == f"1\n{project}/sub"


def test_a_command_gets_the_payload_the_callers_environment_and_ours(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_CALLER", "kept")
    monkeypatch.setenv("CONCLAUDE_TOOL_NAME", "of another event")
    payload = make_payload("SubagentStop", session_id="s", agent_id="a1", agent_type="coder", cwd="/elsewhere")
    raw = json.dumps(payload).encode()
    script = f'cat > stdin; {sys.executable} -c \'import os, json; json.dump(dict(os.environ), open("env", "w"))\''
    document = {"subagentStop": {"commands": {"coder": [{"run": script}]}}}
    outcome = run_plan(parse(raw), project, document, raw)
    assert outcome.results[0].status == "passed"
    assert (project / "stdin").read_bytes() == raw
    env = json.loads((project / "env").read_text())
    assert {name: env[name] for name in ("PATH", "OF_THE_CALLER")} == {
        "PATH": os.environ["PATH"],
        "OF_THE_CALLER": "kept",
    }
    assert "CONCLAUDE_TOOL_NAME" not in env
    expected = {"AGENT_ID": "a1", "SESSION_ID": "s", "HOOK_EVENT": "SubagentStop", "CWD": "/elsewhere"}
    for prefix in ("FAIRLEAD_", "CONCLAUDE_"):
        assert {name: env[prefix + name] for name in expected} == expected
        assert env[prefix + "CONFIG_DIR"] == str(project)
        assert json.loads(env[prefix + "PAYLOAD_JSON"]) == payload


def test_a_payload_of_megabytes_reaches_a_command_that_reads_it_and_one_that_does_not(project: Path) -> None:
    payload = b'{"x": "%s"}' % (b"y" * 5_000_000)
    outcome = at_subagent_stop(
        project, {"run": "wc -c", "showStdout": True}, {"run": "exec 0<&-; true"}, payload=payload
    )
    assert outcome.stdout.strip() == str(len(payload))
    assert [result.status for result in outcome.results] == ["passed", "passed"]


def test_the_folder_and_the_shell_are_those_asked_for(project: Path) -> None:
    (project / "web").mkdir()
    (project / "say").write_text(f"#!{sys.executable}\nimport os, sys\nprint(sys.argv[1:], os.getcwd())\n")
    (project / "say").chmod(0o755)
    command = {"run": "hello", "workingDir": "web", "shell": f"{project}/say --quick", "showStdout": True}
    assert at_subagent_stop(project, command).stdout == f"['--quick', '-c', 'hello'] {project}/web"


# -- subagents: all run, none blocks -------------------------------------------------------------------


def test_commands_of_all_patterns_run_in_order_whatever_fails(project: Path) -> None:
    event = parse(make_payload("SubagentStop", session_id="s", agent_id="coder", agent_type="coder"))
    by_pattern = {
        "*coder": [{"run": "echo 2 >> log; exit 1"}, {"run": "echo 3 >> log; kill -9 $$"}],
        "coder": [{"run": "echo 4 >> log; exit 2", "message": "Fix the lint."}],
        "*": [{"run": "echo 1 >> log; no-such-program"}],
        "tester": [{"run": "echo never >> log"}],
    }
    outcome = run_plan(event, project, {"subagentStop": {"commands": by_pattern}})
    assert (project / "log").read_text() == "1\n2\n3\n4\n"
    assert not outcome.output.blocked
    assert outcome.stderr.splitlines() == [
        "Processing SubagentStop hook: session_id=s, agent_id=coder, subagent_type=coder",
        'Agent \'coder\' matched patterns: ["*", "*coder", "coder"]',
        "Subagent stop command failed: Command failed with exit code 127: echo 1 >> log; no-such-program",
        "Subagent stop command failed: Command failed with exit code 1: echo 2 >> log; exit 1",
        "Subagent stop command failed: Command failed with exit code 137: echo 3 >> log; kill -9 $$",
        "Subagent stop command failed: Command failed with exit code 2: echo 4 >> log; exit 2",
        "Message: Fix the lint.",
    ]
    assert outcome.output.system_message == "\n".join(outcome.stderr.splitlines()[2:])


def test_what_a_subagents_command_shows_reaches_the_person(project: Path) -> None:
    """At SubagentStop: context would keep the subagent going."""
    both = {"run": "echo out; echo err >&2", "showStdout": True, "showStderr": True}
    outcome = at_subagent_stop(project, both, {"run": "echo hidden; echo hidden >&2"})
    assert outcome.output == HookOutput(system_message="Stdout: out\nStderr: err")
    assert "hidden" not in outcome.stderr
    assert outcome.results[1].status == "passed"


def test_what_a_starting_subagents_command_shows_reaches_the_subagent(project: Path) -> None:
    event = parse(make_payload("SubagentStart", session_id="s", agent_id="a1", agent_type="coder"))
    section = {
        "commands": {
            "coder": [{"run": "echo branch main", "showStdout": True}, {"run": "false", "showCommand": False}]
        },
        "context": {"cod*": "Write tests first."},
    }
    outcome = run_plan(event, project, {"subagentStart": section})
    assert outcome.output == HookOutput(
        additional_context="Write tests first.\n\nStdout: branch main",
        system_message="Subagent start command failed: Command failed with exit code 1",
    )
    assert (
        outcome.stderr.splitlines()[0]
        == "Processing SubagentStart hook: session_id=s, agent_id=a1, subagent_type=coder"
    )


def test_a_plan_without_commands_is_no_opinion(project: Path) -> None:
    event = parse(make_payload("SubagentStop", session_id="s", agent_id="a1", agent_type=""))
    outcome = run_plan(event, project, {})
    assert (outcome.output, outcome.results) == (HookOutput(), ())
    assert outcome.stderr == "Processing SubagentStop hook: session_id=s, agent_id=a1"


# -- what is shown -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "printed", "kept"),
    [
        (4, "seq 4", "1\n2\n3\n4"),
        (4, "seq 10", "1\n2\n... (6 lines omitted)\n9\n10"),
        (5, "seq 10", "1\n2\n3\n... (5 lines omitted)\n9\n10"),
        (1, "seq 10", "1\n... (9 lines omitted)"),
        (2, "printf 'a\\n\\n\\nb'", "a\n... (2 lines omitted)\nb"),
        (2, "printf 'a\\r\\nb\\r\\n'", "a\nb"),
        (3, "printf 'caf\\xe9'", "caf\ufffd"),
    ],
)
def test_the_first_and_the_last_lines_are_kept(project: Path, limit: int, printed: str, kept: str) -> None:
    command = {"run": printed, "showStdout": True, "maxOutputLines": limit}
    assert at_subagent_stop(project, command).stdout == kept


def test_each_stream_is_cut_alone(project: Path) -> None:
    command = {"run": "seq 3; seq 5 >&2; exit 1", "showStdout": True, "showStderr": True, "maxOutputLines": 2}
    assert at_stop(project, command).output.reason == (
        "Command failed with exit code 1: seq 3; seq 5 >&2; exit 1\n"
        "Stdout: 1\n... (1 lines omitted)\n3\n"
        "Stderr: 1\n... (3 lines omitted)\n5"
    )


def test_a_gigabyte_is_printed_in_bounded_memory(project: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script = "echo first; yes | head -c 500000000; head -c 500000000 /dev/zero; echo; echo last"
    command = {"run": script, "showStdout": True, "maxOutputLines": 2}
    outcome = at_subagent_stop(project, command)
    assert outcome.stdout == "first\n... (250000001 lines omitted)\nlast"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024  # KiB


def test_a_line_without_end_is_clipped(project: Path) -> None:
    outcome = at_subagent_stop(project, {"run": "head -c 100000 /dev/zero | tr '\\0' x", "showStdout": True})
    assert outcome.stdout == "x" * 8192 + " … (rest of the line omitted)"


# -- stop ----------------------------------------------------------------------------------------------


def test_a_stop_whose_checks_pass_is_no_opinion(project: Path) -> None:
    outcome = at_stop(project, {"run": "echo fine", "showStdout": True}, {"run": "true"})
    assert outcome.output == HookOutput()
    assert outcome.stderr.splitlines() == ["Processing Stop hook: session_id=s", "Stdout: fine"]


def test_the_first_check_that_fails_keeps_the_agent_going(project: Path) -> None:
    outcome = at_stop(project, {"run": "true"}, {"run": "echo no; exit 3"}, {"run": "touch ran"})
    assert outcome.output == HookOutput.block("Command failed with exit code 3: echo no; exit 3")
    assert [result.status for result in outcome.results] == ["passed", "failed"]
    assert not (project / "ran").exists()
    assert outcome.stderr.splitlines()[1] == ("Stop command failed: Command failed with exit code 3: echo no; exit 3")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ({"message": "Tests fail."}, "Tests fail."),
        ({"showCommand": False}, "Command failed with exit code 4"),
        ({"message": "Tests fail.", "showStdout": True}, "Tests fail.\nStdout: out"),
        ({"showCommand": False, "showStderr": True}, "Command failed with exit code 4\nStderr: err"),
    ],
)
def test_the_reason_is_the_message_and_what_is_shown(project: Path, command: dict[str, Any], reason: str) -> None:
    assert at_stop(project, {"run": "echo out; echo err >&2; exit 4", **command}).output.reason == reason


def test_an_empty_stream_is_not_shown(project: Path) -> None:
    command = {"run": "echo; exit 1", "showStdout": True, "showStderr": True, "message": "No."}
    assert at_stop(project, command).output.reason == "No."


def test_a_script_of_many_lines_is_named_by_its_first(project: Path) -> None:
    assert at_stop(project, {"run": "set -e\nfalse\n"}).output.reason == "Command failed with exit code 1: set -e …"


def test_an_infinite_stop_goes_on_when_all_is_well(project: Path) -> None:
    outcomes = [at_stop(project, {"run": "true"}, infinite=True, maxBlocks=1, active=True) for _ in range(4)]
    assert {outcome.output.reason for outcome in outcomes} == {"continue working on the task"}
    assert all(outcome.output.blocked for outcome in outcomes)


def test_an_infinite_stop_says_what_fails_first(project: Path) -> None:
    output = at_stop(project, {"run": "false"}, infinite=True, infiniteMessage="More!").output
    assert output.reason == "Command failed with exit code 1: false"


def test_after_so_many_blocks_in_a_row_the_agent_may_stop(project: Path, home: Path) -> None:
    outputs = [at_stop(project, {"run": "false"}, maxBlocks=2, active=number > 0).output for number in range(4)]
    assert [output.blocked for output in outputs] == [True, True, False, True]
    assert outputs[2].system_message == (
        "Kept going 2 times in a row (stop.maxBlocks), the agent may stop now, although a check still fails: "
        "Command failed with exit code 1: false"
    )
    (counter,) = (home / "blocks").iterdir()
    assert (counter.read_text(), counter.parent.stat().st_mode & 0o777) == ("1", 0o700)


def test_the_user_is_notified_of_a_check_that_was_given_up(project: Path, home: Path) -> None:
    """Even if failures are not shown otherwise: an agent that stops with a failing check looks as if it were done."""
    assert not home.exists(), "nothing was counted yet"
    event = parse(make_payload("Stop", session_id="s", stop_hook_active=True))
    step = Step(run="no-such-check", folder=str(project), cwd=str(project))
    plan = Plan(event_name="Stop", session_id="s", steps=(step,), on_failure="block-first", max_blocks=1)
    decision = Decision(plan=plan, notifications=Notifications(enabled=True, hooks=["*"], show_errors=False))
    results = (StepResult(step=step, status="failed", exit_code=127),)
    assert settle(event, decision, results).output.blocked
    settled = settle(event, decision, results)
    assert not settled.output.blocked
    assert settled.output.system_message is not None
    assert "no-such-check" in settled.output.system_message
    assert [note.status for note in settled.notes] == ["failure"]


def test_a_stop_that_passes_begins_the_count_anew(project: Path, home: Path) -> None:
    for _ in range(3):
        assert at_stop(project, {"run": "false"}, maxBlocks=2).output.blocked
        assert not at_stop(project, {"run": "true"}, maxBlocks=2).output.blocked
        assert list((home / "blocks").iterdir()) == []


def test_a_new_turn_begins_the_count_anew(project: Path) -> None:
    assert all(at_stop(project, {"run": "false"}, maxBlocks=1, active=False).output.blocked for _ in range(3))


def test_counts_of_sessions_long_gone_are_swept_away(project: Path, home: Path) -> None:
    (home / "blocks").mkdir(parents=True)
    for name, days in (("old", 31), ("young", 29)):
        (home / "blocks" / name).write_text("1")
        os.utime(home / "blocks" / name, times=(time() - days * 86400,) * 2)
    at_stop(project, {"run": "false"})
    names = {file.name for file in (home / "blocks").iterdir()}
    assert ("old" in names, "young" in names, len(names)) == (False, True, 2)


def test_sessions_are_counted_apart(project: Path) -> None:
    document = {"stop": {"commands": [{"run": "false"}], "maxBlocks": 1}}
    assert all(run_plan(stop(name), project, document).output.blocked for name in ("one", "two", "three"))


def test_a_budget_of_zero_is_no_limit(project: Path, home: Path) -> None:
    assert all(at_stop(project, {"run": "false"}, maxBlocks=0).output.blocked for _ in range(8))
    assert not home.exists()


def test_a_count_that_cannot_be_kept_is_said_and_the_check_still_blocks(project: Path, home: Path) -> None:
    home.write_text("no folder")
    outcome = at_stop(project, {"run": "false"})
    assert outcome.output.blocked
    assert outcome.stderr.splitlines()[-1].startswith("stop.maxBlocks cannot count: ")


def test_checks_in_parallel_run_at_once(project: Path) -> None:
    """Each waits for the other: in turn, the first would never end."""
    meet = "mkfifo {own}; echo > {other}_here; until [ -e {own}_here ]; do sleep 0.01; done; echo {own}; exit 1"
    first, second = meet.format(own="a", other="b"), meet.format(own="b", other="a")
    checks = [
        {"run": run, "showStdout": True, "message": f"{n}", "timeout": 20} for n, run in ((1, first), (2, second))
    ]
    outcome = at_stop(project, {"run": "true"}, *checks, parallel=True)
    assert outcome.output.reason == "1\nStdout: a"
    assert [result.status for result in outcome.results] == ["passed", "failed", "failed"]


def test_of_checks_in_parallel_the_first_in_order_decides_however_late_it_fails(project: Path) -> None:
    late = {"run": "until [ -e done ]; do sleep 0.01; done; exit 1", "message": "first", "timeout": 20}
    early = {"run": "touch done; exit 1", "message": "second", "timeout": 20}
    assert at_stop(project, late, early, parallel=True).output.reason == "first"


# -- exit code 2 ---------------------------------------------------------------------------------------


def task_completed(folder: Path, *commands: dict[str, Any]) -> Ran:
    event = parse(make_payload("TaskCompleted", session_id="s", task_subject="ship it"))
    return run_plan(event, folder, {"taskCompleted": {"commands": {"ship*": list(commands)}}})


def test_exit_code_2_blocks_where_the_event_may_block(project: Path) -> None:
    outcome = task_completed(project, {"run": "exit 1"}, {"run": "exit 2"}, {"run": "touch ran"})
    assert outcome.output == HookOutput.block("TaskCompleted hook blocked by command")
    assert outcome.stderr == "", "the client reads the reason there"
    assert not (project / "ran").exists()


def test_a_block_has_the_message_and_what_is_shown(project: Path) -> None:
    command = {"run": "echo why >&2; exit 2", "message": "Not yet.", "showStderr": True}
    assert task_completed(project, command).output.reason == "Not yet.\nStderr: why"


def test_any_other_failure_is_logged(project: Path) -> None:
    outcome = task_completed(project, {"run": "exit 1"}, {"run": "exec sleep 60", "timeout": 1, "onFailure": "pass"})
    assert outcome.output == HookOutput()
    assert outcome.stderr.splitlines() == [
        "Processing TaskCompleted hook: session_id=s",
        "TaskCompleted command failed: Command failed with exit code 1: exit 1",
        "TaskCompleted command failed: Command timed out after 1 seconds: exec sleep 60",
    ]


UNCHECKED = {
    "exit 127": "Command failed with exit code 127: exit 127",
    "no-such-program": "Command failed with exit code 127: no-such-program",
    "kill -9 $$": "Command failed with exit code 137: kill -9 $$",
    "exec sleep 60": "Command timed out after 1 seconds: exec sleep 60",
}


@pytest.mark.parametrize("run", UNCHECKED)
def test_a_check_that_could_not_be_made_blocks_unless_it_may_pass(project: Path, run: str) -> None:
    slash = {"slashCommands": {"commands": {"deploy": [{"run": run, "timeout": 1}]}}}
    outcome = run_plan(user_prompt_submit("s", "/deploy"), project, {"userPromptSubmit": slash})
    assert outcome.output == HookOutput.block(f"This could not be checked, so it is blocked: {UNCHECKED[run]}")

    slash["slashCommands"]["commands"]["deploy"][0]["onFailure"] = "pass"
    outcome = run_plan(user_prompt_submit("s", "/deploy"), project, {"userPromptSubmit": slash})
    assert outcome.output == HookOutput()
    assert outcome.stderr.splitlines()[-1] == f"UserPromptSubmit command failed: {UNCHECKED[run]}"

    passing = at_stop(project, {"run": run, "timeout": 1, "onFailure": "pass"}, {"run": "echo then > ran"})
    assert (passing.output, (project / "ran").read_text()) == (HookOutput.allow(), "then\n")
    blocking = at_stop(project, {"run": run, "timeout": 1}, {"run": "echo then > not"})
    assert (blocking.output.blocked, (project / "not").exists()) == (True, False)


def test_a_check_in_a_folder_that_is_gone_blocks(project: Path) -> None:
    outcome = task_completed(project, {"run": "true", "workingDir": "gone"}, {"run": "echo then > not"})
    assert outcome.output.reason is not None
    assert outcome.output.reason.startswith("This could not be checked, so it is blocked: Command could not be started")
    assert not (project / "not").exists()


def test_a_failure_that_is_none_of_these_is_as_before(project: Path) -> None:
    assert task_completed(project, {"run": "exit 255"}).output == HookOutput()
    assert at_stop(project, {"run": "exit 1", "onFailure": "pass"}).output.blocked


def test_after_a_tool_nothing_blocks_and_what_is_shown_reaches_the_model(project: Path) -> None:
    event = parse(make_payload("PostToolUse", tool_name="Edit"))
    section = {"commands": {"Edit": [{"run": "echo lint; exit 2", "showStdout": True}]}}
    outcome = run_plan(event, project, {"postToolUse": section})
    assert outcome.output == HookOutput(additional_context="Stdout: lint")


def test_a_slash_command_is_blocked_by_exit_code_2_and_a_prompts_own_commands_only_watch(project: Path) -> None:
    section = {
        "contextRules": [{"pattern": "deploy", "prompt": "Mind the freeze."}],
        "commands": [{"run": "exit 2"}],
        "slashCommands": {"commands": {"/deploy": [{"run": "test $CONCLAUDE_SLASH_COMMAND_ARGS != prod || exit 2"}]}},
    }
    document = {"userPromptSubmit": section}
    outcome = run_plan(user_prompt_submit("s", "/deploy test"), project, document)
    assert outcome.output == HookOutput(additional_context="Mind the freeze.")
    outcome = run_plan(user_prompt_submit("s", "/deploy prod"), project, document)
    assert outcome.output == HookOutput.block(
        "Slash command blocked by hook (exit code: 2): test $CONCLAUDE_SLASH_COMMAND_ARGS != prod || exit 2"
    )


def test_a_worktree_is_where_its_command_says_last(project: Path) -> None:
    event = parse(make_payload("WorktreeCreate", name="fix"))
    command = "echo making it; echo ../trees/$CONCLAUDE_WORKTREE_NAME; echo"
    outcome = run_plan(event, project, {"worktreeCreate": {"command": command}})
    assert outcome.output == HookOutput(extra={"worktreePath": f"{project}/../trees/fix"})


@pytest.mark.parametrize(
    ("command", "reason"),
    [("true", "WorktreeCreate command printed no path"), ("exit 5", "Command failed with exit code 5: exit 5")],
)
def test_without_a_path_there_is_no_worktree(project: Path, command: str, reason: str) -> None:
    outcome = run_plan(parse(make_payload("WorktreeCreate")), project, {"worktreeCreate": {"command": command}})
    assert outcome.output == HookOutput.block(reason)


# -- time, and what is left behind ---------------------------------------------------------------------


def test_a_check_that_takes_too_long_blocks_and_is_killed(project: Path) -> None:
    command = {"run": "echo so far; echo $$ > pid; exec sleep 600", "timeout": 1, "showStdout": True}
    outcome = at_stop(project, command)
    assert outcome.output.reason == (
        "This could not be checked, so it is blocked: Command timed out after 1 seconds: "
        "echo so far; echo $$ > pid; exec sleep 600\nStdout: so far"
    )
    assert not is_alive(pid_in(project / "pid"))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", id="ignores SIGTERM"),
        pytest.param("(trap '' TERM; sleep 600) & echo $! > pid; wait", id="forks"),
        pytest.param("exec >&- 2>&- <&-; echo $$ > pid; sleep 600", id="closes its output"),
        pytest.param("echo $$ > pid; yes", id="prints for ever"),
    ],
)
def test_nothing_of_a_command_outlives_its_time(project: Path, script: str) -> None:
    outcome = at_stop(project, {"run": script, "timeout": 1, "message": "Too slow."})
    assert outcome.output.reason is not None
    assert outcome.output.reason.startswith("Too slow.\nThis could not be checked, so it is blocked: Command timed out")
    assert outcome.results[0].status == "timed out"
    pid = pid_in(project / "pid")
    wait_for(lambda: not is_alive(pid))


def test_a_process_left_in_the_background_is_not_waited_for(project: Path) -> None:
    outcome = at_subagent_stop(project, {"run": "sleep 600 & echo $! > pid; echo started", "showStdout": True})
    assert outcome.stdout == "started"
    os.kill(pid_in(project / "pid"), signal.SIGKILL)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ({"shell": "no-such-shell"}, "cannot start 'no-such-shell': [Errno 2] No such file or directory"),
        ({"workingDir": "gone"}, "cannot start 'bash' in {project}/gone: [Errno 2] No such file or directory"),
    ],
)
def test_a_command_that_cannot_be_started_fails(project: Path, command: dict[str, Any], error: str) -> None:
    outcome = at_stop(project, {"run": "true", **command})
    assert outcome.output.blocked
    assert (outcome.output.reason or "").startswith(
        f"This could not be checked, so it is blocked: Command could not be started ({error.format(project=project)}"
    )
    assert not at_subagent_stop(project, {"run": "true", **command}).output.blocked


def test_the_deadline_is_for_all_commands_together(project: Path) -> None:
    outcome = at_subagent_stop(project, {"run": "sleep 600"}, {"run": "touch ran"}, deadline=monotonic() + 0.3)
    assert [result.status for result in outcome.results] == ["timed out", "not started"]
    assert outcome.stderr.splitlines()[2:] == [
        "Subagent stop command failed: Command timed out after 0.3 seconds: sleep 600",
        "Subagent stop command failed: Command could not be started (no time was left): touch ran",
    ]
    assert not (project / "ran").exists()


@pytest.mark.parametrize("parallel", [False, True])
def test_when_nobody_waits_any_more_all_commands_end(project: Path, parallel: bool) -> None:
    token = CancellationToken()

    def cancel_once_it_runs() -> None:
        pid_in(project / "pid")
        token.cancel()

    canceller = Thread(target=cancel_once_it_runs)
    canceller.start()
    section = {"commands": [{"run": "echo $$ > pid; exec sleep 600"}, {"run": "exec sleep 600"}], "parallel": parallel}
    with pytest.raises(HookCancelled):
        run_plan(stop("s"), project, {"stop": section}, cancellation=token)
    canceller.join()
    assert not is_alive(pid_in(project / "pid"))


def test_commands_in_parallel_end_with_a_caller_that_is_interrupted(project: Path) -> None:
    """Ctrl-C where nobody has a handler for it but Python; whoever started the tests may have it ignored."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from fairlead.execute import run_commands\n"
        "from fairlead.policy.commands._plan import Plan, Step\n"
        f"at = {str(project)!r}\n"
        "steps = tuple(Step(run=f'echo $$ > pid{n}; exec sleep 600', folder=at, cwd=at) for n in (1, 2))\n"
        "run_commands(Plan(event_name='Stop', session_id='s', steps=steps, parallel=True), b'{}')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as caller:
        pids = [pid_in(project / name) for name in ("pid1", "pid2")]
        caller.send_signal(signal.SIGINT)
        _, said = caller.communicate(timeout=20)
    assert said.rstrip().endswith("KeyboardInterrupt")
    wait_for(lambda: not any(is_alive(pid) for pid in pids))  # killed, but perhaps not gone yet


# -- only if files changed -----------------------------------------------------------------------------


def git(folder: Path, *args: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(project: Path) -> Path:
    """A folder inside of a repository, with its files committed."""
    folder = project / "app"
    (folder / "src").mkdir(parents=True)
    for name in ("src/a.py", "src/b.ts", "README.md", "../other.py"):
        (folder / name).write_text("old\n")
    (project / ".gitignore").write_text("*.log\n")
    git(project, "init")
    git(project, "add", ".")
    git(project, "commit", "-m", "all")
    return folder


def ran(folder: Path, when: str | list[str]) -> bool:
    (result,) = at_stop(folder, {"run": "true", "when": when}).results
    assert result.status in {"passed", "skipped"}
    return result.status == "passed"


def test_a_command_runs_only_if_its_files_changed(repository: Path) -> None:
    assert not ran(repository, "*.py")
    (repository / "src/a.py").write_text("new\n")
    assert ran(repository, "*.py")
    assert ran(repository, ["*.ts", "src/"])
    assert ran(repository, "/src/a.py")
    assert not ran(repository, ["*.ts", "*.md"])
    assert not ran(repository, ["*.py", "!a.py"])
    assert not ran(repository, "/a.py")


def test_new_staged_removed_and_moved_files_have_changed(repository: Path) -> None:
    (repository / "new").mkdir()
    (repository / "new/über me.rs").write_text("")
    assert ran(repository, "*.rs")
    (repository / "src/b.ts").unlink()
    assert ran(repository, "*.ts")
    git(repository, "mv", "src/a.py", "src/c.txt")
    assert ran(repository, "a.py")
    assert ran(repository, "c.txt")


def test_a_commit_is_no_way_around_a_check(repository: Path) -> None:
    (repository / "src/a.py").write_text("new\n")
    git(repository, "commit", "-a", "-m", "quick")
    assert ran(repository, "*.py")
    assert not ran(repository, "*.ts")


def test_of_a_script_of_several_lines_each_must_pass(project: Path) -> None:
    assert at_stop(project, {"run": "false\ntrue\n"}).output.blocked
    assert not at_stop(project, {"run": "false || true\ncd /\ntrue\n"}).output.blocked


def test_files_outside_of_the_folder_and_ignored_ones_do_not_count(repository: Path) -> None:
    (repository / "../other.py").write_text("new\n")
    (repository / "x.log").write_text("")
    assert not ran(repository, ["*.py", "*.log"])


def test_where_nobody_can_tell_the_check_runs(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a repository, or without git."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert ran(project, "*.py")
    git(project, "init")
    assert not ran(project, "*.py")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bash").symlink_to("/bin/bash")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert ran(project, "*.py")


def test_a_check_that_is_skipped_in_parallel_keeps_its_place(repository: Path) -> None:
    outcome = at_stop(repository, {"run": "false", "when": "*.py"}, {"run": "true"}, parallel=True)
    assert [result.status for result in outcome.results] == ["skipped", "passed"]
    assert not outcome.output.blocked
