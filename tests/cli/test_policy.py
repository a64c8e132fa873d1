"""An event under a policy, through the real command: guards, commands, and what happens when something is broken."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
preToolUse:
  preventRootAdditions: false
  uneditableFiles:
    - .env
    - pattern: "*.lock"
      action: warn
  unreadableFiles: ["secrets/**"]
  toolUsageValidation:
    - {tool: Bash, commandPattern: "git push --force*", action: block, message: "Never force a push."}
permissionRequest:
  default: deny
  allow: [Read]
userPromptSubmit:
  contextRules:
    - {pattern: deploy, prompt: "Deploys are frozen."}
stop:
  commands:
    - {run: "test ! -e broken", message: "Remove `broken`."}
"""


class Project:
    """A folder with a policy, and the real command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.home = folder / "home"
        self.folder.mkdir()
        self.policy = self.folder / ".fairlead.yaml"

    def fire(self, event: str, **fields: Any) -> subprocess.CompletedProcess[str]:
        payload = {"session_id": "s1", "cwd": str(self.folder), **fields}
        return self.run(event, stdin=json.dumps(payload))

    def call(self, tool: str, **tool_input: Any) -> subprocess.CompletedProcess[str]:
        return self.fire("PreToolUse", tool_name=tool, tool_input=tool_input)

    def run(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "FAIRLEAD_HOME": str(self.home)}
        return subprocess.run(
            [sys.executable, "-m", "fairlead", *args],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=env,
            check=False,
        )


@pytest.fixture
def bare(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def project(bare: Project) -> Project:
    bare.policy.write_text(POLICY)
    return bare


# -- guards --------------------------------------------------------------------------------------------


def test_a_protected_file_cannot_be_written(project: Project) -> None:
    done = project.call("Write", file_path="config/.env", content="x")
    expected = "Blocked Write operation: file matches preToolUse.uneditableFiles pattern '.env'. File: config/.env\n"
    assert (done.returncode, done.stderr) == (2, expected)


@pytest.mark.parametrize(
    "command",
    ["echo x > .env", "cd . && tee .env < /dev/null", "sh -c 'rm -f .env'", "cp /dev/null .e''nv", "rm -rf ."],
)
def test_nor_by_the_shell(project: Project, command: str) -> None:
    (project.folder / ".env").touch()
    assert project.call("Bash", command=command).returncode == 2


@pytest.mark.parametrize("command", ["git status", "cat README.md", "echo 'rm .env'", "ls -la | grep env"])
def test_harmless_commands_pass(project: Project, command: str) -> None:
    done = project.call("Bash", command=command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_cannot_be_understood_is_asked_about(project: Project) -> None:
    done = project.call("Bash", command="$TOOL --clean")
    assert done.returncode == 0
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "ask"


def test_a_forbidden_command_is_found_in_a_list(project: Project) -> None:
    done = project.call("Bash", command="git add . && git push --force origin main")
    assert (done.returncode, done.stderr) == (2, "Never force a push.\n")


def test_an_unreadable_file_cannot_be_read(project: Project) -> None:
    assert project.call("Read", file_path="secrets/key").returncode == 2
    assert project.call("Bash", command="cat secrets/key").returncode == 2


def test_a_warning_lets_it_pass_and_tells_the_person(project: Project) -> None:
    done = project.call("Edit", file_path="uv.lock")
    assert done.returncode == 0
    assert "uv.lock" in json.loads(done.stdout)["systemMessage"]


@pytest.mark.parametrize("file", [".fairlead.yaml", ".claude/settings.json"])
def test_the_policy_protects_itself(project: Project, file: str) -> None:
    assert project.call("Write", file_path=file, content="").returncode == 2
    assert project.call("Bash", command=f"echo > {file}").returncode == 2


def test_a_subagent_of_a_denied_type_is_not_started(bare: Project) -> None:
    bare.policy.write_text("subagentStart:\n  deny: ['web-*', general-purpose]\n")
    done = bare.call("Agent", subagent_type="web-search", prompt="x")
    reason = "Blocked Agent operation: subagents of type 'web-search' are denied by subagentStart.deny[0] 'web-*'\n"
    assert (done.returncode, done.stderr) == (2, reason)
    assert bare.call("Task", prompt="no type is the general one").returncode == 2
    assert bare.call("Agent", subagent_type="Explore", prompt="x").returncode == 0


def test_permission_requests_are_answered(project: Project) -> None:
    def decision(tool: str) -> str:
        done = project.fire("PermissionRequest", tool_name=tool, tool_input={})
        behavior: str = json.loads(done.stdout)["hookSpecificOutput"]["decision"]["behavior"]
        return behavior

    assert (decision("Read"), decision("Bash")) == ("allow", "deny")


# -- commands ------------------------------------------------------------------------------------------


def test_a_failing_check_keeps_the_agent_going_until_it_passes(project: Project) -> None:
    (project.folder / "broken").touch()
    kept = project.fire("Stop")
    assert (kept.returncode, json.loads(kept.stdout)) == (0, {"decision": "block", "reason": "Remove `broken`."})
    (project.folder / "broken").unlink()
    assert project.fire("Stop").stdout == ""


def test_a_check_that_never_passes_does_not_keep_it_for_ever(project: Project) -> None:
    (project.folder / "broken").touch()
    answers = [project.fire("Stop", stop_hook_active=number > 0).stdout for number in range(6)]
    assert ['"decision":"block"' in answer for answer in answers] == [True] * 5 + [False]


def test_a_prompt_that_matches_brings_context(project: Project) -> None:
    done = project.fire("UserPromptSubmit", prompt="please deploy it")
    assert json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] == "Deploys are frozen."


# -- the fault matrix ----------------------------------------------------------------------------------


def test_a_broken_policy_denies_every_call_and_says_where(bare: Project) -> None:
    bare.policy.write_text("preToolUse:\n  uneditableFile: [x]\n")
    done = bare.call("Read", file_path="x")
    assert done.returncode == 2
    assert f"{bare.policy}:2:3: " in done.stderr
    assert "uneditableFiles" in done.stderr


def test_of_a_policy_that_breaks_the_last_good_version_holds(project: Project) -> None:
    assert project.call("Write", file_path="a/.env").returncode == 2
    project.policy.write_text("preToolUse: [\n")
    done = project.call("Write", file_path="a/.env")
    assert done.returncode == 2
    assert "pattern '.env'" in done.stderr
    passed = project.call("Read", file_path="x")
    assert passed.returncode == 0
    assert "fairlead validate" in json.loads(passed.stdout)["systemMessage"]


def test_a_folder_in_the_place_of_a_policy_denies(bare: Project) -> None:
    bare.policy.mkdir()
    assert bare.call("Read", file_path="x").returncode == 2


def test_a_policy_that_cannot_be_read_denies(bare: Project) -> None:
    """A socket in its place: not even root can open that."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(bare.policy))
    assert bare.call("Read", file_path="x").returncode == 2


def test_a_guard_that_raises_denies(project: Project) -> None:
    """A command that is no string cannot be checked."""
    assert project.call("Bash", command=5).returncode == 2


def test_a_parser_that_fails_denies(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tree_sitter.py").write_text("raise ImportError('broken')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    done = project.call("Bash", command="ls")
    assert done.returncode == 2
    assert "hook 'policy.guards' failed, so this is denied" in done.stderr


def test_no_time_to_check_denies(project: Project) -> None:
    payload = {"session_id": "s", "cwd": str(project.folder), "tool_name": "Read", "tool_input": {"file_path": "x"}}
    assert project.run("PreToolUse", "--timeout", "1e-9", stdin=json.dumps(payload)).returncode == 2


def test_a_bad_payload_denies(project: Project) -> None:
    assert project.run("PreToolUse", stdin="{").returncode == 2


def test_of_a_deleted_policy_the_last_good_version_is_used_until_its_copy_is_deleted_too(project: Project) -> None:
    """Switching to a branch without a policy must not switch it off."""
    assert project.call("Write", file_path="a/.env").returncode == 2
    project.policy.unlink()
    done = project.call("Write", file_path="a/.env")
    assert done.returncode == 2
    (kept,) = (project.home / "policies").iterdir()
    warning = (
        f"{project.policy}: the file was deleted. Its last good version is used. Restore the file, or stop using that "
        f"version: rm {kept}"
    )
    assert warning in done.stderr
    assert project.call("Bash", command=f"rm {kept}").returncode == 2
    kept.unlink()
    assert project.call("Write", file_path="a/.env").returncode == 0


def test_a_broken_policy_blocks_no_event_without_a_check_and_is_told(bare: Project) -> None:
    bare.policy.write_text("nonsense: 1\n")
    prompt, other = bare.fire("UserPromptSubmit", prompt="hello"), bare.fire("Notification", message="m")
    assert (prompt.returncode, other.returncode, other.stdout) == (0, 0, "")
    assert "nonsense" in json.loads(prompt.stdout)["systemMessage"], "the user sees it"
    assert "nonsense" in other.stderr


def test_without_a_policy_only_what_could_make_one_is_guarded(bare: Project) -> None:
    done = bare.call("Write", file_path="x")
    assert (done.returncode, done.stdout) == (0, "")
    assert bare.call("Write", file_path=".claude/settings.json").returncode == 2
    assert bare.call("Bash", command="echo 'stop: {}' > .fairlead.yaml").returncode == 2


# -- explain and test ----------------------------------------------------------------------------------


def test_explain_shows_the_rules_and_the_verdict(project: Project) -> None:
    done = project.run("explain", "--tool", "Write", "--file", "src/.env")
    assert done.returncode == 0
    effects = "what the call does\n  writes: src/.env\n"
    assert done.stdout.startswith(f"PreToolUse Write src/.env\n\n{effects}\npolicy\n  {project.policy}\n")
    assert f"  matched   preToolUse.uneditableFiles[0]  .env: {project.folder}/src/.env matches\n" in done.stdout
    assert "\nverdict: block (exit code 2)\n" in done.stdout


def test_explain_speaks_json(project: Project) -> None:
    found = json.loads(project.run("explain", "--command", "ls", "--json").stdout)
    assert (found["event"], found["verdict"], found["exit_code"]) == ("PreToolUse Bash ls", "no objection", 0)


def test_explain_takes_a_payload_and_runs_nothing(project: Project) -> None:
    payload = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(project.folder)}
    done = project.run("explain", stdin=json.dumps(payload))
    assert "commands that would run\n  test ! -e broken  (message on failure: Remove `broken`.)\n" in done.stdout


CASES = """
tests:
  - name: env is safe
    payload: {tool_name: Write, tool_input: {file_path: .env}}
    expect: block
    reason: uneditableFiles
  - name: locks are watched
    payload: {tool_name: Edit, tool_input: {file_path: uv.lock}}
    expect: warn
  - name: unknown programs
    payload: {tool_name: Bash, tool_input: {command: "$X"}}
    expect: ask
  - name: reading is free
    payload: {tool_name: Read, tool_input: {file_path: README.md}}
    expect: allow
"""


def test_the_cases_of_a_policy_are_run(project: Project) -> None:
    project.policy.write_text(POLICY + CASES)
    done = project.run("test")
    assert (done.returncode, done.stdout) == (
        0,
        (
            "ok    env is safe\nok    locks are watched\nok    unknown programs\nok    reading is free\n"
            "4 passed, 0 failed\n"
        ),
    )


def test_a_case_that_comes_out_differently_is_a_miss(project: Project) -> None:
    project.policy.write_text(POLICY + CASES.replace("expect: allow", "expect: block"))
    done = project.run("test", str(project.policy))
    assert done.returncode == 1
    assert done.stdout.endswith("FAIL  reading is free: expected block, got allow\n3 passed, 1 failed\n")


def test_a_case_that_cannot_be_checked_is_a_miss_and_the_next_is_run(project: Project) -> None:
    broken = "tests:\n  - {name: a, payload: {tool_name: Bash, tool_input: {comand: ls}}, expect: allow}\n"
    broken += "  - {name: b, payload: {hook_event_name: PreTolUse}, expect: allow}\n"
    project.policy.write_text(POLICY + broken)
    done = project.run("test")
    assert done.returncode == 1
    assert "FAIL  a: the guard failed: " in done.stdout
    assert "FAIL  b: the payload cannot be read: unknown event 'PreTolUse'; did you mean PreToolUse?\n" in done.stdout


def test_the_cases_of_a_file_are_judged_by_that_file(project: Project) -> None:
    case = "tests: [{name: x, payload: {tool_name: Write, tool_input: {file_path: a/secret}}, expect: block}]\n"
    other = project.folder / "other.yaml"
    other.write_text("preToolUse: {uneditableFiles: [secret]}\n" + case)
    assert project.run("test", "other.yaml").stdout == "ok    x\n1 passed, 0 failed\n"
    missing = project.run("test", "nowhere.yaml")
    assert (missing.returncode, missing.stderr) == (1, "fairlead: nowhere.yaml: no such file or folder\n")


def test_cases_may_stand_in_a_folder_beside_the_policy(project: Project) -> None:
    folder = project.folder / ".fairlead-tests"
    folder.mkdir()
    (folder / "env.yaml").write_text(CASES)
    (folder / "notes.txt").write_text("no cases")
    assert project.run("test").stdout.endswith("4 passed, 0 failed\n")
    (folder / "more.yml").write_text("test: []\n")
    broken = project.run("test")
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "more.yml:1:1: " in broken.stderr


def test_no_cases_is_no_success(project: Project) -> None:
    done = project.run("test")
    assert (done.returncode, done.stderr) == (
        1,
        f"fairlead: there are no tests in {project.policy}; write some under `tests:`\n",
    )


def test_no_policy_is_told_with_what_to_do(bare: Project) -> None:
    done = bare.run("test")
    expected = f"fairlead: {bare.folder}: no policy here or in the folders above; `fairlead init` writes one\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--all"], "unknown option '--all'; see fairlead test --help"),
        (["a", "b"], "test: unexpected argument 'b'; see fairlead test --help"),
    ],
)
def test_a_slip_on_the_command_line_of_test_is_told(project: Project, args: list[str], expected: str) -> None:
    done = project.run("test", *args)
    assert (done.returncode, done.stderr) == (1, f"fairlead: {expected}\n")
