"""A real repository with protected files, for the tests of the guard on git."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
PROTECTED = "config.lock"
"""Tracked on every branch; it differs on `other`, and in the first commit."""
IGNORED = ".env"
"""Ignored on every branch, and on the disk; tracked on `with-env`."""


def git(folder: Path, *args: str, **variables: str) -> str:
    """Run git in a repository of a test."""
    environment = {**os.environ, **ENVIRONMENT, **variables}
    command = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *args]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"git {' '.join(args)}: {result.stderr}"
    return result.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path, message: str, files: dict[str, str]) -> None:
    """Write and commit files."""
    write(folder, files)
    git(folder, "add", "-f", *files)
    git(folder, "commit", "-q", "-m", message)


def make_repository(folder: Path) -> Path:
    """Create the repository.

    `main` has three commits, of which only the first two have another `config.lock`. `feature` and `remote/feature`
    change code; `other` changes `config.lock`; `with-env` tracks `.env`; `gone` has no `config.lock`.
    """
    origin, project = folder / "origin.git", folder / "project"
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "--bare", str(origin))
    git(folder, "init", "-q", str(project))
    git(project, "config", "user.name", "a")
    git(project, "config", "user.email", "a@example.org")
    commit(project, "first", {"config.lock": "one\n", "src/app.py": "a = 1\n", ".gitignore": ".env\nbuild/\n"})
    commit(project, "second", {"config.lock": "two\n"})
    git(project, "tag", "v1")
    commit(project, "third", {"src/app.py": "a = 2\n"})
    git(project, "switch", "-q", "-c", "feature")
    commit(project, "code", {"src/app.py": "a = 3\n", "src/new.py": "b = 1\n"})
    git(project, "switch", "-q", "-c", "other", "main")
    commit(project, "lock", {"config.lock": "other\n"})
    git(project, "switch", "-q", "-c", "with-env", "main")
    commit(project, "env", {".env": "KEY=tracked\n"})
    git(project, "switch", "-q", "-c", "gone", "main")
    git(project, "rm", "-q", PROTECTED)
    git(project, "commit", "-q", "-m", "gone")
    git(project, "switch", "-q", "feature")
    git(project, "switch", "-q", "main")
    commit(project, "fourth", {"docs/a": "text\n"})
    git(project, "remote", "add", "origin", str(origin))
    git(project, "push", "-q", "origin", "main", "feature", "other", "feature:remote-only", "other:remote-other")
    git(project, "fetch", "-q", "origin")
    git(project, "branch", "-q", "--set-upstream-to=origin/main")
    write(project, {".env": "KEY=secret\n", "build/out": "x\n", "notes": "new\n"})
    return project


def check(project: Path, command: str, cwd: str = "", guards: Guards | None = None, **pre_tool_use: Any) -> HookOutput:
    """Return the answer to a Bash call in the repository."""
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=str(project / cwd))
    return (guards or make_guards(project, **pre_tool_use)).check(event).output


def make_guards(project: Path, **pre_tool_use: Any) -> Guards:
    """Compile a policy that stands in the repository."""
    if not pre_tool_use:
        pre_tool_use = {"uneditableFiles": [PROTECTED, IGNORED]}
    policy = msgspec.convert({"preToolUse": {"preventRootAdditions": False, **pre_tool_use}}, Policy)
    return Guards([Layer(str(project / ".fairlead.yaml"), str(project), policy)])


def verdict(output: HookOutput) -> str:
    """Return the answer as one word."""
    if output.blocked:
        return "block"
    return "ask" if output.permission == "ask" else "pass"
