"""The subagent specification on SubagentStop and its commands: one test per scenario, in its order.

What it says of SubagentStart is in `test_subagent_hooks.py`. Names of agents in it ("coder") are agent ids; on the
real client these are opaque, and a pattern matches an agent's type as well.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]  # it has no stubs of its own
import pytest
import yaml
from conformance.project import POLICY, STOP, Note, logging_policy, policy_for_all

from fairlead.events import parse
from fairlead.policy import Layer, PolicyError, plan_commands, read_policy
from fairlead.policy.config._schema import schema_text
from fairlead.policy.config._types import Command
from fairlead.testing import samples

if TYPE_CHECKING:
    from conformance.project import Project

NOTIFICATIONS = "notifications: {enabled: true, hooks: [SubagentStop]}\n"
CODER_STOPPED = Note("Fairlead - SubagentStop", "coder: Subagent stopped")


def matched(agent_id: str, *patterns: str) -> list[str | None]:
    """The patterns whose commands are planned when that subagent stops."""
    layer = Layer(POLICY, "/project", read_policy(logging_policy(*patterns), POLICY))
    planned = plan_commands(parse({**STOP, "agent_id": agent_id}), (layer,))
    return [step.pattern for step in planned.steps]


def refusal(project: Project, policy: str) -> str:
    """What is wrong with a policy, without the file's name: loading it says so, and so does the command line."""
    file = str(project.folder / POLICY)
    with pytest.raises(PolicyError) as caught:
        read_policy(policy, file)
    project.policy(policy)
    assert str(caught.value) in project.fire("SubagentStop", project.stop_payload()).stderr
    return str(caught.value).removeprefix(file)


# -- Subagent Stop Command Configuration ---------------------------------------------------------------


@pytest.mark.parametrize("agent", ["coder", "tester", "stuck"])
def test_wildcard_pattern_configuration(project: Project, agent: str) -> None:
    text = """
subagentStop:
  commands:
    "*":
      - run: echo stopped >> log
        message: Not logged
        showStdout: true
        showStderr: true
        maxOutputLines: 10
"""
    project.policy(text)

    assert project.fire("SubagentStop", project.stop_payload(agent_id=agent)).exit_code == 0

    assert project.lines() == ["stopped"]
    assert read_policy(text, POLICY).subagent_stop.commands["*"] == [
        Command(
            run="echo stopped >> log", message="Not logged", show_stdout=True, show_stderr=True, max_output_lines=10
        )
    ]


@pytest.mark.parametrize(("agent", "ran"), [("coder", ["coder"]), ("tester", []), ("auto-coder", []), ("Coder", [])])
def test_exact_match_pattern_configuration(project: Project, agent: str, ran: list[str]) -> None:
    project.policy(logging_policy("coder"))

    assert project.fire("SubagentStop", project.stop_payload(agent_id=agent)).exit_code == 0

    assert project.lines() == ran


@pytest.mark.parametrize(
    ("pattern", "agent", "runs"),
    [
        ("test*", "tester", True),
        ("test*", "runner-test", False),
        ("test?r", "tester", True),
        ("test?r", "test-runner", False),
        ("[ct]*", "tester", True),
        ("[ct]*", "stuck", False),
    ],
)
def test_glob_pattern_configuration(project: Project, pattern: str, agent: str, *, runs: bool) -> None:
    project.policy(logging_policy(pattern))

    assert project.fire("SubagentStop", project.stop_payload(agent_id=agent)).exit_code == 0

    assert project.lines() == ([pattern] if runs else [])


def test_multiple_pattern_configuration(project: Project) -> None:
    project.policy(logging_policy("*", "coder"))

    project.fire("SubagentStop", project.stop_payload(agent_id="coder"))
    assert project.lines() == ["*", "coder"]
    project.fire("SubagentStop", project.stop_payload(agent_id="tester"))
    assert project.lines() == ["*", "coder", "*"]


# -- Agent ID from Payload -----------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["coder", "tester", "stuck"])
def test_agent_id_provided_in_payload(project: Project, agent: str) -> None:
    """The transcripts are not there to be parsed."""
    project.policy(logging_policy("coder", "tester", "stuck"))
    nowhere = str(project.folder / "no-transcript.jsonl")

    done = project.fire(
        "SubagentStop",
        project.stop_payload(agent_id=agent, transcript_path=nowhere, agent_transcript_path=nowhere),
    )

    assert done.exit_code == 0
    assert project.lines() == [agent]


def test_agent_id_used_for_all_pattern_matching(project: Project) -> None:
    """The transcript is a pipe that nobody writes to: who reads it waits for ever."""
    transcript = project.folder / "transcript.jsonl"
    os.mkfifo(transcript)
    project.policy(logging_policy("*", "coder", "*coder", "transcript*"))

    project.fire(
        "SubagentStop",
        project.stop_payload(transcript_path=str(transcript), agent_transcript_path=str(transcript)),
    )

    assert project.lines() == ["*", "coder", "*coder"]


# -- Glob Pattern Matching -----------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["coder", "tester", "stuck", "a1b2c3", "two words", "a/b", ".hidden"])
def test_wildcard_matches_all_subagents(agent: str) -> None:
    assert matched(agent, "*") == ["*"]


@pytest.mark.parametrize(("agent", "matches"), [("coder", True), ("auto-coder", False), ("coder-agent", False)])
def test_exact_match_pattern(agent: str, *, matches: bool) -> None:
    assert matched(agent, "coder") == (["coder"] if matches else [])


@pytest.mark.parametrize(
    ("agent", "matches"), [("tester", True), ("test-runner", True), ("testing", True), ("runner-test", False)]
)
def test_prefix_glob_pattern(agent: str, *, matches: bool) -> None:
    assert matched(agent, "test*") == (["test*"] if matches else [])


@pytest.mark.parametrize(
    ("agent", "matches"), [("coder", True), ("auto-coder", True), ("smart-coder", True), ("coder-agent", False)]
)
def test_suffix_glob_pattern(agent: str, *, matches: bool) -> None:
    assert matched(agent, "*coder") == (["*coder"] if matches else [])


@pytest.mark.parametrize(
    ("agent", "matches"),
    [("agent_1", True), ("agent_2x", True), ("agent_99test", True), ("agent_x", False), ("agent", False)],
)
def test_character_class_glob_pattern(agent: str, *, matches: bool) -> None:
    assert matched(agent, "agent_[0-9]*") == (["agent_[0-9]*"] if matches else [])


def test_multiple_patterns_match_same_subagent() -> None:
    assert matched("coder", "*", "coder", "*coder") == ["*", "coder", "*coder"]


# -- Command Execution Order ---------------------------------------------------------------------------


def test_wildcard_and_specific_pattern_both_match(project: Project) -> None:
    """The last command takes its time: who did not wait for it would find the log without it."""
    project.policy("""
subagentStop:
  commands:
    coder:
      - run: echo specific 1 >> log
      - run: sleep 0.5; echo specific 2 >> log
    "*":
      - run: echo wildcard 1 >> log
      - run: echo wildcard 2 >> log
""")

    assert project.fire("SubagentStop", project.stop_payload()).exit_code == 0

    assert project.lines() == ["wildcard 1", "wildcard 2", "specific 1", "specific 2"]


@pytest.mark.parametrize("patterns", [("*coder", "auto*", "*"), ("auto*", "*", "*coder")], ids=" ".join)
def test_multiple_glob_patterns_match(project: Project, patterns: tuple[str, ...]) -> None:
    project.policy(logging_policy(*patterns))
    in_order = ["*", *(pattern for pattern in patterns if pattern != "*")]

    for seed in range(3):
        payload = project.stop_payload(agent_id="auto-coder")
        project.fire("SubagentStop", payload, env={"PYTHONHASHSEED": str(seed)})

    assert project.lines() == in_order * 3


def test_no_patterns_match(project: Project) -> None:
    project.policy(
        "subagentStop: {commands: {coder: [{run: echo coder >> log}], tester: [{run: echo tester >> log}]}}\n"
        + NOTIFICATIONS
    )

    done = project.fire("SubagentStop", project.stop_payload(agent_id="unknown-agent"))

    assert (done.exit_code, done.stdout) == (0, "")
    assert project.lines() == []
    assert done.notes == [Note("Fairlead - SubagentStop", "unknown-agent: Subagent stopped")]


# -- Environment Variable Context ----------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["CONCLAUDE", "FAIRLEAD"])
def test_environment_variables_available_in_commands(project: Project, prefix: str) -> None:
    project.policy(policy_for_all({"run": "env -0 > environment"}))

    project.fire("SubagentStop", project.stop_payload())

    expected = {
        "AGENT_ID": "coder",
        "AGENT_TRANSCRIPT_PATH": "/tmp/agent_coder.json",
        "SESSION_ID": "abc123",
        "TRANSCRIPT_PATH": "/tmp/main.json",
        "HOOK_EVENT": "SubagentStop",
        "CWD": str(project.folder),
    }
    assert project.variables().items() >= {f"{prefix}_{name}": value for name, value in expected.items()}.items()


def test_agent_id_in_environment_variable(project: Project) -> None:
    project.policy(policy_for_all({"run": 'echo "$CONCLAUDE_AGENT_ID $FAIRLEAD_AGENT_ID" >> log'}))

    project.fire("SubagentStop", project.stop_payload(agent_id="coder"))

    assert project.lines() == ["coder coder"]


def test_agent_transcript_path_in_environment_variable(project: Project) -> None:
    ours, main = project.folder / "agent coder.json", project.folder / "main.json"
    ours.write_text("the subagent's\n")
    main.write_text("the session's\n")
    project.policy(
        policy_for_all({"run": 'cat "$CONCLAUDE_AGENT_TRANSCRIPT_PATH" "$CONCLAUDE_TRANSCRIPT_PATH" >> log'})
    )

    project.fire("SubagentStop", project.stop_payload(transcript_path=str(main), agent_transcript_path=str(ours)))

    assert project.lines() == ["the subagent's", "the session's"]


def test_environment_variables_do_not_conflict_with_system(project: Project) -> None:
    """`_`, `PWD`, `OLDPWD` and `SHLVL` are the shell's own."""
    project.policy(policy_for_all({"run": "env -0 > environment"}))

    project.fire("SubagentStop", project.stop_payload())

    before, after = project.environment, project.variables()
    changed = {name for name in before.keys() | after if before.get(name) != after.get(name)}
    changed -= {"_", "PWD", "OLDPWD", "SHLVL"}
    assert "CONCLAUDE_AGENT_ID" in changed
    assert [name for name in sorted(changed) if not name.startswith(("CONCLAUDE_", "FAIRLEAD_"))] == []
    assert {name: after[name] for name in ("PATH", "HOME")} == {name: before[name] for name in ("PATH", "HOME")}


# -- Command Output Handling ---------------------------------------------------------------------------


def test_command_with_showstdout_enabled(project: Project) -> None:
    project.policy(policy_for_all({"run": "echo out; echo err >&2", "showStdout": True}))
    whole = project.fire("SubagentStop", project.stop_payload())
    project.policy(policy_for_all({"run": "seq 9; seq 9 >&2", "showStdout": True, "maxOutputLines": 3}))
    cut = project.fire("SubagentStop", project.stop_payload())

    assert whole.answer == {"systemMessage": "Stdout: out"}
    assert cut.answer == {"systemMessage": "Stdout: 1\n2\n... (6 lines omitted)\n9"}


def test_command_with_showstderr_enabled(project: Project) -> None:
    project.policy(policy_for_all({"run": "echo out; echo err >&2", "showStderr": True}))
    whole = project.fire("SubagentStop", project.stop_payload())
    project.policy(policy_for_all({"run": "seq 9; seq 9 >&2", "showStderr": True, "maxOutputLines": 3}))
    cut = project.fire("SubagentStop", project.stop_payload())

    assert whole.answer == {"systemMessage": "Stderr: err"}
    assert cut.answer == {"systemMessage": "Stderr: 1\n2\n... (6 lines omitted)\n9"}


def test_command_with_output_disabled(project: Project) -> None:
    script = "echo loud-out; echo loud-err >&2; echo ran to its end >> log"
    project.policy(policy_for_all({"run": script, "showStdout": False, "showStderr": False}))

    done = project.fire("SubagentStop", project.stop_payload())

    assert (done.exit_code, done.stdout) == (0, "")
    assert "loud" not in done.stderr
    assert project.lines() == ["ran to its end"]


# -- Graceful Command Failure Handling -----------------------------------------------------------------


def test_command_execution_fails(project: Project) -> None:
    project.policy(policy_for_all({"run": "exit 3", "message": "Call for help"}, {"run": "echo next >> log"}))

    done = project.fire("SubagentStop", project.stop_payload())

    assert (
        "Subagent stop command failed: Command failed with exit code 3: exit 3\nMessage: Call for help" in done.stderr
    )
    assert done.exit_code == 0
    assert "decision" not in done.answer
    assert project.lines() == ["next"]


@pytest.mark.parametrize(
    ("command", "logged"),
    [
        ({"run": "no-such-program"}, "Command failed with exit code 127: no-such-program"),
        ({"run": "./not-executable"}, "Command failed with exit code 126: ./not-executable"),
        ({"run": "true", "shell": "/no/such/shell"}, "Command could not be started"),
        ({"run": "true", "workingDir": "no-such-folder"}, "Command could not be started"),
    ],
    ids=["command not found", "permission denied", "no shell", "no folder"],
)
def test_command_spawning_fails(project: Project, command: dict[str, Any], logged: str) -> None:
    (project.folder / "not-executable").write_text("#!/bin/sh\n")
    steps = json.dumps([command, {"run": "echo next >> log"}])
    project.policy(f'subagentStop: {{commands: {{"*": {steps}}}}}\n{NOTIFICATIONS}')

    done = project.fire("SubagentStop", project.stop_payload())

    assert f"Subagent stop command failed: {logged}" in done.stderr
    assert done.exit_code == 0
    assert project.lines() == ["next"]
    assert [note.title.startswith("Fairlead - SubagentStop") for note in done.notes] == [True]


def test_all_commands_complete_despite_individual_failures(project: Project) -> None:
    """Exit code 2, by which a command blocks elsewhere, is a failure like any other."""
    steps = ["exit 1", "exit 2", "kill -9 $$", "no-such-program", "true"]
    project.policy(policy_for_all(*({"run": f"echo {at} >> log; {step}"} for at, step in enumerate(steps))))

    done = project.fire("SubagentStop", project.stop_payload())

    assert project.lines() == ["0", "1", "2", "3", "4"]
    assert done.exit_code == 0
    assert "decision" not in done.answer
    assert done.stderr.count("Subagent stop command failed: ") == 4


# -- Backward Compatibility ----------------------------------------------------------------------------


def test_config_without_subagentstop_section(project: Project) -> None:
    project.policy(NOTIFICATIONS)

    done = project.fire("SubagentStop", project.stop_payload())

    assert (done.exit_code, done.stdout, done.notes) == (0, "", [CODER_STOPPED])
    assert list(project.folder.iterdir()) == [project.folder / POLICY]


@pytest.mark.parametrize("section", ["{}", "{commands: {}}", '{commands: {"*": []}}', ""], ids=repr)
def test_empty_subagentstop_configuration(project: Project, section: str) -> None:
    project.policy(f"subagentStop: {section}\n{NOTIFICATIONS}")

    done = project.fire("SubagentStop", project.stop_payload())

    assert (done.exit_code, done.stdout, done.notes) == (0, "", [CODER_STOPPED])


def test_subagentstop_config_does_not_affect_other_hooks(project: Project) -> None:
    policy = logging_policy("*", "coder")
    layer = Layer(POLICY, str(project.folder), read_policy(policy, POLICY))
    planned = {event.event_name for event in samples() if plan_commands(event, (layer,)).steps}
    project.policy(policy)
    base = {key: project.stop_payload()[key] for key in ("session_id", "transcript_path", "cwd")}

    others = [
        project.fire("Stop", {**base, "stop_hook_active": False}),
        project.fire("SessionEnd", {**base, "reason": "other"}),
        project.fire("SubagentStart", project.start_payload()),
    ]

    assert planned == {"SubagentStop"}
    assert [(done.exit_code, done.stdout) for done in others] == [(0, "")] * 3
    assert project.lines() == []


# -- Configuration Validation --------------------------------------------------------------------------


VALID = """
subagentStop:
  commands:
    "*":
      - run: echo stopped >> log
    coder:
      - {run: "true", message: m, showStdout: true, showStderr: false, maxOutputLines: 10000, timeout: 60}
      - run: echo linted >> log
    "agent_[0-9]*":
      - run: "true"
"""


def test_valid_subagentstop_configuration(project: Project) -> None:
    project.policy(VALID)

    policy = read_policy(VALID, POLICY)
    done = project.fire("SubagentStop", project.stop_payload())

    jsonschema.validate(yaml.safe_load(VALID), json.loads(schema_text()))
    assert {pattern: len(found) for pattern, found in policy.subagent_stop.commands.items()} == {
        "*": 1,
        "coder": 2,
        "agent_[0-9]*": 1,
    }
    assert (done.exit_code, done.stdout) == (0, "")
    assert project.lines() == ["stopped", "linted"]


def test_invalid_command_structure(project: Project) -> None:
    assert refusal(project, "subagentStop:\n  commands:\n    coder:\n      - message: hi\n") == (
        ":4:9: `run` is missing in `subagentStop.commands.coder[0]`; add it: expected text that is not empty"
    )


@pytest.mark.parametrize("value", [0, -1])
def test_invalid_maxoutputlines_value(project: Project, value: int) -> None:
    text = f"subagentStop:\n  commands:\n    coder:\n      - run: a\n        maxOutputLines: {value}\n"

    assert refusal(project, text) == (
        f":5:25: the number {value} for `subagentStop.commands.coder[0].maxOutputLines`; "
        "expected a whole number from 1 to 10000"
    )


def test_pattern_is_empty_string(project: Project) -> None:
    assert refusal(project, 'subagentStop:\n  commands:\n    "":\n      - run: a\n') == (
        ':3:5: `subagentStop.commands[""]` is an invalid pattern: it is empty; write `*` for everything'
    )
