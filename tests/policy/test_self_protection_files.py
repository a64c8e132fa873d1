"""The files that the guards rest on cannot be changed: by a file tool, by a command, by a tool of an MCP server."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from policy.cases import for_each

import fairlead
from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards
from fairlead.policy.guards.self_protection import _environment

SITE = next(path for path in sys.path if path.endswith("site-packages") and path.startswith(sys.prefix))
STANDARD_LIBRARY = str(Path(os.__file__).parent)
PACKAGE = Path(fairlead.__file__).parent


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of which no folder was moved."""
    home = tmp_path.resolve() / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def project(home: Path) -> Path:
    """A project with a policy and an environment of its own."""
    project = home.parent / "project"
    for folder in (".venv/bin", ".venv/lib/python3.11/site-packages", "src", "hooks", ".claude"):
        (project / folder).mkdir(parents=True)
    (project / ".fairlead.yaml").write_text("{}\n")
    for file in ("hooks/guards.py", "hooks/rules.yaml", "src/a.py"):
        (project / file).write_text("text\n")
    return project


def call(project: Path, tool: str, tool_input: dict[str, Any]) -> HookOutput:
    policy = msgspec.convert({"preToolUse": {"preventRootAdditions": False}}, Policy)
    event = PreToolUse(session_id="s", tool_name=tool, tool_input=tool_input, cwd=str(project))
    return Guards([Layer(str(project / ".fairlead.yaml"), str(project), policy)]).check(event).output


def by_each_tool(project: Path, path: str, text: str = "x") -> list[HookOutput]:
    """What is answered to a change of a file: by file tools, by commands, by tools of MCP servers."""
    word = shlex.quote(path)
    return [
        call(project, "Write", {"file_path": path, "content": text}),
        call(project, "Edit", {"file_path": path, "old_string": "a", "new_string": text}),
        call(project, "MultiEdit", {"file_path": path, "edits": [{"old_string": "a", "new_string": text}]}),
        call(project, "Bash", {"command": f"echo {shlex.quote(text)} > {word}"}),
        call(project, "Bash", {"command": f"cat >> {word} <<'E'\n{text}\nE"}),
        call(project, "mcp__fs__write_file", {"path": path, "content": text}),
        call(project, "mcp__fs__edit_file", {"path": path, "edits": [{"oldText": "a", "newText": text}]}),
    ]


def removed_by_each_tool(project: Path, path: str) -> list[HookOutput]:
    word = shlex.quote(path)
    return [
        *(call(project, "Bash", {"command": command}) for command in (f"rm -rf {word}", f"mv {word} moved")),
        call(project, "Bash", {"command": f"python3 -c \"import shutil; shutil.rmtree('{path}')\""}),
        call(project, "mcp__fs__delete_file", {"path": path}),
        call(project, "mcp__fs__move_file", {"source": path, "destination": "moved"}),
    ]


def held(output: HookOutput) -> bool:
    return output.blocked or output.permission == "ask"


ENVIRONMENT = [
    *(f"{SITE}/sitecustomize.py", f"{SITE}/usercustomize.py", f"{SITE}/evil.pth", f"{SITE}/msgspec/__init__.py"),
    *(f"{SITE}/tree_sitter/__init__.py", f"{SITE}/click/core.py", f"{SITE}/new_module.py", f"{SITE}/yaml/loader.py"),
    *(f"{sys.prefix}/pyvenv.cfg", f"{sys.prefix}/bin/python", f"{sys.prefix}/bin/fairlead", sys.executable),
    *(f"{sys.prefix}/bin/fairlead-hook", f"{sys.prefix}/bin/new", os.path.realpath(sys.executable)),
    *(f"{STANDARD_LIBRARY}/json/__init__.py", f"{STANDARD_LIBRARY}/sitecustomize.py", f"{STANDARD_LIBRARY}/os.py"),
    *(f"{PACKAGE}/cli/main.py", f"{PACKAGE}/policy/new.py"),
    f"{sys.base_prefix}/lib/libpython3.11.so.1.0",
]


@for_each("path", ENVIRONMENT)
def test_the_environment_that_decides_is_not_changed(path: str, project: Path) -> None:
    assert all(output.blocked for output in by_each_tool(project, path))


@for_each("path", [SITE, f"{sys.prefix}/lib", f"{sys.prefix}/bin", sys.prefix, STANDARD_LIBRARY])
def test_the_environment_that_decides_is_not_removed(path: str, project: Path) -> None:
    assert all(map(held, removed_by_each_tool(project, path)))


STATE = [
    *("{home}/.config/fairlead/policy.yaml", "{home}/.local/state/fairlead/policies/00.msgpack"),
    *("{home}/.local/state/fairlead/spool/1.json", "{home}/.local/state/fairlead/run/daemon.lock"),
    *("{home}/.local/state/fairlead/run/daemon.sock", "{home}/.claude/settings.json", "/etc/claude-code/x.json"),
    *("{home}/.claude/settings.local.json", "{home}/.claude/remote-settings.json", ".claude/settings.json"),
    *(".claude/settings.local.json", "src/.claude/settings.json", "/etc/claude-code/managed-settings.json"),
    *("{home}/.config/systemd/user/fairlead.service", "{home}/.config/systemd/user/fairlead.service.d/override.conf"),
    *("/etc/systemd/system/fairlead.service", "{home}/Library/LaunchAgents/com.me.fairlead.plist"),
    *("{home}/.local/bin/claude", "{home}/bin/claude", "{home}/.local/share/claude/versions/2.1.325"),
    *("{home}/.local/bin/fairlead", "{home}/.local/bin/fairlead-hook", ".fairlead.yaml", "src/.fairlead.yaml"),
]


@for_each("path", STATE)
def test_state_settings_services_and_programs_are_not_changed(path: str, home: Path, project: Path) -> None:
    full = str(project / path.format(home=home))
    assert all(output.blocked for output in by_each_tool(project, full))


def test_the_last_good_version_of_a_policy_is_not_removed(home: Path, project: Path) -> None:
    kept = home / ".local/state/fairlead/policies/0011.msgpack"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x")
    for path in (str(kept), str(kept.parent), str(home / ".local/state/fairlead"), str(home / ".local/state")):
        assert all(map(held, removed_by_each_tool(project, path)))


@for_each(
    "path",
    [
        *(".venv/bin/python", ".venv/lib/python3.11/site-packages/sitecustomize.py", ".venv/pyvenv.cfg", "src/b.py"),
        *("src/sitecustomize.py", "{home}/.bashrc", "{home}/.config/systemd/user/app.service", "{home}/.claude/x.md"),
        *("{home}/.claude/agents/reviewer.md", ".claude/commands/go.md", "{home}/.local/bin/tool", "bin/claude.md"),
    ],
)
def test_a_projects_environment_and_files_are_free(path: str, home: Path, project: Path) -> None:
    full = str(project / path.format(home=home))
    assert [output.reason for output in by_each_tool(project, full) if held(output)] == []


def test_a_projects_environment_may_be_removed(project: Path) -> None:
    outputs = [call(project, "Bash", {"command": command}) for command in ("rm -rf .venv", "rm -r .venv/lib")]
    assert not any(map(held, outputs))


# -- files that hooks load -------------------------------------------------------------------------------


def install(folder: Path, *words: str, **entry: Any) -> None:
    command = {"type": "command", "command": " ".join(words), **entry}
    (folder / ".claude").mkdir(exist_ok=True)
    settings = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [command]}]}}
    (folder / ".claude/settings.json").write_text(json.dumps(settings))


@for_each(
    "words",
    [
        ("fairlead-hook", "PreToolUse", "--hooks", "{project}/hooks/guards.py"),
        (
            "fairlead-hook",
            "PreToolUse",
            "--hooks={project}/hooks/guards.py:mine",
            "--rules",
            "{project}/hooks/rules.yaml",
        ),
        ("fairlead-hook", "PreToolUse", "--hooks", "$CLAUDE_PROJECT_DIR/hooks/guards.py"),
        ("fairlead-hook", "PreToolUse", "--hooks", '"${{CLAUDE_PROJECT_DIR}}/hooks/guards.py"'),
    ],
)
def test_files_that_installed_hooks_load_are_not_changed(words: tuple[str, ...], project: Path) -> None:
    install(project, *(word.format(project=project) for word in words))
    assert all(output.blocked for output in by_each_tool(project, str(project / "hooks/guards.py")))
    assert not any(map(held, by_each_tool(project, str(project / "hooks/other.py"))))
    if "--rules" in words:
        assert all(output.blocked for output in by_each_tool(project, str(project / "hooks/rules.yaml")))


def test_hooks_in_the_users_settings_name_files_too_and_a_list_of_arguments_does(home: Path, project: Path) -> None:
    install(home, "/x/fairlead-hook", args=["PreToolUse", "--hooks", str(project / "hooks/guards.py")])
    assert all(output.blocked for output in by_each_tool(project, str(project / "hooks/guards.py")))


def test_without_such_a_hook_the_file_is_free(project: Path) -> None:
    install(project, "fairlead-hook", "PreToolUse")
    assert not any(map(held, by_each_tool(project, str(project / "hooks/guards.py"))))


def test_settings_that_cannot_be_parsed_name_no_file(project: Path) -> None:
    (project / ".claude/settings.json").write_text('{"hooks": --hooks')
    assert not any(map(held, by_each_tool(project, str(project / "hooks/guards.py"))))


# -- files that a shell reads when it starts ---------------------------------------------------------------


@for_each(
    "text",
    [
        *("alias claude='claude --bare'", "alias fairlead=true", "claude() { command claude --safe-mode; }"),
        *(
            "function claude { :; }",
            "export CLAUDE_CONFIG_DIR=/tmp/x",
            "CLAUDE_CODE_SIMPLE=1",
            "export FAIRLEAD_HOME=/x",
        ),
        *("export LD_PRELOAD=/tmp/x.so", "set -gx CLAUDE_CONFIG_DIR /tmp/x", "alias -g claude=x", "fairlead () { :; }"),
    ],
)
def test_no_shell_starts_with_another_client_or_other_settings(text: str, home: Path, project: Path) -> None:
    for name in (".bashrc", ".zshrc", ".profile", ".config/environment.d/x.conf", ".config/fish/config.fish"):
        assert all(output.blocked for output in by_each_tool(project, str(home / name), text))


@for_each(
    "text", ["export PATH=$HOME/bin:$PATH", "alias ll='ls -l'", "export EDITOR=vim", 'eval "$(direnv hook bash)"']
)
def test_shell_start_up_files_are_edited_as_ever(text: str, home: Path, project: Path) -> None:
    outputs = by_each_tool(project, str(home / ".bashrc"), text)
    assert [output.reason for output in outputs if held(output)] == []


# -- the list itself ---------------------------------------------------------------------------------------


def test_without_a_virtual_environment_the_folders_that_all_programs_share_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(
        sys, "path", ["/usr/lib/python3.11", "/usr/lib/python3/dist-packages", "/usr/lib/python311.zip"]
    )
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")

    paths = _environment.environment_paths.__wrapped__()

    assert {"/usr/lib/python3/dist-packages", "/usr/bin/python3", "/usr/bin/fairlead"} <= {*paths}
    assert {"/usr/lib/python3.11/sitecustomize.py", "/usr/lib/python311.zip"} <= {*paths}
    assert not {"/usr", "/usr/bin", "/usr/lib"} & {*paths}


def test_the_users_own_libraries_belong_to_it_where_python_looks_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import site

    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "USER_SITE", "/home/me/.local/lib/python3.11/site-packages")
    assert "/home/me/.local/lib/python3.11/site-packages" in _environment.environment_paths.__wrapped__()
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    assert "/home/me/.local/lib/python3.11/site-packages" not in _environment.environment_paths.__wrapped__()


# -- what is recorded ----------------------------------------------------------------------------------


def test_the_journal_and_the_mail_are_not_read(home: Path, project: Path) -> None:
    state = home / ".local/state/fairlead"
    (state / "journal").mkdir(parents=True)
    for name in ("journal/00000001.jsonl", "mail.db", "fairlead.db", "daemon.log"):
        (state / name).write_text("text\n")
    commands = [
        *(f"cat {state}/{name}" for name in ("journal/00000001.jsonl", "mail.db", "fairlead.db", "journal/*", "*")),
        "cat ~/.local/state/fairlead/mail.db",
        "cd ~/.local/state/fairlead && cat mail.db",
        f"sqlite3 {state}/mail.db .dump",
        f"grep -r secret {state}",
        f"cp {state}/mail.db copy.db",
        f"tail -n 5 {state}/journal/00000001.jsonl | jq .",
    ]
    outputs = {command: call(project, "Bash", {"command": command}) for command in commands}
    outputs["Read"] = call(project, "Read", {"file_path": f"{state}/mail.db"})
    outputs["Grep"] = call(project, "Grep", {"pattern": "x", "path": f"{state}/journal"})

    assert [command for command, output in outputs.items() if not output.blocked] == []
    assert "keeps the journal and the mail of all sessions from agents" in str(outputs["Read"].reason)


def test_other_files_are_read_as_ever(home: Path, project: Path) -> None:
    (project / "journal").mkdir()
    (project / "journal/a.md").write_text("text\n")
    (home / ".local/state/fairlead").mkdir(parents=True)
    commands = ["cat journal/a.md", f"cat {home}/.local/state/fairlead/daemon.log", "cat mail.db", "grep -r x journal"]
    outputs = [call(project, "Bash", {"command": command}) for command in commands]
    assert [command for command, output in zip(commands, outputs, strict=True) if output.blocked] == []
