"""A policy file that was deleted still applies to events: each command says so, and how a person ends it."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli.command_line import error_of, run

from fairlead.policy import load_policy

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """\
preToolUse:
  preventRootAdditions: false
  uneditableFiles: [.env]
stop: {commands: [{run: make test}]}
tests: [{name: a, payload: {tool_name: Write, tool_input: {file_path: a/.env}}, expect: block}]
hooks: [guards.py]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "the home"
    folder.mkdir()
    monkeypatch.setenv("FAIRLEAD_HOME", str(folder))
    return folder


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The policy file of the working folder, which was deleted after it had decided an event."""
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    monkeypatch.chdir(project)
    file = project / ".fairlead.yaml"
    file.write_text(POLICY)
    load_policy(str(project))
    file.unlink()
    return file


def warning(policy: Path, home: Path) -> str:
    (kept,) = (home / "policies").iterdir()
    return (
        f"{policy}: the file was deleted. Its last good version is used. Restore the file, or stop using that version: "
        f"rm '{kept}'"
    )


def test_explain_shows_the_verdict_of_the_hook_until_the_named_command_was_run(
    policy: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy.write_text(POLICY.replace("hooks: [guards.py]\n", ""))
    load_policy(str(policy.parent))
    policy.unlink()
    told = warning(policy, home)

    assert run("explain", ["--tool", "Write", "--file", "src/.env"]) == 0
    shown = capsys.readouterr().out
    assert f"policy\n  {told}\n\nthe rule that decides\n" in shown
    assert "\nverdict: block (exit code 2)\n" in shown
    assert run("explain", ["--tool", "Write", "--file", "src/.env", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["files"], found["warnings"]) == ("block", [str(policy)], [told])

    call = {"session_id": "s", "tool_name": "Write", "tool_input": {"file_path": "src/.env", "content": "x"}}
    for code, verdict in ((2, "block"), (0, "no objection")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(call).encode())))
        assert run("PreToolUse") == code
        capsys.readouterr()
        run("explain", ["--tool", "Write", "--file", "src/.env"])
        assert f"\nverdict: {verdict} " in capsys.readouterr().out
        if code:
            subprocess.run(shlex.split(told[told.index("rm ") :]), check=True)


def test_explain_names_the_hook_files_of_the_last_good_version(
    policy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (policy.parent / "guards.py").touch()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"hook_event_name": "Stop"}')))
    assert run("explain") == 0
    assert "hook files, which were not asked\n  untrusted  " in capsys.readouterr().out


def test_a_file_that_decided_no_event_is_not_in_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: [.env]}\n")
    assert run("validate") == 0
    (tmp_path / ".fairlead.yaml").unlink()
    capsys.readouterr()
    assert run("explain", ["--tool", "Write", "--file", "src/.env"]) == 0
    assert "policy\n  none found; see fairlead init\n" in capsys.readouterr().out


def test_validate_says_what_still_applies(policy: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = warning(policy, home)
    assert run("validate") == 1
    out, err = capsys.readouterr()
    assert err == f"{told}\n"
    first = f"{policy}: deleted, its last good version still applies: 1 rule, 1 command, 1 hook file\n"
    assert out.startswith(first)
    assert "  preToolUse.uneditableFiles[0]  .env: no file now\n" in out

    assert run("validate", ["--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["mistakes"], found["warnings"]) == (False, [], [told])
    assert found["files"] == [{"file": str(policy), "rules": 1, "commands": 1, "hooks": 1, "deleted": True}]

    assert run("validate", [".fairlead.yaml"]) == 1
    assert capsys.readouterr() == ("", f"{told}\n")


def test_validate_passes_if_there_is_another_file(policy: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = warning(policy, home)
    (home / "config.yaml").write_text("stop: {infinite: true}\n")
    assert run("validate") == 0
    out, err = capsys.readouterr()
    assert err == f"{told}\n"
    assert f"{home}/config.yaml: valid: 0 rules, 0 commands\n" in out


def test_visualize_and_hooks_list_show_what_still_applies(
    policy: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = warning(policy, home)
    (policy.parent / "src/.env").touch()
    assert run("visualize", ["--rule", "uneditableFiles"]) == 0
    shown = f"{policy}\n  preToolUse.uneditableFiles[0]  .env: 1 file now\n      src/.env\n"
    assert capsys.readouterr() == (shown, f"{told}\n")
    assert run("hooks list") == 0
    out, err = capsys.readouterr()
    assert (out.startswith(f"refused  {policy.parent}/guards.py "), err) == (True, f"{told}\n")


def test_test_and_trust_are_about_files_and_name_the_deleted_one(
    policy: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = warning(policy, home)
    assert run("test") == 1
    missing = f"fairlead: {policy.parent}: no policy here or in the folders above; `fairlead init` writes one\n"
    assert capsys.readouterr() == ("", f"{told}\n{missing}")
    assert error_of(capsys, "trust") == told


def test_no_command_replaces_what_still_applies_unasked(
    policy: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = warning(policy, home)
    (policy.parent / "guards.py").touch()
    assert error_of(capsys, "hooks add", ["guards.py", "--yes"]) == told
    refused = (
        f"{policy} was deleted, and its last good version still applies; restore the file, or run init with --force, "
        "which writes .fairlead.yaml in its place"
    )
    assert error_of(capsys, "init") == refused
    assert error_of(capsys, "init", ["src/.."]) == refused
    assert not os.path.lexists(policy)


def test_with_force_init_asks_a_person_and_replaces_it(
    policy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert "needs a confirmation" in error_of(capsys, "init", ["--force"])
    assert run("init", ["--force", "--yes"]) == 0
    assert policy.exists()
    capsys.readouterr()
    assert run("explain", ["--tool", "Write", "--file", "src/.env"]) == 0
    assert "verdict: no objection" in capsys.readouterr().out
