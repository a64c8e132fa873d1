"""No everyday command is blocked or questioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.cases import for_each
from policy.everyday_commands import EVERYDAY

from fairlead.events import PreToolUse
from fairlead.policy import Guards, Layer, read_policy

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
preToolUse:
  uneditableFiles: [".env*", "!.env.example", "*.lock", package-lock.json, "*.pem", secrets/, migrations/, .github/]
  unreadableFiles: [".env*", "!.env.example", "*.pem", secrets/]
"""
FILES = (
    *("src/main.py", "src/a.py", "src/b.py", "src/a.js", "src/b.js", "tests/test_a.py", "docs/a.md", "README.md"),
    *("package.json", "package-lock.json", ".env", ".env.example", "secrets/key.txt", "certs/server.pem"),
    *("migrations/001.sql", ".github/workflows/ci.yml", "packages/api/package.json", "build/a.txt", "poetry.lock"),
    *("requirements.txt", "config/dev.yml", "build/dev.pid"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path.resolve() / "home" / "project"
    for file in FILES:
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_text("{}\n")
    (project / ".fairlead.yaml").write_text(POLICY)
    return project


@for_each("command", EVERYDAY)
def test_an_everyday_command_passes_without_a_question(command: str, project: Path) -> None:
    file = str(project / ".fairlead.yaml")
    guards = Guards((Layer(file, str(project), read_policy(POLICY, file)),))
    event = PreToolUse(session_id="s", cwd=str(project), tool_name="Bash", tool_input={"command": command})
    output = guards.check(event).output

    assert (output.blocked, output.permission) == (False, None), output.reason


def test_the_list_is_long_enough() -> None:
    assert len(set(EVERYDAY)) >= 150
