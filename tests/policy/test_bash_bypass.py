"""Every command that changes or reads a guarded file is blocked; no harmless command is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.bash_commands import CHANGE_THE_FILE, HARMLESS, READ_THE_FILE
from policy.cases import for_each
from policy.inline_code import CODE_THAT_DOES_NOT, CODE_THAT_WRITES

from fairlead.events import PreToolUse
from fairlead.policy import Guards, Layer, read_policy

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.policy import GuardResult

POLICY = """
preToolUse:
  preventRootAdditions: false
  preventGeneratedFileEdits: false
  uneditableFiles: [.env]
"""
UNREADABLE = "  unreadableFiles: [.env]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "project"
    (folder / "src").mkdir(parents=True)
    (folder / ".env").write_text("SECRET=1\n")
    return folder


def verdict(project: Path, command: str, policy: str = POLICY) -> GuardResult:
    file = str(project / ".fairlead.yaml")
    guards = Guards((Layer(file, str(project), read_policy(policy, file)),))
    event = PreToolUse(session_id="s", cwd=str(project), tool_name="Bash", tool_input={"command": command})
    return guards.check(event)


@for_each("command", CHANGE_THE_FILE)
def test_every_way_to_change_the_file_is_blocked(project: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    assert verdict(project, command).output.blocked


@for_each("command", READ_THE_FILE)
def test_every_way_to_read_the_file_is_blocked(project: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    assert verdict(project, command, POLICY + UNREADABLE).output.blocked


@for_each("command", HARMLESS)
def test_harmless_commands_pass_without_a_question(
    project: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    output = verdict(project, command).output
    assert (output.blocked, output.permission, output.reason) == (False, None, None)


@for_each("command", CODE_THAT_WRITES)
def test_inline_code_that_writes_the_file_is_held(project: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    output = verdict(project, command).output
    assert output.blocked or output.permission == "ask"


@for_each("command", CODE_THAT_DOES_NOT)
def test_inline_code_that_does_not_touch_the_file_passes(
    project: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    output = verdict(project, command).output
    assert (output.blocked, output.permission, output.reason) == (False, None, None)
