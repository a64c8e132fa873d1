"""`fairlead validate` and `fairlead schema`, as a person or an editor runs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fairlead.cli import schema, validate
from fairlead.errors import UsageError
from fairlead.policy._schema import policy_schema

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
preToolUse:
  uneditableFiles: [.env, {pattern: "*.lock"}]
  toolUsageValidation: [{tool: Bash, action: block, commandPattern: "rm*"}]
permissionRequest: {default: deny, allow: [Read]}
stop: {commands: [{run: make test}, {run: make lint}]}
subagentStop: {commands: {"*": [{run: echo done}]}}
userPromptSubmit:
  contextRules: [{pattern: a, prompt: b}]
  slashCommands: {commands: {"/deploy": [{run: echo deploy}]}}
"""
BROKEN = "stop:\n  rounds: 3\n  infinite: 1\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project/src").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project/src")
    return tmp_path / "project"


def test_a_valid_policy_is_summed_up(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".fairlead.yaml").write_text(VALID)
    assert validate.run([]) == 0
    assert capsys.readouterr() == (f"{project}/.fairlead.yaml: valid: 5 rules, 4 commands\n", "")


def test_the_user_wide_policy_is_checked_too(project: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".conclaude.yml").write_text("")
    (home / "config.yaml").write_text("stop: {commands: [{run: make}]}")
    assert validate.run([str(project)]) == 0
    assert capsys.readouterr().out == (
        f"{project}/.conclaude.yml: valid: 0 rules, 0 commands\n{home}/config.yaml: valid: 0 rules, 1 command\n"
    )


def test_every_mistake_is_a_line_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "policy.yaml").write_text(BROKEN)
    assert validate.run(["../policy.yaml"]) == 1
    advice = "use `infinite: true` to keep the agent going, and `maxBlocks` to limit it"
    assert capsys.readouterr() == (
        "",
        (
            f"../policy.yaml:2:3: unknown key `rounds` in `stop`; {advice}\n"
            "../policy.yaml:3:13: the number 1 for `stop.infinite`; expected true or false\n"
        ),
    )


def test_a_file_is_checked_by_itself(project: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "config.yaml").write_text(BROKEN)
    (project / "policy.yaml").write_text(VALID)
    assert validate.run(["../policy.yaml"]) == 0
    assert capsys.readouterr().out == "../policy.yaml: valid: 5 rules, 4 commands\n"


def test_programs_read_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "policy.yaml").write_text(VALID)
    assert validate.run(["--json", "../policy.yaml"]) == 0
    files = [{"file": "../policy.yaml", "rules": 5, "commands": 4}]
    assert json.loads(capsys.readouterr().out) == {"valid": True, "files": files, "mistakes": []}

    (project / "policy.yaml").write_text("stop: {infinite: 1}")
    assert validate.run(["../policy.yaml", "--json"]) == 1
    message = "the number 1 for `stop.infinite`; expected true or false"
    mistakes = [{"file": "../policy.yaml", "line": 1, "column": 18, "message": message}]
    assert json.loads(capsys.readouterr().out) == {"valid": False, "files": [], "mistakes": mistakes}


def test_no_policy_is_told_with_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.run([]) == 1
    expected = f"{project}/src: no policy here or in the folders above; `fairlead init` writes one\n"
    assert capsys.readouterr() == ("", expected)
    assert validate.run(["gone.yaml"]) == 1
    assert capsys.readouterr() == ("", "gone.yaml: no such file or folder; `fairlead init` writes a policy\n")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--jsno"], "unknown option '--jsno'; the only one is --json"),
        (["a", "b"], "validate takes one file or folder, got 2"),
    ],
)
def test_a_slip_on_the_command_line_is_told(args: list[str], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate.run(args)
    assert str(caught.value) == expected


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert schema.run([]) == 0
    assert json.loads(capsys.readouterr().out) == policy_schema()
    with pytest.raises(UsageError, match="schema takes no arguments, got 'x'; it prints to stdout"):
        schema.run(["x"])


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert (validate.run(["--help"]), schema.run(["-h"])) == (0, 0)
    assert capsys.readouterr().out == validate.USAGE + schema.USAGE
    assert "example:\n  fairlead validate .fairlead.yaml\n" in validate.USAGE
