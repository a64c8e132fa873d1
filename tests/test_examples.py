"""The examples work as described, with the real command and payloads of the real client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead.testing import make_payload

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def fairlead(event: str, example: str, **changes: Any) -> tuple[int, str, str]:
    """Run the command with an example and a real payload; return exit code, stdout, stderr."""
    done = subprocess.run(
        [Path(sys.executable).with_name("fairlead"), event, "--hooks", EXAMPLES / example],
        input=json.dumps(make_payload(event, **changes)),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def bash(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}}


# -- security ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "pattern"), [("rm -rf /", "rm -rf"), ("sudo ls", "sudo"), ("sudo rm -rf /", "rm -rf")]
)
def test_the_guard_blocks_what_contains_a_pattern(command: str, pattern: str) -> None:
    reason = f"Blocked: contains '{pattern}'"
    verdict = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}

    exit_code, stdout, stderr = fairlead("PreToolUse", "security.py", **bash(command))

    assert (exit_code, stderr) == (2, f"{reason}\n")
    assert json.loads(stdout) == {"hookSpecificOutput": verdict}


@pytest.mark.parametrize(
    "call", [bash("git status"), {"tool_name": "Write", "tool_input": {"file_path": "a", "content": "sudo"}}]
)
def test_the_guard_allows_everything_else(call: dict[str, Any]) -> None:
    assert fairlead("PreToolUse", "security.py", **call) == (0, "", "")


# -- logging -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("PreToolUse", "pre_tool_use"),
        ("PostToolUse", "post_tool_use"),
        ("PostToolUseFailure", "post_tool_use_failure"),
    ],
)
def test_the_log_has_a_line_for_each_event_of_a_tool(event: str, name: str) -> None:
    assert fairlead(event, "logging_hook.py", tool_name="Read") == (0, "", f"audit: hook event {name}, tool Read\n")


def test_the_log_also_has_the_calls_that_the_guard_blocks() -> None:
    done = subprocess.run(
        ["fairlead", "PreToolUse", "--hooks", "security.py", "--hooks", "logging_hook.py"],
        input=json.dumps(make_payload("PreToolUse", **bash("sudo ls"))),
        capture_output=True,
        text=True,
        check=False,
        cwd=EXAMPLES,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )

    assert (done.returncode, done.stderr) == (
        2,
        "audit: hook event pre_tool_use, tool Bash\nBlocked: contains 'sudo'\n",
    )


# -- subagents -----------------------------------------------------------------------------------------


def test_the_monitor_logs_the_start_of_a_subagent() -> None:
    fields = {"agent_id": "a1", "agent_type": "Explore", "description": "look around"}

    logged = fairlead("SubagentStart", "subagent_monitor.py", **fields)

    assert logged == (0, "", "INFO subagent started: id=a1 type=Explore desc=look around\n")


def test_the_monitor_logs_a_completed_subagent() -> None:
    line = "INFO subagent completed: id=a1\n"

    assert fairlead("SubagentStop", "subagent_monitor.py", agent_id="a1") == (0, "", line)
    assert fairlead("SubagentStop", "subagent_monitor.py", agent_id="a1", success=True) == (0, "", line)


def test_the_monitor_warns_about_a_failed_subagent() -> None:
    logged = fairlead("SubagentStop", "subagent_monitor.py", agent_id="a1", success=False, error="out of tokens")

    assert logged == (0, "", "WARNING subagent failed: id=a1 error=out of tokens\n")


# -- the commands that the examples suggest ------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "exit_code"), [("security.py", 2), ("logging_hook.py", 0), ("subagent_monitor.py", 0)]
)
def test_the_command_that_an_example_suggests_works(example: str, exit_code: int) -> None:
    text = (EXAMPLES / example).read_text("utf-8")
    match = re.search(r'Try it:  (.*?)\n"""', text, re.DOTALL)
    assert match is not None
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    done = subprocess.run(["/bin/sh", "-c", match[1]], cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    assert (done.returncode, bool(done.stderr)) == (exit_code, True)


# -- the documents -------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", ["security.py", "logging_hook.py", "subagent_monitor.py"])
def test_the_docs_show_the_example(example: str) -> None:
    page = (ROOT / "docs/examples.md").read_text("utf-8")

    assert f"```python\n{(EXAMPLES / example).read_text('utf-8')}```\n" in page
