"""The proposal for SubagentStop commands: a test for each of its statements, in its order.

It has no scenarios of its own; those of the specification that it became are in `test_subagent_hooks_stop.py`, and
what they already prove is not proved again. `docs/conformance.md` says which test stands for which statement.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conformance.project import POLICY, STOP, Note, logging_policy, policy_for_all

from fairlead.events import parse
from fairlead.policy import Layer, plan_commands, read_policy
from fairlead.policy.config._schema import schema_text
from fairlead.policy.config._types import Command, PatternSection

if TYPE_CHECKING:
    from conformance.project import Project

ROOT = Path(__file__).parents[2]

YAML = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)

DOCUMENT = """
subagentStop:
  commands:
    # Wildcard - runs for all subagents
    "*":
      - run: "echo 'Subagent completed'"
        message: "Logging subagent completion"

    # Exact match
    "coder":
      - run: "npm run lint"
        message: "Running linter after coder"

    # Glob patterns
    "test*":
      - run: "echo 'Test agent completed'"

    "*coder":
      - run: "git add ."
        message: "Staging changes from coder agents"
"""
"""The proposal's own example."""


def layer(policy: str) -> tuple[Layer]:
    return (Layer(POLICY, "/project", read_policy(policy, POLICY)),)


def ran(project: Project, agent_id: str, *patterns: str) -> list[str]:
    """The patterns whose commands run when that subagent stops."""
    project.policy(logging_policy(*patterns))
    before = len(project.lines())
    assert project.fire("SubagentStop", project.stop_payload(agent_id=agent_id)).exit_code == 0
    return project.lines()[before:]


# -- What Changes --------------------------------------------------------------------------------------


def test_configuration_schema() -> None:
    """The schema has the section, and a command in it all of its fields."""
    schema = json.loads(schema_text())
    section = schema["$defs"]["Policy"]["properties"]["subagentStop"]
    by_pattern = schema["$defs"]["PatternSection"]["properties"]["commands"]

    assert "#/$defs/PatternSection" in json.dumps(section)
    assert by_pattern["additionalProperties"]["items"] == {"$ref": "#/$defs/Command"}
    assert {"run", "message", "showStdout", "showStderr", "maxOutputLines"} <= set(
        schema["$defs"]["Command"]["properties"]
    )


def test_agent_id_usage(project: Project) -> None:
    """The agent's id is matched, the session's is not."""
    project.policy(logging_policy("a1b2", "abc123"))

    project.fire("SubagentStop", project.stop_payload(agent_id="a1b2", agent_type="Explore"))

    assert project.lines() == ["a1b2"]


def test_environment_variables(project: Project) -> None:
    """Every command of every pattern gets them, not only the first."""
    say = 'echo "$CONCLAUDE_AGENT_ID $CONCLAUDE_SESSION_ID $CONCLAUDE_TRANSCRIPT_PATH" >> log'
    project.policy(json.dumps({"subagentStop": {"commands": {"*": [{"run": say}] * 2, "coder": [{"run": say}]}}}))

    project.fire("SubagentStop", project.stop_payload())

    assert project.lines() == ["coder abc123 /tmp/main.json"] * 3


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("coder", ["*", "coder", "*coder"]),
        ("tester", ["*", "test*"]),
        ("agent_7", ["*", "agent_[0-9]*"]),
        ("stuck", ["*"]),
    ],
)
def test_command_execution(project: Project, agent: str, expected: list[str]) -> None:
    assert ran(project, agent, "*", "coder", "test*", "*coder", "agent_[0-9]*") == expected


def test_matching_logic(project: Project) -> None:
    assert ran(project, "coder", "coder", "*") == ["*", "coder"]


def test_type_system() -> None:
    """The section is like `stop`: the same commands, only by pattern."""
    policy = read_policy(
        "stop: {commands: [{run: make, timeout: 5}]}\nsubagentStop: {commands: {coder: [{run: make, timeout: 5}]}}\n",
        POLICY,
    )

    assert isinstance(policy.subagent_stop, PatternSection)
    assert (
        policy.subagent_stop.commands == {"coder": policy.stop.commands} == {"coder": [Command(run="make", timeout=5)]}
    )


def test_documentation() -> None:
    """The pages show examples, all valid, with a wildcard, a name and a glob among the patterns for subagents."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    blocks = [block for page in pages for block in YAML.findall(page.read_text("utf-8"))]
    examples = [read_policy(block, POLICY) for block in blocks if "subagentStop:" in block.splitlines()]

    patterns = {
        pattern for policy in examples for pattern in (*policy.subagent_stop.commands, *policy.subagent_start.commands)
    }

    assert "*" in patterns
    assert any(pattern.isalnum() for pattern in patterns)
    assert any("*" in pattern for pattern in patterns - {"*"})
    assert any("`*`, a name, or a glob with `*`, `?` and `[...]`" in page.read_text("utf-8") for page in pages)


# -- Scope: What's Included ----------------------------------------------------------------------------


def test_new_subagentstop_section_in_yaml_config_separate_from_stop(project: Project) -> None:
    project.policy("""
stop: {commands: [{run: echo stop >> log}]}
subagentStop: {commands: {"*": [{run: echo subagentStop >> log}]}}
""")

    project.fire("SubagentStop", project.stop_payload())
    assert project.lines() == ["subagentStop"]
    project.fire("Stop", {"session_id": "abc123", "cwd": str(project.folder), "stop_hook_active": False})
    assert project.lines() == ["subagentStop", "stop"]


def test_command_configuration_per_subagent_pattern(project: Project) -> None:
    project.policy("""
subagentStop:
  commands:
    "*": [{run: echo to all, showStdout: true}]
    coder: [{run: seq 4 >&2; exit 1, message: Coder is at fault, showStderr: true, maxOutputLines: 2}]
""")

    done = project.fire("SubagentStop", project.stop_payload())

    failed = "Subagent stop command failed: Command failed with exit code 1: seq 4 >&2; exit 1"
    shown = "Stdout: to all\nStderr: 1\n... (2 lines omitted)\n4"
    assert done.answer == {"systemMessage": f"{failed}\nMessage: Coder is at fault\n{shown}"}
    assert f"{failed}\nMessage: Coder is at fault" in done.stderr


@pytest.mark.parametrize(("agent", "matches"), [("coder", True), ("coder2", False), ("auto-coder", False)])
def test_exact_match_coder_matches_only_coder(project: Project, agent: str, *, matches: bool) -> None:
    assert ran(project, agent, "coder") == (["coder"] if matches else [])


@pytest.mark.parametrize("agent", ["coder", "tester", "stuck"])
def test_wildcard_matches_all_subagents(project: Project, agent: str) -> None:
    assert ran(project, agent, "*") == ["*"]


@pytest.mark.parametrize(("agent", "matches"), [("tester", True), ("test-runner", True), ("contest", False)])
def test_prefix_glob_matches_tester_test_runner_etc(project: Project, agent: str, *, matches: bool) -> None:
    assert ran(project, agent, "test*") == (["test*"] if matches else [])


@pytest.mark.parametrize(("agent", "matches"), [("coder", True), ("auto-coder", True), ("coders", False)])
def test_suffix_glob_matches_coder_auto_coder_etc(project: Project, agent: str, *, matches: bool) -> None:
    assert ran(project, agent, "*coder") == (["*coder"] if matches else [])


@pytest.mark.parametrize(("agent", "matches"), [("agent_1", True), ("agent_2x", True), ("agent_x1", False)])
def test_complex_glob_matches_agent_1_agent_2x_etc(project: Project, agent: str, *, matches: bool) -> None:
    assert ran(project, agent, "agent_[0-9]*") == (["agent_[0-9]*"] if matches else [])


# -- Scope: What's NOT Included ------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["true", "echo not yet >&2; exit 1"])
def test_changes_to_existing_stop_hook_behavior(project: Project, check: str) -> None:
    stop = {"stop": {"commands": [{"run": check, "showStderr": True}]}}
    payload = {"session_id": "abc123", "cwd": str(project.folder), "stop_hook_active": False}
    project.policy(json.dumps(stop))
    without = project.fire("Stop", payload)
    project.policy(json.dumps({**stop, **json.loads(logging_policy("*"))}))

    assert project.fire("Stop", payload) == without
    assert without.answer.get("decision") == (None if check == "true" else "block")
    assert project.lines() == []


def test_subagent_lifecycle_hooks_beyond_stop(project: Project) -> None:
    """They have a section of their own, which is another matter."""
    project.policy(logging_policy("*"))

    project.fire("SubagentStart", project.start_payload())
    assert project.lines() == []
    project.fire("SubagentStop", project.stop_payload())
    assert project.lines() == ["*"]


@pytest.mark.parametrize(
    "command",
    ["exit 2", 'echo \'{"decision": "block", "reason": "go on"}\'', "echo '{\"continue\": false}'"],
)
def test_subagent_execution_control_blocking_restarting(project: Project, command: str) -> None:
    project.policy(policy_for_all({"run": command, "showStdout": True}))

    done = project.fire("SubagentStop", project.stop_payload())

    assert done.exit_code == 0
    assert set(done.answer) == {"systemMessage"}


def test_timeout_configuration_uses_existing_command_execution_timeout_logic(project: Project) -> None:
    project.policy(policy_for_all({"run": "sleep 60", "timeout": 1}, {"run": "echo next >> log"}))

    done = project.fire("SubagentStop", project.stop_payload())

    assert "Subagent stop command failed: Command timed out after 1 seconds: sleep 60" in done.stderr
    assert done.exit_code == 0
    assert project.lines() == ["next"]


# -- Questions & Decisions -----------------------------------------------------------------------------


def test_how_should_commands_access_subagent_context(project: Project) -> None:
    names = ["AGENT_ID", "AGENT_TRANSCRIPT_PATH", "SESSION_ID", "TRANSCRIPT_PATH", "HOOK_EVENT", "CWD"]
    values = ["coder", "/tmp/agent_coder.json", "abc123", "/tmp/main.json", "SubagentStop", str(project.folder)]
    script = "; ".join(f"echo $CONCLAUDE_{name} >> log; echo $FAIRLEAD_{name} >> log" for name in names)
    project.policy(policy_for_all({"run": script}))

    project.fire("SubagentStop", project.stop_payload())

    assert project.lines() == [value for value in values for _ in range(2)]


def test_how_to_obtain_agent_identifier_from_subagentstop_payload(project: Project) -> None:
    """From its field: a transcript that speaks of another agent changes nothing."""
    transcript = project.folder / "transcript.jsonl"
    transcript.write_text('{"agentId": "tester", "agent_id": "tester"}\n')
    project.policy(logging_policy("coder", "tester"))

    project.fire("SubagentStop", project.stop_payload(agent_transcript_path=str(transcript)))

    assert project.lines() == ["coder"]


def test_when_both_wildcard_and_specific_commands_match_what_should_happen(project: Project) -> None:
    assert ran(project, "auto-coder", "*coder", "auto-coder", "*", "tester") == ["*", "*coder", "auto-coder"]


@pytest.mark.parametrize(
    ("pattern", "agent"),
    [("*", "stuck"), ("coder", "coder"), ("test*", "testing"), ("*coder", "smart-coder"), ("agent_[0-9]*", "agent_9")],
)
def test_should_subagent_stop_hooks_support_glob_patterns_beyond_exact_match_and_wildcard(
    project: Project, pattern: str, agent: str
) -> None:
    assert ran(project, agent, pattern, "none-of-these") == [pattern]


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (
            "coder",
            [
                ("echo 'Subagent completed'", "Logging subagent completion"),
                ("npm run lint", "Running linter after coder"),
                ("git add .", "Staging changes from coder agents"),
            ],
        ),
        (
            "tester",
            [("echo 'Subagent completed'", "Logging subagent completion"), ("echo 'Test agent completed'", None)],
        ),
    ],
)
def test_how_should_the_configuration_be_structured_in_yaml(agent: str, expected: list[tuple[str, str | None]]) -> None:
    planned = plan_commands(parse({**STOP, "agent_id": agent}), layer(DOCUMENT))

    assert [(step.run, step.message) for step in planned.steps] == expected


# -- Success Criteria: backward compatibility ----------------------------------------------------------


def test_backward_compatibility_maintained(project: Project) -> None:
    """The person is told the same, with commands as without."""
    notifications = {"notifications": {"enabled": True, "hooks": ["SubagentStop"]}}
    project.policy(json.dumps(notifications))
    without = project.fire("SubagentStop", project.stop_payload())
    project.policy(json.dumps({**notifications, **json.loads(logging_policy("*"))}))

    assert project.fire("SubagentStop", project.stop_payload()).notes == without.notes
    assert without.notes == [Note("Fairlead - SubagentStop", "coder: Subagent stopped")]


# -- Risks & Mitigations -------------------------------------------------------------------------------


def test_missing_agent_id_field_old_claude_code(project: Project) -> None:
    project.policy(logging_policy("*"))
    payload = project.stop_payload()
    del payload["agent_id"]

    done = project.fire("SubagentStop", payload)

    told = "fairlead: SubagentStop: missing required field `agent_id` (or `subagent_id`)\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", told)
    assert project.lines() == []


def test_glob_pattern_performance() -> None:
    """A pattern on which a matcher that tries every way would never come to an end."""
    hopeless = "*a" * 40 + "b"

    planned = plan_commands(parse({**STOP, "agent_id": "a" * 5000}), layer(logging_policy(hopeless, "*")))

    assert [step.pattern for step in planned.steps] == ["*"]


# -- Migration Path ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["", "stop: {commands: [{run: echo stop >> log}]}\n"], ids=repr)
def test_for_users_without_subagentstop_config(project: Project, policy: str) -> None:
    project.policy(policy + "notifications: {enabled: true, hooks: ['*']}\n")

    done = project.fire("SubagentStop", project.stop_payload())

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.notes == [Note("Fairlead - SubagentStop", "coder: Subagent stopped")]
    assert project.lines() == []


def test_for_users_wanting_subagent_commands(project: Project) -> None:
    """The proposal's example, in the file of its own name; `npm` and `git` write down how they were called."""
    for name in ("npm", "git"):
        project.program(name, f'#!/bin/sh\necho "{name} $*" >> log\n')
    project.policy(DOCUMENT, ".conclaude.yaml")

    done = project.fire("SubagentStop", project.stop_payload())

    assert (done.exit_code, done.stdout) == (0, "")
    assert project.lines() == ["npm run lint", "git add ."]
