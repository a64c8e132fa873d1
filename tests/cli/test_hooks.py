"""`fairlead hooks`, as a person runs it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cli.command_line import error_of, run
from test_docs import parts

from fairlead.cli.hooks import install, status
from fairlead.clients.claude.settings import events_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Printed = Callable[[], tuple[str, str]]

ROOT = Path(__file__).parents[2]
NEWEST = ("--client-version", "2.1.325")
ADDED = """\
  added: SessionStart, Setup, SessionEnd, UserPromptSubmit, UserPromptExpansion, PreToolUse,
    PermissionRequest, PermissionDenied, PostToolUse, PostToolUseFailure, PostToolBatch, SubagentStart,
    SubagentStop, TeammateIdle, Stop, StopFailure, Notification, TaskCreated, TaskCompleted, PreCompact,
    PostCompact, PreModelSwitch, PostModelSwitch, Elicitation, ElicitationResult, ConfigChange,
    InstructionsLoaded, CwdChanged, DirectoryAdded
"""
LEFT_OUT = """\
  left out: MessageDisplay: it fires for every piece of text that is shown
  left out: FileChanged: its matcher is the list of files to watch, which only you know
  left out: WorktreeCreate: a hook there replaces the client's own way to make a worktree
  left out: WorktreeRemove: it belongs to WorktreeCreate, and a failure keeps the worktree
"""
OFFER = "  no status line: install with --status-line to see model, context and cost there\n"
NEXT = """\
next:
  running sessions use the hooks within seconds; /hooks in the client lists them
  fairlead hooks install --skill    teaches agents to write to each other
  fairlead doctor
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a client, and a Fairlead with its launcher beside it."""
    for name in ("home", "bin", "project"):
        (tmp_path / name).mkdir()
    for name in ("fairlead", "fairlead-hook"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin/fairlead")])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "fairlead"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Printed:
    """What was printed since the last time, with the folder of the test as `~`."""

    def read() -> tuple[str, str]:
        out, err = capsys.readouterr()
        return out.replace(str(tmp_path), "~"), err.replace(str(tmp_path), "~")

    return read


def run_hooks(args: Sequence[str]) -> int:
    return run("hooks", args)


def user_file(home: Path) -> Path:
    file = home / ".claude/settings.json"
    file.parent.mkdir(exist_ok=True)
    return file


def document(file: Path) -> Any:
    return json.loads(file.read_text())


def test_install_says_what_it_did_and_what_is_next(home: Path, printed: Printed) -> None:
    assert run_hooks(["install", *NEWEST]) == 0
    assert printed() == (
        f"installed in ~/home/.claude/settings.json: 29 events of Claude Code 2.1.325\n{ADDED}{LEFT_OUT}{OFFER}{NEXT}",
        "",
    )
    assert list(document(home / ".claude/settings.json")["hooks"]) == events_for((2, 1, 325))


def test_a_second_install_has_nothing_to_do(home: Path, printed: Printed) -> None:
    run_hooks(["install", *NEWEST])
    before = (home / ".claude/settings.json").read_bytes()
    printed()
    assert run_hooks(["install", *NEWEST]) == 0
    assert printed()[0] == (
        "nothing to do: ~/home/.claude/settings.json already has all hooks of Claude Code 2.1.325\n"
    )
    assert (home / ".claude/settings.json").read_bytes() == before


def test_uninstall_gives_back_the_file(home: Path, printed: Printed) -> None:
    user_file(home).write_text('{"model": "opus"}')
    run_hooks(["install", *NEWEST])
    assert "  the previous file is kept as ~/fairlead/installs/claude-" in printed()[0]
    assert run_hooks(["uninstall", "--yes"]) == 0
    end = "29 events; the file is as it was before, byte for byte"
    assert printed()[0] == f"removed from ~/home/.claude/settings.json: {end}\n"
    assert user_file(home).read_text() == '{"model": "opus"}'
    assert run_hooks(["uninstall", "--yes"]) == 0
    assert printed()[0] == "nothing to do: ~/home/.claude/settings.json contains nothing of Fairlead's\n"


def test_uninstall_of_an_edited_file_says_so(home: Path, printed: Printed) -> None:
    user_file(home).write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "conclaude Stop"}]}]}}')
    run_hooks(["install", *NEWEST, "--replace", "conclaude"])
    assert "  replaced: 1 entry of conclaude, which uninstall restores\n" in printed()[0]
    user_file(home).write_text(user_file(home).read_text() + "\n")
    run_hooks(["uninstall", "--yes"])
    end = "the file was changed since, so only the hooks were removed, and 1 entry restored"
    assert printed()[0] == f"removed from ~/home/.claude/settings.json: 29 events; {end}\n"
    assert "conclaude Stop" in user_file(home).read_text()


def test_a_file_that_came_with_us_goes_with_us(home: Path, printed: Printed) -> None:
    run_hooks(["install"])
    run_hooks(["uninstall", "--yes"])
    assert printed()[0].endswith("26 events; the file is gone, as it was before\n")
    assert not (home / ".claude").exists()


def test_a_dry_run_prints_a_diff_and_changes_nothing(home: Path, tmp_path: Path, printed: Printed) -> None:
    user_file(home).write_text('{\n  "model": "opus"\n}\n')
    assert run_hooks(["install", "--dry-run", *NEWEST]) == 0
    out, err = printed()
    assert out.startswith("--- ~/home/.claude/settings.json\n+++ ~/home/.claude/settings.json\n@@ -1,3 +1,")
    assert '-  "model": "opus"\n+  "model": "opus",\n+  "hooks": {\n' in out
    assert err.startswith("would install in ~/home/.claude/settings.json: 29 events of Claude Code 2.1.325\n")
    assert user_file(home).read_text() == '{\n  "model": "opus"\n}\n'
    assert not (tmp_path / "fairlead").exists()

    run_hooks(["install", *NEWEST])
    written = user_file(home).read_bytes()
    printed()
    assert run_hooks(["uninstall", "--dry-run"]) == 0
    out, err = printed()
    assert '+  "model": "opus"\n' in out
    assert err.startswith("would remove from ~/home/.claude/settings.json: 29 events; ")
    assert user_file(home).read_bytes() == written


def test_of_an_unknown_client_only_the_oldest_events_are_asked(home: Path, printed: Printed) -> None:
    run_hooks(["install"])
    assert printed()[0].startswith(
        "installed in ~/home/.claude/settings.json: 26 events of Claude Code (version unknown, so the oldest events)\n"
    )
    assert "PreModelSwitch" not in document(home / ".claude/settings.json")["hooks"]


def test_the_client_on_the_path_is_asked(tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin/claude").write_text("#!/bin/sh\necho '2.1.220 (Claude Code)'\n")
    (tmp_path / "bin/claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    run_hooks(["install"])
    assert ": 27 events of Claude Code 2.1.220\n" in printed()[0]


def test_each_scope_has_its_file_and_its_warnings(tmp_path: Path, printed: Printed) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    run_hooks(["install", "--scope=local", *NEWEST])
    file = "~/project/.claude/settings.local.json"
    assert f"warning: git does not ignore {file}; add it to .gitignore: its paths are of this machine\n" in printed()[0]
    run_hooks(["install", "--scope", "project", *NEWEST])
    assert (
        "warning: others get this file with the project, and their tool calls are blocked unless they have "
        "~/bin/fairlead-hook; to install for yourself only: --scope local\n"
    ) in printed()[0]
    assert sorted(file.name for file in (tmp_path / "project/.claude").iterdir()) == [
        "settings.json",
        "settings.local.json",
    ]


def test_what_will_hurt_later_is_said_now(home: Path, printed: Printed) -> None:
    rival = {"hooks": [{"type": "command", "command": "~/.claude/hooks/substrate/stop.sh"}]}
    user_file(home).write_text(json.dumps({"disableAllHooks": True, "hooks": {"Stop": [rival]}}))
    run_hooks(["install"])
    out = printed()[0]
    assert "warning: disableAllHooks is set in this file, so the client runs no hooks at all\n" in out
    assert "warning: substrate has hooks here too, which decide the same events; see --replace\n" in out


def test_events_that_are_left_out_can_be_asked_for(home: Path, printed: Printed) -> None:
    run_hooks(["install", "--with", "WorktreeCreate, MessageDisplay", *NEWEST])
    assert "31 events" in printed()[0]
    assert "WorktreeCreate" in document(home / ".claude/settings.json")["hooks"]


# -- the status line -----------------------------------------------------------------------------------

MINE = {"type": "command", "command": "~/line.sh | cut -c 1-80", "padding": 0}


def line(file: Path) -> Any:
    return document(file).get("statusLine")


def test_the_status_line_that_a_person_has_is_listened_to(home: Path, tmp_path: Path, printed: Printed) -> None:
    before = json.dumps({"statusLine": MINE})
    user_file(home).write_text(before)
    run_hooks(["install", *NEWEST])
    assert "  status line: yours; Fairlead reads it, too\n" in printed()[0]
    begin = f"exec {tmp_path}/bin/fairlead-hook StatusLine --python {sys.executable}"
    assert line(user_file(home)) == {**MINE, "command": f"{begin} --then '{MINE['command']}'"}

    run_hooks(["install", *NEWEST])
    assert printed()[0].startswith("nothing to do: ")
    assert run_hooks(["status", "--scope", "user", *NEWEST]) == 0
    assert "29 events: ~/home/.claude/settings.json\n  status line: yours; Fairlead reads it, too\n" in printed()[0]

    run_hooks(["uninstall", "--yes"])
    end = "29 events and the status line; the file is as it was before, byte for byte"
    assert printed()[0] == f"removed from ~/home/.claude/settings.json: {end}\n"
    assert user_file(home).read_text() == before


def test_a_dry_run_shows_what_would_become_of_the_status_line(home: Path, printed: Printed) -> None:
    user_file(home).write_text(json.dumps({"statusLine": MINE}, indent=2))
    run_hooks(["install", "--dry-run", *NEWEST])
    out, err = printed()
    assert '-    "command": "~/line.sh | cut -c 1-80",\n+    "command": "exec ~/bin/fairlead-hook StatusLine ' in out
    assert "  status line: yours; Fairlead reads it, too\n" in err
    assert line(user_file(home)) == MINE


def test_who_has_none_is_shown_ours_only_if_asked(home: Path, printed: Printed) -> None:
    user_file(home).write_text("{}\n")
    run_hooks(["install", *NEWEST])
    assert line(user_file(home)) is None
    run_hooks(["install", "--status-line", *NEWEST])
    assert "  status line: Fairlead's\n" in printed()[0]
    assert set(line(user_file(home))) == {"type", "command"}
    run_hooks(["install", *NEWEST])
    run_hooks(["uninstall", "--yes"])
    assert user_file(home).read_text() == "{}\n"


def test_who_wants_it_left_alone_has_it_left_alone(home: Path, printed: Printed) -> None:
    user_file(home).write_text(json.dumps({"statusLine": MINE}))
    run_hooks(["install", "--no-status-line", *NEWEST])
    assert "  status line: yours; Fairlead does not read it\n" in printed()[0]
    assert line(user_file(home)) == MINE
    run_hooks(["uninstall", "--yes"])
    assert "29 events; the file is as it was before" in printed()[0]


@pytest.mark.parametrize("scope", ["project", "local"])
def test_in_a_project_only_what_stands_there_is_listened_to(scope: str, tmp_path: Path, printed: Printed) -> None:
    file = tmp_path / "project/.claude" / ("settings.json" if scope == "project" else "settings.local.json")
    run_hooks(["install", "--scope", scope, *NEWEST])
    assert "status line" not in printed()[0]
    assert line(file) is None
    run_hooks(["uninstall", "--yes", "--scope", scope])
    file.parent.mkdir()
    file.write_text(json.dumps({"statusLine": MINE}))
    run_hooks(["install", "--scope", scope, *NEWEST])
    assert line(file)["command"].endswith("--then '~/line.sh | cut -c 1-80'")


def test_a_status_line_of_another_shape_is_left_alone(home: Path, printed: Printed) -> None:
    user_file(home).write_text('{"statusLine": "~/line.sh"}')
    run_hooks(["install", "--status-line", *NEWEST])
    assert "  status line: in a form that the client does not run, so it is left unchanged\n" in printed()[0]
    assert line(user_file(home)) == "~/line.sh"


def test_a_launcher_that_moved_is_followed(home: Path, printed: Printed) -> None:
    user_file(home).write_text(json.dumps({"statusLine": MINE}))
    run_hooks(["install", *NEWEST])
    text = user_file(home).read_text()
    user_file(home).write_text(text.replace("/bin/fairlead-hook StatusLine", "/gone/fairlead-hook StatusLine"))
    printed()
    assert run_hooks(["status", "--scope", "user", *NEWEST]) == 1
    gone = "statusLine: ~/gone/fairlead-hook does not exist or cannot be started, so the status line is empty"
    assert f"user: outdated, 29 events: ~/home/.claude/settings.json\n  {gone}\n" in printed()[0]
    run_hooks(["install", *NEWEST])
    assert "  status line: updated\n" in printed()[0]
    assert user_file(home).read_text() == text
    run_hooks(["uninstall", "--yes"])
    assert line(user_file(home)) == MINE


def test_a_status_line_that_is_left_alone_is_taken_out_too(home: Path, printed: Printed) -> None:
    """Somebody has taken out the hooks by hand."""
    user_file(home).write_text(json.dumps({"statusLine": MINE}))
    run_hooks(["install", *NEWEST])
    user_file(home).write_text(json.dumps({"statusLine": line(user_file(home))}))
    printed()
    run_hooks(["uninstall", "--yes"])
    assert printed()[0].startswith("removed from ~/home/.claude/settings.json: 0 events and the status line; ")
    assert document(user_file(home)) == {"statusLine": MINE}


# -- status --------------------------------------------------------------------------------------------


def test_status_shows_every_scope(home: Path, printed: Printed) -> None:
    where = (
        "project: not installed: ~/project/.claude/settings.json\n"
        "local: not installed: ~/project/.claude/settings.local.json\n"
    )
    top = "client: Claude Code 2.1.325\nlauncher: ~/bin/fairlead-hook\n"
    assert run_hooks(["status", *NEWEST]) == 1
    hint = "to install: fairlead hooks install\n"
    assert printed()[0] == f"{top}user: not installed: ~/home/.claude/settings.json\n{where}{hint}"

    run_hooks(["install", *NEWEST])
    printed()
    assert run_hooks(["status", *NEWEST]) == 0
    assert printed()[0] == f"{top}user: installed, 29 events: ~/home/.claude/settings.json\n{where}"
    assert run_hooks(["status", "--scope", "local", *NEWEST]) == 1

    settings = document(user_file(home))
    del settings["hooks"]["Stop"]
    settings["hooks"]["PreToolUse"][0]["hooks"][0].pop("onFailure")
    user_file(home).write_text(json.dumps(settings))
    printed()
    assert run_hooks(["status", *NEWEST]) == 1
    assert printed()[0] == (
        f"{top}user: partial, 28 events: ~/home/.claude/settings.json\n"
        "  missing: Stop\n"
        '  PreToolUse: onFailure is absent, and would be "block"\n'
        f"{where}"
        "to update: fairlead hooks install, with the scope\n"
    )


def test_programs_read_json(home: Path, printed: Printed) -> None:
    run_hooks(["install"])
    printed()
    assert run_hooks(["status", "--json", "--scope", "user"]) == 0
    said = json.loads(printed()[0])
    assert (said["client"], said["client_version"], said["launcher"]) == ("claude", None, "~/bin/fairlead-hook")
    assert said["scopes"] == [
        {
            "scope": "user",
            "file": "~/home/.claude/settings.json",
            "state": "installed",
            "events": events_for(None),
            "missing": [],
            "differences": [],
            "notes": [],
            "status_line": "none",
            "stay": "",
        }
    ]


@pytest.mark.parametrize(
    ("words", "env", "line"),
    [
        (
            ["--persistent"],
            {"FAIRLEAD_STAY": "always", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"},
            "  agents stay: always; at the end of a turn they wait for mail\n",
        ),
        (
            ["--stay", "wake"],
            {"FAIRLEAD_STAY": "wake"},
            "  agents stay: wake; at the end of a turn they stop, and mail wakes them\n",
        ),
    ],
)
def test_agents_can_be_let_stay(home: Path, printed: Printed, words: list[str], env: dict[str, str], line: str) -> None:
    assert run_hooks(["install", *words]) == 0
    assert line in printed()[0]
    assert json.loads((home / ".claude/settings.json").read_text())["env"] == env
    assert run_hooks(["status", "--scope", "user"]) == 0
    assert line in printed()[0]
    assert run_hooks(["install"]) == 0
    assert printed()[0].startswith("nothing to do: ")

    assert run_hooks(["install", "--stay", "no"]) == 0
    assert "  agents stay: no\n" in printed()[0]
    assert "env" not in json.loads((home / ".claude/settings.json").read_text())
    assert run_hooks(["uninstall", "--yes"]) == 0
    assert not (home / ".claude/settings.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stay", "sometimes"], "--stay: expected one of always, wake, no, got 'sometimes'"),
        (["--persistent", "--stay", "wake"], "--persistent is --stay always, and contradicts --stay wake"),
        (["--stay"], "--stay needs a value"),
    ],
)
def test_how_agents_stay_must_be_one_of_the_modes(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error_of(capsys, "hooks install", words) == message


def test_status_works_without_a_launcher(
    home: Path, tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_hooks(["install"])
    (tmp_path / "bin/fairlead-hook").unlink()
    for module in (install, status):
        monkeypatch.setattr(module, "launcher_folders", lambda: [tmp_path / "bin"])
    printed()
    assert run_hooks(["status", "--scope", "user"]) == 1
    out = printed()[0]
    assert "launcher: there is no fairlead-hook in ~/bin; install fairlead again: pip install" in out
    assert "user: broken, 26 events: ~/home/.claude/settings.json\n" in out
    assert "  ~/bin/fairlead-hook does not exist or cannot be started\n" in out
    assert run_hooks(["install"]) == 1
    assert printed()[1].startswith("fairlead: there is no fairlead-hook in ~/bin; install fairlead again")


# -- slips ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["instal"], "unknown command 'instal' of hooks; did you mean install?"),
        (["install", "--json"], "unknown option '--json'; see fairlead hooks install --help"),
        (["status", "now"], "hooks status: unexpected argument 'now'; see fairlead hooks status --help"),
        (["install", "--scope"], "--scope needs a value"),
        (["install", "--status-line", "--no-status-line"], "--status-line and --no-status-line contradict each other"),
        (
            ["install", "--status-line", "--scope", "local"],
            "--status-line needs --scope user: in a project it would replace the status lines of all users",
        ),
        (
            ["uninstall", "--status-line"],
            "unknown option '--status-line'; see fairlead hooks uninstall --help",
        ),
        (["install", "--scope", "global"], "--scope: expected one of user, project, local, got 'global'"),
        (["install", "--client", "codex"], "--client: expected one of claude, got 'codex'"),
        (["install", "--replace", "mine"], "--replace: expected conclaude, substrate, got 'mine'"),
        (
            ["install", "--with", "FileChanged"],
            "--with: expected MessageDisplay, WorktreeCreate, WorktreeRemove, got 'FileChanged'",
        ),
    ],
)
def test_a_slip_on_the_command_line_is_told(args: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "hooks", args) == expected


def test_a_version_that_cannot_be_served_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = error_of(capsys, "hooks install", ["--client-version", "new"])
    assert told.startswith("--client-version: 'new' is not a version of Claude Code; expected three numbers")
    told = error_of(capsys, "hooks install", ["--client-version", "2.0.1"])
    assert told.startswith("Claude Code 2.0.1 cannot start hooks without a shell; update it")


def test_install_and_uninstall_are_commands_of_their_own(home: Path, printed: Printed) -> None:
    assert run("install", NEWEST) == 0
    assert printed()[0].startswith("installed in ~/home/.claude/settings.json: 29 events")
    assert run("uninstall --yes") == 0
    assert printed()[0].startswith("removed from ~/home/.claude/settings.json: 29 events")


def test_a_launcher_in_python_is_told_with_the_remedy(tmp_path: Path, printed: Printed) -> None:
    (tmp_path / "bin/fairlead-hook").write_text("#!/usr/bin/env python3\n")
    slow = (
        "written in Python, about 10 ms slower per event: no C compiler was found when fairlead was installed; "
        "install a C compiler, then run: pip install --force-reinstall --no-cache-dir fairlead"
    )
    run_hooks(["install", *NEWEST])
    assert f"warning: ~/bin/fairlead-hook is {slow}\n" in printed()[0]
    run_hooks(["status", "--scope", "user", *NEWEST])
    assert f"launcher: ~/bin/fairlead-hook\n  {slow}\n" in printed()[0]
    run_hooks(["status", "--json", *NEWEST])
    assert json.loads(printed()[0])["launcher_kind"] == "python"


def test_every_message_of_an_install_is_explained() -> None:
    """The errors of `clients` have classes of their own, which the test of the documents does not know."""
    explained = " ".join((ROOT / "docs/troubleshooting.md").read_text("utf-8").split())
    told = {"InstallError", "JsonTextError", "OldClientError", "SettingsError", "UsageError", "VersionError", "_refuse"}
    found = [
        (file.name, part)
        for file in [*(ROOT / "src/fairlead/clients").glob("_*.py"), *(ROOT / "src/fairlead/cli/hooks").glob("*.py")]
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in told
        for argument in node.args
        for part in parts(argument)
    ]

    assert len(found) > 20
    assert [(name, part) for name, part in found if part not in explained] == []
