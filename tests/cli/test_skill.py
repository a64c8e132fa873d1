"""The skill that teaches agents to use mail: what it says is true, and it comes and goes with the hooks."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING

import click
import pytest
import yaml
from cli.command_line import run

from fairlead.cli.app import make_root
from fairlead.clients import _skill
from fairlead.clients._skill import skill_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NEWEST = ("--client-version", "2.1.325")


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client's folder, and a Fairlead with its launcher beside it."""
    (tmp_path / "bin").mkdir()
    for name in ("fairlead", "fairlead-hook"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin/fairlead")])
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "fairlead"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "claude"


def run_hooks(args: Sequence[str]) -> int:
    return run("hooks", args)


def skill(config: Path) -> Path:
    return config / "skills/fairlead-mail/SKILL.md"


def test_it_has_the_head_that_the_client_wants_and_is_short() -> None:
    _, head, text = skill_text().decode().split("---\n", 2)
    told = yaml.safe_load(head)
    assert set(told) == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", told["name"])
    assert 50 < len(told["description"]) <= 1024
    assert len(text.split()) <= 300


def test_it_teaches_commands_and_options_that_there_are() -> None:
    lines = [line.split("  ")[0] for line in skill_text().decode().splitlines() if line.startswith("fairlead ")]
    assert len(lines) == 9
    for line in lines:
        _, command, *words = shlex.split(line)
        with click.Context(make_root()) as ctx:
            found = make_root().get_command(ctx, command)
        assert found is not None
        options = {name for param in found.params for name in param.opts}
        assert [word for word in words if word.startswith("--") and word not in options] == []


def test_it_is_put_there_only_if_asked_for(config: Path) -> None:
    assert run_hooks(["install", *NEWEST]) == 0
    assert not skill(config).exists()
    assert run_hooks(["install", "--skill", "--dry-run", *NEWEST]) == 0
    assert not skill(config).exists()
    assert run_hooks(["install", "--skill", *NEWEST]) == 0
    assert skill(config).read_bytes() == skill_text()


def test_it_goes_with_the_hooks_and_leaves_no_folder(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_hooks(["install", "--skill", *NEWEST])
    run_hooks(["uninstall", "--yes"])
    assert not config.exists()
    assert f"skill removed: {skill(config)}" in capsys.readouterr().out


def test_one_of_an_earlier_version_is_brought_up_to_date_and_taken_away(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_skill, "skill_text", lambda: b"of an earlier version\n")
        run_hooks(["install", "--skill", *NEWEST])
    run_hooks(["install", "--skill", *NEWEST])
    assert skill(config).read_bytes() == skill_text()
    run_hooks(["uninstall", "--yes"])
    assert not config.exists()


def test_one_that_a_person_has_changed_is_left_alone(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_hooks(["install", "--skill", *NEWEST])
    skill(config).write_text("mine\n")
    run_hooks(["install", "--skill", *NEWEST])
    run_hooks(["uninstall", "--yes"])
    assert skill(config).read_text() == "mine\n"
    assert capsys.readouterr().out.count("was changed by someone else, so it is left unchanged") == 2


def test_other_skills_stay(config: Path) -> None:
    other = config / "skills/other/SKILL.md"
    other.parent.mkdir(parents=True)
    other.write_text("other\n")
    run_hooks(["install", "--skill", *NEWEST])
    run_hooks(["uninstall", "--yes"])
    assert [str(path.relative_to(config)) for path in config.rglob("*")] == [
        "skills",
        "skills/other",
        "skills/other/SKILL.md",
    ]
