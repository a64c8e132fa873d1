"""`fairlead explain`, as a person runs it: what was looked at, what would run, and what to do about a slip."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cli.command_line import error_of, run

from fairlead.policy import remove_trusted, write_trusted

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """\
preToolUse:
  bash: {unparsable: ask}
stop:
  commands:
    - {run: make test, message: The tests must pass., timeout: 60}
    - {run: "cd web\\nnpm test", when: [web/, package.json]}
subagentStop:
  commands:
    "code*": [{run: echo coder}]
    "*": [{run: echo any, timeout: 5}]
    reviewer: [{run: echo reviewer}]
taskCompleted:
  commands: {"*": [{run: make check, message: It is not done.}]}
userPromptSubmit:
  contextRules:
    - {pattern: deploy, prompt: Deploys are frozen.}
    - {pattern: release, prompt: x}
    - {pattern: please, prompt: x, enabled: false}
  commands: [{run: echo prompt}]
  slashCommands: {commands: {deploy: [{run: make check}]}}
worktreeCreate: {command: git worktree add ../x}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".fairlead.yaml").write_text(POLICY)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(monkeypatch, capsys)


class Shown:
    """Runs the command with a payload, or any text, on stdin, and gives what it prints below the policy's name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, payload: object, *args: str) -> str:
        text = payload if isinstance(payload, str) else json.dumps(payload)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert run("explain", args) == 0
        return self._capsys.readouterr().out.partition("/.fairlead.yaml\n\n")[2]

    def whole(self, *args: str) -> str:
        assert run("explain", args) == 0
        return self._capsys.readouterr().out

    def error(self, text: str) -> str:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return error_of(self._capsys, "explain")

    def json(self, payload: object) -> dict[str, Any]:
        text = payload if isinstance(payload, str) else json.dumps(payload)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert run("explain", ["--json"]) == 0
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return found


# -- commands that would run ---------------------------------------------------------------------------


def test_the_checks_before_a_stop_are_shown_with_what_they_decide(shown: Shown) -> None:
    assert shown({"hook_event_name": "Stop"}) == (
        "commands that would run\n"
        "  make test  (timeout 60 s; message on failure: The tests must pass.)\n"
        "  cd web …  (only if a changed file matches web/ or package.json)\n"
        "\n"
        "verdict: no objection (exit code 0), if all commands pass\n"
        "  otherwise: the agent keeps going, at most 5 times in a row (stop.maxBlocks), "
        "and is told which command failed\n"
    )


def test_an_agent_that_is_to_go_on_for_ever_is_kept_going(project: Path, shown: Shown) -> None:
    (project / ".fairlead.yaml").write_text("stop: {infinite: true, maxBlocks: 0, commands: [{run: make}]}\n")
    assert shown({"hook_event_name": "Stop"}) == (
        "commands that would run\n"
        "  make\n"
        "\n"
        "verdict: block (exit code 0), if the command passes\n"
        "  otherwise: the agent keeps going, and is told which command failed\n"
        "  the agent is told: continue working on the task\n"
    )


def test_a_subagents_patterns_are_shown_with_what_they_were_held_against(shown: Shown) -> None:
    assert shown({"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}) == (
        "rules evaluated, in order\n"
        "  matched   subagentStop.commands  code*: compared with 'a1' and 'coder'\n"
        "  matched   subagentStop.commands  *: matches everything\n"
        "  no match  subagentStop.commands  reviewer: compared with 'a1' and 'coder'\n"
        "\n"
        "commands that would run\n"
        "  *: echo any  (timeout 5 s; a failure does not block)\n"
        "  code*: echo coder  (a failure does not block)\n"
        "\n"
        "verdict: no objection (exit code 0)\n"
    )


def test_a_command_that_may_block_is_said_to(shown: Shown) -> None:
    payload = {"hook_event_name": "TaskCompleted", "task_id": "1", "task_subject": "x"}
    assert shown(payload).endswith(
        "commands that would run\n"
        "  *: make check  (message on exit code 2: It is not done.)\n"
        "\n"
        "verdict: no objection (exit code 0), unless the command exits with code 2, which blocks\n"
    )


def test_the_command_that_makes_a_worktree_decides(shown: Shown) -> None:
    assert shown({"hook_event_name": "WorktreeCreate", "name": "x"}) == (
        "commands that would run\n"
        "  git worktree add ../x  (timeout 60 s)\n"
        "\n"
        "verdict: no objection (exit code 0), if the command passes\n"
        "  otherwise: it is blocked\n"
    )


def test_the_rules_on_a_prompt_are_shown_with_the_text_they_bring(shown: Shown) -> None:
    assert shown({"hook_event_name": "UserPromptSubmit", "prompt": "/deploy it, please"}) == (
        "rules evaluated, in order\n"
        "  matched   userPromptSubmit.contextRules[0]  deploy: found in the prompt\n"
        "  no match  userPromptSubmit.contextRules[1]  release: not found in the prompt\n"
        "  no match  userPromptSubmit.contextRules[2]  please: not enabled\n"
        "\n"
        "commands that would run\n"
        "  echo prompt  (a failure does not block)\n"
        "  deploy: make check\n"
        "\n"
        "verdict: no objection (exit code 0), unless the command exits with code 2, which blocks\n"
        "  added to the context: Deploys are frozen.\n"
    )


def test_nothing_is_run(project: Path, shown: Shown) -> None:
    (project / ".fairlead.yaml").write_text("stop: {commands: [{run: touch ran}]}\n")
    shown({"hook_event_name": "Stop"})
    assert not (project / "ran").exists()


# -- rules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "label"), [("ask", "the user is asked"), ("deny", "the agent is told")])
def test_a_doubt_is_among_the_rules(project: Path, shown: Shown, setting: str, label: str) -> None:
    (project / ".fairlead.yaml").write_text(f"preToolUse: {{bash: {{unparsable: {setting}}}}}\n")
    told = shown("", "--command", "$X")
    look = f"  matched   preToolUse.bash.unparsable  {setting}: which program runs is only known when it runs: $X\n"
    assert told.startswith(f"the rule that decides\n{look}\n")
    assert f"\n  {label}: This command cannot be checked against the policy" in told


def test_the_file_that_sets_it_is_in_the_json(project: Path, shown: Shown) -> None:
    (look,) = shown.json({"tool_name": "Bash", "tool_input": {"command": "$X"}})["looked"]
    assert look["file"] == str(project / ".fairlead.yaml")


def test_a_look_that_missed_names_what_was_looked_at(project: Path, shown: Shown) -> None:
    rule = "{tool: Bash, commandPattern: 'git push*', action: block}"
    (project / ".fairlead.yaml").write_text(f"preToolUse: {{toolUsageValidation: [{rule}]}}\n")
    assert shown("", "--all", "--command", "git fetch; git push").startswith(
        "rules evaluated, in order\n"
        "  no match  preToolUse.toolUsageValidation[0]  git push*: block rule, the pattern does not match: git fetch\n"
        "  matched   preToolUse.toolUsageValidation[0]  git push*: 'git push' matches\n"
    )


def test_of_two_reasons_the_one_that_names_the_file_is_told(project: Path, shown: Shown) -> None:
    """A new file at the root, which has a rule of its own."""
    (project / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: ['*.lock', .env]}\n")
    assert shown("", "--all", "--file", ".env").startswith(
        "rules evaluated, in order\n"
        "  no match  preToolUse.protectOwnFiles  true: it is not one of these files: .env\n"
        "  no match  preToolUse.uneditableFiles[0]  *.lock: the pattern does not match: .env\n"
        f"  matched   preToolUse.uneditableFiles[1]  .env: {project}/.env matches\n"
    )


def test_only_the_rule_that_decides_is_shown(project: Path, shown: Shown) -> None:
    (project / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: ['*.lock', .env]}\n")
    assert shown("", "--file", ".env") == (
        "the rule that decides\n"
        f"  matched   preToolUse.uneditableFiles[1]  .env: {project}/.env matches\n"
        "\n"
        "verdict: block (exit code 2)\n"
        "  the agent is told: Blocked Write operation: file matches preToolUse.uneditableFiles pattern '.env'. "
        "File: .env\n"
    )


def test_no_objection_names_what_it_rests_on(project: Path, shown: Shown) -> None:
    (project / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: [.env], preventRootAdditions: false}\n")
    assert "verdict: no objection (exit code 0), 2 rules evaluated without a match (--all lists them)\n" in shown(
        "", "--file", "src/a.py"
    )


# -- hook files ------------------------------------------------------------------------------------------

HOOKS = """\
from fairlead import HookManager, HookOutput, PreToolUse

open("loaded", "w")
hooks = HookManager()


@hooks.on(PreToolUse, matcher="Bash")
def check(event):
    return HookOutput.deny("No force.")
"""
UNLESS = "unless a hook decides otherwise"


@pytest.fixture
def guards(project: Path) -> Path:
    """A trusted hook file, and a policy that lists it."""
    file = project / "guards.py"
    file.write_text(HOOKS)
    write_trusted(str(file), HOOKS.encode())
    (project / ".fairlead.yaml").write_text("preToolUse: {preventRootAdditions: false}\nhooks: [guards.py]\n")
    return file


def test_hook_files_are_named_and_the_verdict_is_not_certain(project: Path, guards: Path, shown: Shown) -> None:
    assert shown("", "--tool", "Bash", "--command", "git push -f") == (
        "hook files, which were not asked\n"
        f"  trusted    {guards}\n"
        "\n"
        f"verdict: no objection (exit code 0), {UNLESS}; no rule is about it\n"
    )
    payload = {"tool_name": "Bash", "tool_input": {"command": "git push -f"}}
    found = shown.json(payload)
    assert (found["verdict"], found["condition"], found["denied_by"]) == ("no objection", UNLESS, None)
    assert [(hook["file"], hook["state"]) for hook in found["hooks"]] == [(str(guards), "trusted")]
    assert not (project / "loaded").exists()

    event = {"hook_event_name": "PreToolUse", "session_id": "s1", "cwd": str(project), **payload}
    decided = subprocess.run(
        [sys.executable, "-m", "fairlead", "PreToolUse"], input=json.dumps(event).encode(), check=False, timeout=60
    )
    assert decided.returncode == 2, "the hook decides otherwise"


def test_a_rule_that_asks_or_a_command_that_decides_is_not_the_last_word(
    project: Path, guards: Path, shown: Shown
) -> None:
    assert f"\n\nverdict: ask (exit code 0), {UNLESS}\n" in shown("", "--command", "$X")
    (project / ".fairlead.yaml").write_text("stop: {commands: [{run: make}]}\nhooks: [guards.py]\n")
    assert shown({"hook_event_name": "Stop"}).startswith(
        "hook files, which were not asked\n"
        f"  trusted    {guards}\n"
        "\n"
        "commands that would run\n"
        "  make\n"
        "\n"
        f"verdict: no objection (exit code 0), if the command passes, and {UNLESS}\n"
    )


def test_a_call_that_a_rule_blocks_is_blocked_whatever_the_hooks_say(project: Path, guards: Path, shown: Shown) -> None:
    guards.write_text("")
    (project / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: [.env]}\nhooks: [guards.py]\n")
    assert shown("", "--file", ".env").endswith(
        "hook files, which were not asked\n"
        f"  changed    {guards}\n"
        "\n"
        "verdict: block (exit code 2)\n"
        "  the agent is told: Blocked Write operation: file matches preToolUse.uneditableFiles pattern '.env'. "
        "File: .env\n"
    )


@pytest.mark.parametrize("state", ["changed", "untrusted", "missing"])
def test_a_hook_file_that_is_not_trusted_decides(guards: Path, shown: Shown, state: str) -> None:
    if state == "changed":
        guards.write_text(HOOKS + "# more\n")
    elif state == "untrusted":
        remove_trusted(str(guards))
    else:
        guards.unlink()
    told = shown("", "--command", "$X")
    assert told.startswith("rules that matched\n"), "the one that asks does not decide"
    assert (
        f"hook files, which were not asked\n  {state:9}  {guards}\n\nverdict: block (exit code 2)\n"
        f"  the agent is told: {guards} "
    ) in told
    found = shown.json({"tool_name": "Bash", "tool_input": {"command": "true"}})
    assert (found["verdict"], found["exit_code"], found["denied_by"]) == ("block", 2, str(guards))

    found = shown.json({"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {}})
    assert (found["verdict"], found["condition"]) == ("no objection", None), "nothing can be blocked, and none is asked"


def test_commands_do_not_run_where_a_hook_file_denies(project: Path, guards: Path, shown: Shown) -> None:
    guards.unlink()
    checks = 'taskCompleted: {commands: {"*": [{run: make check}]}}\n'
    (project / ".fairlead.yaml").write_text(f"{checks}hooks: [guards.py]\n")
    told = shown({"hook_event_name": "TaskCompleted", "task_id": "1", "task_subject": "x"})
    assert "commands that would run" not in told
    assert f"verdict: block (exit code 2)\n  the agent is told: {guards} cannot be read" in told


def test_the_tests_of_a_policy_are_about_its_rules(
    project: Path, guards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They also run where nobody has trusted the hooks, such as on a build machine."""
    guards.write_text("")
    case = "{name: reading passes, payload: {tool_name: Read, tool_input: {file_path: a}}, expect: allow}"
    (project / ".fairlead.yaml").write_text(f"hooks: [guards.py]\ntests: [{case}]\n")
    assert run("test") == 0
    assert capsys.readouterr().out == "ok    reading passes\n1 passed, 0 failed\n"


# -- what the call does --------------------------------------------------------------------------------


def effects(shown: Shown, *args: str) -> list[str]:
    part = shown.whole(*args).partition("what the call does\n")[2].partition("\n\n")[0]
    return [line.removeprefix("  ") for line in part.splitlines()]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("cat a > b", ["writes: b", "reads: a"]),
        ("mv a b", ["writes: b", "removes: a"]),
        ("rm -rf build", ["removes: build, and what is below"]),
        ("cd build && rm x", ["removes: build/x"]),
        ("bash run.sh", ["writes: out.txt", "reads: run.sh", "runs scripts, which were read: run.sh"]),
        ("frobnicate x", ["runs programs that are not known: frobnicate"]),
        ("true", ["nothing to a file, as far as the guards can tell"]),
        ("$X y", ["is not certain: which program runs is only known when it runs: $X"]),
        ("git checkout main", ["runs git, judged by the repository: git checkout main"]),
    ],
)
def test_it_begins_with_what_the_call_does(project: Path, shown: Shown, command: str, lines: list[str]) -> None:
    (project / "build").mkdir()
    (project / "run.sh").write_text("echo x > out.txt\n")
    assert effects(shown, "--command", command) == lines


def test_what_file_tools_do_is_said_too(shown: Shown) -> None:
    assert effects(shown, "--tool", "Read", "--file", "a") == ["reads: a"]
    assert effects(shown, "--file", "a") == ["writes: a"]


# -- what a payload leaves out -------------------------------------------------------------------------


def test_what_a_payload_leaves_out_is_filled_in(project: Path, shown: Shown) -> None:
    found = shown.json({"tool_name": "Write", "tool_input": {"file_path": "a/b"}})
    assert (found["event"], found["files"]) == ("PreToolUse Write a/b", [str(project / ".fairlead.yaml")])


def test_the_agent_and_the_folder_can_be_given_beside_a_payload(project: Path, shown: Shown) -> None:
    (project / "sub").mkdir()
    rule = "{pattern: x, agent: coder, message: Not you.}"
    (project / "sub/.fairlead.yaml").write_text(f"preToolUse: {{uneditableFiles: [{rule}]}}\n")
    call = {"tool_name": "Write", "tool_input": {"file_path": "a/x"}, "cwd": "/"}
    told = shown(call, "--agent", "coder", "--cwd", "sub")
    assert told.endswith("  the agent is told: Not you. (agent: coder)\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1]", "payload: expected a JSON object, got a list"),
        ('{"hook_event_name": 5}', "hook_event_name: expected a string, got a number"),
        ('{"hook_event_name": " "}', "hook_event_name cannot be empty"),
        ('{"hook_event_name": "Stpo"}', "unknown event 'Stpo'; did you mean Stop?"),
    ],
)
def test_a_payload_that_cannot_be_read_is_told(shown: Shown, text: str, expected: str) -> None:
    assert shown.error(text) == expected


def test_a_payload_that_is_no_json_is_told(shown: Shown) -> None:
    assert shown.error("{").startswith("payload: not valid JSON: ")


# -- the command line ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--tool", "bash", "--command", "ls"], "--tool bash: the client has no such tool; did you mean Bash?"),
        (["--tool=webfetch"], "--tool webfetch: the client has no such tool; did you mean WebFetch?"),
        (["--tool", "Write"], "--tool Write needs --file PATH"),
        (["--tool", "Read", "--command", "x"], "--tool Read needs --file PATH"),
        (["--tool", "Bash", "--file", "x"], "--tool Bash needs --command TEXT"),
        (["--file", "x", "--cwd", "gone"], "--cwd gone: no such folder"),
        (["--file", "x", "--cwd", ".fairlead.yaml"], "--cwd .fairlead.yaml: no such folder"),
        (["--flie", "x"], "unknown option '--flie'; did you mean --file?"),
        (["--file"], "--file needs a value"),
    ],
)
def test_a_slip_on_the_command_line_is_told(args: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "explain", args) == expected


@pytest.mark.parametrize("stdin", ["", " \n"])
def test_nothing_to_explain_is_told_with_what_to_do(shown: Shown, stdin: str) -> None:
    assert shown.error(stdin) == (
        "there is nothing to explain; name a call, e.g. fairlead explain --tool Bash --command 'rm -rf build', "
        "or give a payload on stdin, e.g. fairlead explain < payload.json"
    )


def test_a_tool_that_needs_no_file_is_explained(shown: Shown) -> None:
    assert shown("", "--tool", "WebFetch") == "verdict: no objection (exit code 0), no rule is about it\n"


def test_what_is_checked_after_a_call_is_named(shown: Shown, project: Path) -> None:
    rules = "preToolUse: {uneditableFiles: [.env], integrity: restore}\n"
    (project / ".fairlead.yaml").write_text(rules)

    assert shown("", "--command", "uptime").splitlines()[-1] == (
        "  afterwards: if uneditableFiles have changed, the daemon reports them, and puts them back "
        "(preToolUse.integrity: restore)"
    )
    assert "afterwards" not in shown("", "--command", "touch .env")
    assert "afterwards" not in shown("", "--tool", "Read", "--file", "x")
    (project / ".fairlead.yaml").write_text(rules.replace("restore", "'off'"))
    assert "afterwards" not in shown("", "--command", "uptime")
