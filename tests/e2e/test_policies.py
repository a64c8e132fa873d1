"""The real client and several policies: wherever the agent goes, the policy above a file protects it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e import sealed
from e2e.model import bash

if TYPE_CHECKING:
    from collections.abc import Sequence

FAIRLEAD = Path(sys.executable).with_name("fairlead")
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
SECRETS = "preToolUse: {preventRootAdditions: false, uneditableFiles: [{pattern: .env, message: Kept.}]}\n"
DENIED = "PreToolUse:Bash hook error: Kept."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project", SECRETS)


def make(folder: Path, policy: str) -> Path:
    folder.mkdir(parents=True)
    (folder / ".fairlead.yaml").write_text(policy)
    (folder / ".env").write_text("KEY=1\n")
    return folder


def run(client: Path, project: Path, commands: Sequence[str], *arguments: str) -> list[str]:
    """Let the agent run commands, and return what it reads of each."""
    hooks = {
        event: [{"hooks": [{"type": "command", "command": str(FAIRLEAD), "args": [event], "timeout": 30}]}]
        for event in EVENTS
    }
    done = sealed.run(
        sealed.claude(client, "Go.", *arguments),
        folder=project.parent,
        script=[*([bash(command)] for command in commands), "Done."],
        settings={"hooks": hooks},
        env={"FAIRLEAD_HOME": str(project.parent / "fairlead")},
    )
    assert (done.exit_code, done.stdout) == (0, "Done.\n")
    return list(done.requests[-1].results)


def test_far_below_the_project_its_files_are_protected(client: Path, project: Path) -> None:
    deep = project.joinpath(*"abcdefghijklm")
    deep.mkdir(parents=True)
    results = run(client, project, [f"cd {deep.relative_to(project)} && pwd", f"rm {'../' * 13}.env"])
    assert results == [str(deep), DENIED]
    assert (project / ".env").exists()


def test_from_an_added_folder_the_projects_files_are_protected(client: Path, project: Path) -> None:
    added = project.parent / "added"
    added.mkdir()
    results = run(client, project, [f"cd {added} && pwd", "rm ../project/.env"], "--add-dir", str(added))
    assert results == [str(added), DENIED]
    assert (project / ".env").exists()


def test_files_of_another_project_are_protected_by_its_policy(client: Path, project: Path) -> None:
    other = make(project.parent / "other", SECRETS)
    (project / ".fairlead.yaml").unlink()
    assert run(client, project, ["rm ../other/.env"]) == [DENIED]
    assert (other / ".env").exists()


def test_a_cloned_repository_switches_nothing_off_and_runs_nothing(client: Path, project: Path) -> None:
    clone = make(
        project / "clone",
        "preToolUse: {protectOwnFiles: false, bash: {unparsable: allow}, uneditableFiles: [own.txt],"
        " toolUsageValidation: [{tool: '*', action: allow, pattern: '*'}]}\n"
        "userPromptSubmit: {commands: [{run: touch ran}]}\n"
        "postToolUse: {commands: {'*': [{run: touch ran}]}}\n"
        "stop: {commands: [{run: touch ran}]}\n",
    )
    commands = ["cd clone && pwd", "rm ../.env", "rm .fairlead.yaml", "touch own.txt"]
    entered, protected, policy, own = run(client, project, commands)
    assert (entered, protected) == (str(clone), DENIED)
    assert "preToolUse.protectOwnFiles" in policy
    assert "preToolUse.uneditableFiles pattern 'own.txt'" in own
    assert not list(project.rglob("ran"))
