"""The guards on file tools, on other tools, and on permission requests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from policy.cases import for_each
from unprivileged import without_permission

import fairlead
from fairlead.events import PermissionRequest, PreToolUse
from fairlead.hooks import HookManager
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards
from fairlead.policy.guards._hooks import register_guards
from fairlead.policy.paths import _search
from fairlead.testing import assert_allows, assert_blocks


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("FAIRLEAD_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with protected files, and links to them."""
    project = tmp_path.resolve() / "project"
    for folder in ("src/deep", "docs", "vault", ".claude", "with space"):
        (project / folder).mkdir(parents=True)
    for file in (".env", "src/main.py", "src/deep/.env", "docs/a.md", "vault/key.pem", "with space/x.py", "README.md"):
        (project / file).write_text("text\n")
    (project / ".fairlead.yaml").write_text("{}\n")
    (project / ".claude" / "settings.json").write_text("{}\n")
    (project / "to_root").symlink_to(project)
    (project / "to_policy").symlink_to(".fairlead.yaml")
    return project


def layer(folder: Path, name: str = ".fairlead.yaml", **pre_tool_use: Any) -> Layer:
    pre_tool_use.setdefault("preventRootAdditions", False)
    policy = msgspec.convert({"preToolUse": pre_tool_use}, Policy)
    return Layer(str(folder / name), str(folder), policy)


def call(tool: str, cwd: Path, agent: str | None = None, **tool_input: Any) -> PreToolUse:
    return PreToolUse(session_id="s", tool_name=tool, tool_input=tool_input, cwd=str(cwd), agent_type=agent)


def denied(layers: Layer | list[Layer], event: PreToolUse) -> str | None:
    """The reason that the agent is shown; `None` if the call is not blocked."""
    output = Guards(layers if isinstance(layers, list) else [layers]).check(event).output
    return output.reason if output.blocked else None


# -- bypasses ------------------------------------------------------------------------------------------

BYPASSES = [
    *(".env", "./.env", ".//.env", "././.env", ".env/", ".env/.", "src/../.env", "src/deep/../../.env"),
    *("docs/.././.env", "nowhere/../.env", "../project/.env", "{p}/.env", "{p}//.env", "/{p}/.env", "{p}/src/../.env"),
    *("src/deep/.env", "src/./deep/.env", "{p}/src/deep/.env", "new/folder/.env", "~/../project/.env"),
    *("vault/key.pem", "vault", "vault/", "vault/new/deep.txt", "vault/../vault/key.pem", "src/../vault/x"),
    *("to_env", "./to_env", "src/to_env", "to_to_env", "to_vault/key.pem", "to_vault/new.txt", "to_vault/../.env"),
    *("outside_link/.env", "{o}/back/.env", "{o}/back/vault/key.pem", "{o}/abs_env", "dangling", "loop/../.env"),
    *("to_src/deep/.env", "to_src/../.env", "named_link", "/proc/self/cwd/.env", "/proc/self/root{p}/.env"),
    *("cl\u00e9.txt", "cle\u0301.txt", "docs/cle\u0301.txt", "{a}/.env", "{a}/src/../.env", "{a}/named_link"),
]


@pytest.fixture
def links(project: Path, tmp_path: Path) -> dict[str, Path]:
    """Links that lead to the protected files under other names."""
    outside = tmp_path.resolve() / "outside"
    outside.mkdir()
    alias = tmp_path.resolve() / "alias"
    pairs: dict[Path, Path | str] = {
        project / "to_env": ".env",
        project / "src" / "to_env": "../.env",
        project / "to_to_env": "to_env",
        project / "to_vault": "vault",
        project / "to_src": "src",
        project / "outside_link": outside / "back",
        project / "dangling": "vault/later.txt",
        project / "loop": "loop",
        project / "named_link": outside / "free.txt",
        outside / "back": project,
        outside / "abs_env": project / ".env",
        alias: project,
    }
    for link, target in pairs.items():
        link.symlink_to(target)
    return {"p": project, "o": outside, "a": alias}


PROTECTED = [".env", "/vault", "cl\u00e9.txt", "named_link"]


@for_each("tool", ["Write", "Edit"])
@for_each("path", BYPASSES)
def test_no_spelling_of_a_path_bypasses_a_rule(path: str, tool: str, project: Path, links: dict[str, Path]) -> None:
    path = path.format(**links)
    rules = layer(project, uneditableFiles=PROTECTED)

    assert denied(rules, call(tool, project, file_path=path)), path


@for_each("path", ["../.env", "deep/.env", "../../project/.env", "../vault/key.pem", "to_env"])
def test_no_spelling_of_a_path_bypasses_a_rule_from_a_folder_below(
    path: str, project: Path, links: dict[str, Path]
) -> None:
    assert denied(layer(project, uneditableFiles=PROTECTED), call("Edit", project / "src", file_path=path))


@for_each(
    ("tool", "tool_input"),
    [
        ("MultiEdit", {"file_path": ".env", "edits": []}),
        ("NotebookEdit", {"notebook_path": ".env"}),
        ("mcp__fs__write_file", {"path": ".env"}),
        ("mcp__fs__move_file", {"source": "docs/a.md", "destination": ".env"}),
        ("mcp__fs__delete_many", {"paths": ["docs/a.md", ".env"]}),
        ("mcp__serena__replace", {"relative_path": ".env"}),
        ("mcp__fs__write_file", {"path": "file://{p}/.env"}),
        ("FutureEdit", {"file_path": ".env"}),
        ("FutureEdit", {"filename": ".env"}),
    ],
)
def test_every_tool_that_has_a_file_and_is_not_known_to_read_is_guarded(
    tool: str, tool_input: dict[str, Any], project: Path
) -> None:
    filled = {k: v.format(p=project) if isinstance(v, str) else v for k, v in tool_input.items()}

    assert denied(layer(project, uneditableFiles=[".env"]), call(tool, project, **filled))


HARMLESS = [
    *("src/main.py", "./src/main.py", "src/new.py", "{p}/src/main.py", "docs/a.md", "docs/b.md", "README.md"),
    *(".env.example", ".envrc", "src/.env.local", "env", "my.env", "src/environment.py", "with space/x.py"),
    *("docs/vault", "src/vault/x.py", "vault.md", "vaults/x", "src/../README.md", "../project/README.md"),
    *("{o}/x/.env", "{o}/.env", "{o}/vault/key", "../other/.env", "~/notes.md", "~/.env", "to_src/main.py"),
    *("src/deep/x.py", "src/deep/../main.py", "new/folder/x.py", "docs/cle.txt", "docs/cl\u00e8.txt", "Makefile"),
    *(".github/workflows/ci.yml", ".claude/agents/a.md", ".claude/commands/x.md", ".claude/skills/s/SKILL.md"),
    *("fairlead.yaml", "docs/fairlead.yaml", "settings.json", ".vscode/settings.json", "src/.claude.py"),
]


@for_each("path", HARMLESS)
def test_what_is_harmless_is_not_blocked(path: str, project: Path, links: dict[str, Path]) -> None:
    rules = layer(project, uneditableFiles=PROTECTED, unreadableFiles=PROTECTED)

    assert denied(rules, call("Write", project, file_path=path.format(**links))) is None
    assert denied(rules, call("Read", project, file_path=path.format(**links))) is None


@for_each(
    ("tool", "tool_input"),
    [
        ("Read", {"file_path": ".env"}),
        ("Grep", {"path": ".env", "pattern": "x"}),
        ("mcp__fs__read_file", {"path": ".env"}),
        ("mcp__fs__list_directory", {"path": "vault"}),
        ("WebFetch", {"url": "https://a.b/.env"}),
        ("Agent", {"prompt": "edit .env", "subagent_type": "x"}),
        ("TodoWrite", {"todos": []}),
    ],
)
def test_uneditable_files_may_be_read(tool: str, tool_input: dict[str, Any], project: Path) -> None:
    assert denied(layer(project, uneditableFiles=PROTECTED), call(tool, project, **tool_input)) is None


# -- messages ------------------------------------------------------------------------------------------

ROOT = "preToolUse.preventRootAdditions"
OWN = "preToolUse.protectOwnFiles protects the policy, the client's settings and Fairlead's own files"


@for_each(
    ("rules", "tool", "path", "message"),
    [
        (
            {"uneditableFiles": ["*.env"]},
            "Edit",
            ".env",
            "Blocked Edit operation: file matches preToolUse.uneditableFiles pattern '*.env'. File: .env",
        ),
        (
            {"uneditableFiles": [{"pattern": ".env", "message": "Can't {tool} <this>!"}]},
            "Edit",
            ".env",
            "Can't {tool} <this>!",
        ),
        (
            {"preventAdditions": ["dist"]},
            "Write",
            "dist/output.js",
            "Blocked Write operation: file matches preToolUse.preventAdditions pattern 'dist'. File: dist/output.js",
        ),
        (
            {"preventRootAdditions": True},
            "Write",
            "new.txt",
            f"Blocked Write operation: {ROOT} setting prevents creating files at repository root. File: new.txt",
        ),
        (
            {"preventRootAdditions": True, "preventRootAdditionsMessage": "{tool}: not {file_path}"},
            "Write",
            "new.txt",
            "Write: not new.txt",
        ),
        (
            {"unreadableFiles": [".env"]},
            "Read",
            ".env",
            "Blocked Read operation: file matches preToolUse.unreadableFiles pattern '.env'. File: .env",
        ),
        (
            {"toolUsageValidation": [{"tool": "Write", "pattern": "docs/**", "action": "block"}]},
            "Write",
            "docs/a.md",
            "Tool usage blocked by preToolUse.toolUsageValidation rule: docs/**",
        ),
        (
            {"toolUsageValidation": [{"tool": "Write", "pattern": "src/**/*.ts", "action": "allow"}]},
            "Write",
            "docs/a.md",
            "Tool usage blocked by preToolUse.toolUsageValidation rule: src/**/*.ts",
        ),
        (
            {},
            "Edit",
            ".fairlead.yaml",
            f"Blocked Edit operation: {OWN}. Only the user may change them. File: .fairlead.yaml",
        ),
    ],
)
def test_the_reason_is_exactly_this(rules: dict[str, Any], tool: str, path: str, message: str, project: Path) -> None:
    assert denied(layer(project, **rules), call(tool, project, file_path=path)) == message


def test_the_reason_of_a_rule_for_one_agent_names_the_agent(project: Path) -> None:
    rules = layer(project, uneditableFiles=[{"pattern": ".env", "agent": "code*"}])

    assert denied(rules, call("Edit", project, "coder-v2", file_path=".env")) == (
        "Blocked Edit operation: file matches preToolUse.uneditableFiles pattern '.env' (agent: coder-v2). File: .env"
    )


def test_a_custom_message_of_a_rule_for_one_agent_names_the_agent(project: Path) -> None:
    rules = layer(project, uneditableFiles=[{"pattern": ".env", "agent": "main", "message": "No."}])

    assert denied(rules, call("Edit", project, file_path=".env")) == "No. (agent: main)"


@for_each(
    ("pattern", "agent", "blocked"),
    [
        ("*", None, True),
        ("*", "coder", True),
        ("main", None, True),
        ("main", "coder", False),
        ("coder", "coder", True),
        ("coder", "coder-v2", False),
        ("coder", None, False),
        ("Coder", "coder", False),
        ("code?", "coder", True),
        ("[ct]*", "tester", True),
    ],
)
def test_a_rule_applies_to_the_agents_that_it_names(
    pattern: str, agent: str | None, *, blocked: bool, project: Path
) -> None:
    file_rule = layer(project, uneditableFiles=[{"pattern": ".env", "agent": pattern}])
    tool_rule = layer(project, toolUsageValidation=[{"tool": "Edit", "action": "block", "agent": pattern}])

    for rules in (file_rule, tool_rule):
        assert (denied(rules, call("Edit", project, agent, file_path=".env")) is not None) is blocked


def test_a_warning_allows_the_call_and_shows_the_user_a_message(project: Path) -> None:
    rules = layer(project, uneditableFiles=[{"pattern": ".env", "action": "warn", "message": "Careful."}])
    output = Guards([rules]).check(call("Edit", project, file_path=".env")).output

    assert (output.blocked, output.permission, output.system_message) == (False, None, "Careful.")


def test_a_block_wins_over_a_warning(project: Path) -> None:
    rules = layer(project, uneditableFiles=[{"pattern": ".env", "action": "warn", "message": "Careful."}, "*"])
    output = Guards([rules]).check(call("Edit", project, file_path=".env")).output

    assert output.blocked
    assert output.system_message == "Careful."


# -- additions -----------------------------------------------------------------------------------------


def test_an_existing_file_may_be_written_where_none_may_be_added(project: Path) -> None:
    rules = layer(project, preventAdditions=["docs/**"], preventRootAdditions=True)

    assert denied(rules, call("Write", project, file_path="docs/a.md")) is None
    assert denied(rules, call("Write", project, file_path="README.md")) is None
    assert denied(rules, call("Write", project, file_path="docs/b.md"))
    assert denied(rules, call("Edit", project, file_path="docs/b.md"))


@for_each("path", ["new", ".hidden", "./new", "src/../new", "{p}/new", "{p}//new", "new/", "to_root/new"])
def test_no_spelling_of_a_path_creates_a_file_at_the_root(path: str, project: Path) -> None:
    assert denied(layer(project, preventRootAdditions=True), call("Write", project, file_path=path.format(p=project)))


@for_each("path", ["src/new", "new/file", "../new", "/tmp/new"])
def test_new_files_in_other_folders_are_allowed(path: str, project: Path) -> None:
    assert denied(layer(project, preventRootAdditions=True), call("Write", project, file_path=path)) is None


# -- generated and ignored -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "marker"),
    [
        ("// Code generated by protoc. do not edit.", "DO NOT EDIT"),
        ("# CODE GENERATED BY x", "Code generated by"),
        ("/* auto-generated */", "Auto-generated"),
        ("# autogenerated", "Autogenerated"),
        ("# generated code", "Generated code"),
        ("# @generated", "@generated"),
        ("this file is generated", "This file is generated"),
        ("This file was GENERATED", "This file was generated"),
    ],
)
def test_a_generated_file_is_not_edited(line: str, marker: str, project: Path) -> None:
    (project / "src" / "gen.py").write_text("\n" * 99 + line)

    assert denied(layer(project), call("Edit", project, file_path="src/gen.py")) == (
        f"BLOCKED: File 'src/gen.py' is auto-generated (contains '{marker}'). This file should NEVER be edited "
        "directly. Change what it is generated from, and generate it again."
    )


def test_a_marker_further_down_or_in_a_device_does_not_count(project: Path) -> None:
    (project / "src" / "gen.py").write_text("\n" * 100 + "@generated")

    assert denied(layer(project), call("Edit", project, file_path="src/gen.py")) is None
    assert denied(layer(project), call("Edit", project, file_path="/dev/null")) is None


def test_the_message_about_a_generated_file_can_be_replaced(project: Path) -> None:
    (project / "src" / "gen.py").write_text("@generated")
    rules = layer(project, generatedFileMessage="{file_path} has {marker}")

    assert denied(rules, call("Edit", project, file_path="src/gen.py")) == "src/gen.py has @generated"
    assert (
        denied(layer(project, preventGeneratedFileEdits=False), call("Edit", project, file_path="src/gen.py")) is None
    )


def test_a_file_that_git_ignores_is_not_changed_if_so_configured(project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("*.log\n!keep.log\n")
    rules = layer(project, preventUpdateGitIgnored=True)
    message = denied(rules, call("Write", project, file_path="src/debug.log"))

    assert message is not None
    assert message.splitlines()[:4] == [
        "File operation blocked: Path is git-ignored",
        "File: src/debug.log",
        f"Matched pattern: *.log (in {project}/.gitignore)",
        "Setting: preToolUse.preventUpdateGitIgnored",
    ]
    assert denied(rules, call("Write", project, file_path="src/keep.log")) is None
    assert denied(layer(project), call("Write", project, file_path="src/debug.log")) is None


def test_an_unreadable_gitignore_denies_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as folder:
        project = Path(folder).resolve()
        project.chmod(0o755)
        (project / ".git").mkdir()
        (project / ".gitignore").write_text("*.log\n")
        monkeypatch.setenv("HOME", folder)
        guards = Guards([layer(project, preventUpdateGitIgnored=True)])
        with without_permission(project / ".gitignore"):
            output = guards.answer(call("Write", project, file_path="src/a.txt"))

    assert output.blocked
    assert output.reason == f"A rule depends on {project}/.gitignore, which may not be read: make it readable."


# -- reading -------------------------------------------------------------------------------------------


@for_each(
    ("tool", "tool_input"),
    [
        ("Read", {"file_path": "to_env"}),
        ("NotebookRead", {"notebook_path": ".env"}),
        ("Grep", {"pattern": "x", "path": ".env"}),
        ("Grep", {"pattern": "x", "glob": ".env"}),
        ("Grep", {"pattern": "x", "path": "src", "glob": "**/.env"}),
        ("mcp__fs__read_file", {"path": ".env"}),
        ("mcp__fs__read_multiple_files", {"paths": ["docs/a.md", "{p}/.env"]}),
    ],
)
def test_no_tool_reads_an_unreadable_file(
    tool: str, tool_input: dict[str, Any], project: Path, links: dict[str, Path]
) -> None:
    if "paths" in tool_input:
        tool_input = {"paths": [path.format(p=project) for path in tool_input["paths"]]}

    assert denied(layer(project, unreadableFiles=PROTECTED), call(tool, project, **tool_input))


@for_each(
    ("tool_input", "narrowed"),
    [
        ({}, True),
        ({"path": "."}, True),
        ({"path": "src"}, True),
        ({"path": "{p}/src/"}, True),
        ({"path": "src/.."}, True),
        ({"path": "docs"}, False),
        ({"path": "src/main.py"}, False),
        ({"path": "src", "glob": "*.py"}, False),
        ({"path": "src", "glob": "*.{{py,js}}"}, False),
        ({"path": "src", "glob": "*"}, True),
        ({"path": "src", "glob": "*v"}, True),
        ({"path": "src", "glob": ".{{env,py}}"}, True),
        ({"path": "src", "glob": "!*.py"}, True),
        ({"path": "src", "glob": "*.py .env"}, True),
        ({"path": "src", "glob": "{{,a}}"}, True),
    ],
)
def test_a_search_leaves_out_what_may_not_be_read(tool_input: dict[str, str], *, narrowed: bool, project: Path) -> None:
    given = {"pattern": "x", **{key: value.format(p=project) for key, value in tool_input.items()}}
    output = Guards([layer(project, unreadableFiles=[".env", "*.pem"])]).check(call("Grep", project, **given)).output

    globs = f"{given.get('glob', '')} !**/.env !**/*.pem".strip()
    assert (output.blocked, output.permission) == (False, None)
    assert output.updated_input == ({**given, "glob": globs} if narrowed else None)
    note = "The search leaves out files whose contents preToolUse.unreadableFiles protects: .env, *.pem."
    assert output.additional_context == (note if narrowed else None)


@for_each(
    ("pattern", "tool_input"),
    [
        (".env", {"path": "src/deep/.env"}),
        (".env", {"path": "src/deep", "glob": ".env"}),
        ("/src/deep", {"path": "src/deep"}),
        (".en\\v", {"path": "src"}),
        ("[.]env,x", {"path": "src"}),
    ],
)
def test_a_search_is_blocked_if_nothing_would_be_left_or_no_glob_has_the_files(
    pattern: str, tool_input: dict[str, str], project: Path
) -> None:
    (project / "src" / "deep" / "[.]env,x").touch()
    (project / "src" / "deep" / ".env,x").touch()
    reason = denied(layer(project, unreadableFiles=[pattern]), call("Grep", project, pattern="x", **tool_input))

    assert reason is not None
    assert reason.startswith("Blocked Grep operation: file matches preToolUse.unreadableFiles pattern")


def test_a_search_in_too_many_files_leaves_out_what_may_not_be_read(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "MAX_ENTRIES", 1)
    output = Guards([layer(project, unreadableFiles=["*.pem"])]).check(call("Grep", project, path="src")).output

    assert output.permission is None
    assert output.updated_input == {"path": "src", "glob": "!**/*.pem"}


def test_only_the_names_of_files_are_listed(project: Path) -> None:
    rules = layer(project, unreadableFiles=[".env"])

    assert denied(rules, call("Glob", project, pattern="**/.env", path="src")) is None


# -- hard links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["plain.txt", "docs/plain.txt", "../plain.txt"])
def test_a_hard_link_does_not_bypass_a_rule(path: str, project: Path) -> None:
    (project / path).hardlink_to(project / "src" / "deep" / ".env")

    reason = denied(layer(project, uneditableFiles=[".env"]), call("Edit", project, file_path=path))

    assert reason == (
        "Blocked Edit operation: file matches preToolUse.uneditableFiles pattern '.env'. "
        f"File: {path} (a hard link to {project}/src/deep/.env)"
    )


def test_a_file_with_hard_links_that_are_not_protected_may_be_changed(project: Path) -> None:
    (project / "plain.txt").hardlink_to(project / "README.md")
    (project / "hidden.txt").hardlink_to(project / ".env")

    assert denied(layer(project, uneditableFiles=[".env"]), call("Edit", project, file_path="plain.txt")) is None
    assert denied(layer(project, uneditableFiles=["*.pem"]), call("Edit", project, file_path="hidden.txt")) is None
    assert denied(layer(project, uneditableFiles=[".env"]), call("Read", project, file_path="hidden.txt")) is None


def test_a_hard_link_to_an_unreadable_file_is_not_read(project: Path) -> None:
    (project / "plain.txt").hardlink_to(project / "src" / "deep" / ".env")
    rules = layer(project, unreadableFiles=[".env"])

    assert "plain.txt (a hard link to" in (denied(rules, call("Read", project, file_path="plain.txt")) or "")
    assert "plain.txt (a hard link to" in (denied(rules, call("Bash", project, command="cat plain.txt")) or "")
    assert denied(layer(project, unreadableFiles=["*.pem"]), call("Read", project, file_path="plain.txt")) is None


def test_a_hard_link_to_a_protected_file_outside_of_the_project_is_found(project: Path, home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "key").touch()
    (project / "plain.txt").hardlink_to(home / ".ssh" / "key")
    rules = layer(project, uneditableFiles=["~/.ssh/**"], unreadableFiles=["~/.ssh/**"])

    assert denied(rules, call("Edit", project, file_path="plain.txt"))
    assert denied(rules, call("Read", project, file_path="plain.txt"))


def test_a_hard_link_that_moved_is_found_again(project: Path) -> None:
    (project / "plain.txt").hardlink_to(project / "README.md")
    (project / "old").mkdir()
    (project / "README.md").rename(project / "old" / "README.md")
    guards = Guards([layer(project, uneditableFiles=["/new"])])
    edit = call("Edit", project, file_path="plain.txt")
    assert not guards.check(edit).output.blocked

    (project / "old").rename(project / "new")

    assert guards.check(edit).output.blocked


def test_a_hard_link_warns_where_the_rule_only_warns(project: Path) -> None:
    (project / "plain.txt").hardlink_to(project / ".env")
    rules = layer(project, uneditableFiles=[{"pattern": ".env", "action": "warn"}])
    output = Guards([rules]).check(call("Edit", project, file_path="plain.txt")).output

    assert not output.blocked
    assert "plain.txt (a hard link to" in (output.system_message or "")


def test_a_hard_link_in_a_project_with_too_many_files_asks_the_user(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "plain.txt").hardlink_to(project / "README.md")
    monkeypatch.setattr(_search, "MAX_ENTRIES", 1)
    rules = layer(project, uneditableFiles=[".env"])

    output = Guards([rules]).check(call("Edit", project, file_path="plain.txt")).output
    assert output.permission == "ask"
    assert "whether plain.txt, which has hard links, is a protected file" in (output.reason or "")

    output = Guards([rules]).check(call("Edit", project, file_path="src/main.py")).output
    assert output.permission is None


@pytest.mark.parametrize("own", [".fairlead.yaml", ".claude/settings.json"])
def test_a_hard_link_does_not_bypass_the_protection_of_own_files(own: str, project: Path) -> None:
    (project / "plain.txt").hardlink_to(project / own)

    assert "protectOwnFiles" in (denied(layer(project), call("Edit", project, file_path="plain.txt")) or "")


# -- own files -----------------------------------------------------------------------------------------


@for_each(
    "path",
    [
        *(
            ".fairlead.yaml",
            ".fairlead.yml",
            ".conclaude.yaml",
            ".conclaude.yml",
            "src/.fairlead.yaml",
            "x/.conclaude.yml",
        ),
        *(
            ".claude/settings.json",
            ".claude/settings.local.json",
            "src/.claude/settings.json",
            "~/.claude/settings.json",
        ),
        *("~/.config/fairlead/config.yaml", "~/.local/state/fairlead/db", "to_policy", ".FAIRLEAD.yaml"),
        *("src/../.fairlead.yaml", "/etc/claude-code/managed-settings.json", ".claude", "."),
    ],
)
def test_own_files_are_protected(path: str, project: Path) -> None:
    assert denied(layer(project), call("Write", project, file_path=path))
    assert denied(layer(project), call("Read", project, file_path=path)) is None
    assert denied(layer(project, protectOwnFiles=False), call("Write", project, file_path=path)) is None


def test_own_files_are_protected_without_any_policy(project: Path) -> None:
    assert denied([], call("Write", project, file_path=".claude/settings.json"))
    assert denied([], call("Write", project, file_path="src/main.py")) is None


def test_the_folder_of_fairlead_home_is_protected(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", str(project / "fl"))

    assert denied([], call("Write", project, file_path="fl/state/db"))


# -- rules on tools ------------------------------------------------------------------------------------


def test_one_of_several_allow_rules_is_enough(project: Path) -> None:
    allow = [{"tool": "Write", "pattern": p, "action": "allow"} for p in ("src/**", "docs/**")]
    rules = layer(project, toolUsageValidation=allow)

    assert denied(rules, call("Write", project, file_path="docs/a.md")) is None
    assert denied(rules, call("Write", project, file_path="README.md"))
    assert denied(rules, call("Edit", project, file_path="README.md")) is None


def test_the_first_rule_that_matches_decides(project: Path) -> None:
    block, allow = ({"tool": "Write", "pattern": "docs/**", "action": action} for action in ("block", "allow"))

    assert denied(layer(project, toolUsageValidation=[block, allow]), call("Write", project, file_path="docs/a.md"))
    assert (
        denied(layer(project, toolUsageValidation=[allow, block]), call("Write", project, file_path="docs/a.md"))
        is None
    )


def test_a_tool_can_be_blocked_by_a_glob(project: Path) -> None:
    rules = layer(project, toolUsageValidation=[{"tool": "mcp__web__*", "action": "block"}])

    assert denied(rules, call("mcp__web__fetch", project, url="x"))
    assert denied(rules, call("mcp__db__query", project, sql="x")) is None


def test_agent_and_task_are_one_tool(project: Path) -> None:
    rules = layer(project, toolUsageValidation=[{"tool": "Task", "action": "block"}])

    assert denied(rules, call("Agent", project, prompt="x"))


# -- layers, traces, hooks -----------------------------------------------------------------------------


def test_the_lists_of_all_files_apply(project: Path, home: Path) -> None:
    near, far = layer(project, uneditableFiles=[".env"]), layer(home, "config.yaml", uneditableFiles=["//**/*.pem"])

    assert denied([near, far], call("Edit", project, file_path=".env"))
    assert denied([near, far], call("Edit", project, file_path="vault/key.pem"))
    assert denied([near, far], call("Edit", project, file_path="src/main.py")) is None


def test_a_value_that_only_the_user_wide_file_sets_applies(project: Path, home: Path) -> None:
    near = Layer(str(project / ".fairlead.yaml"), str(project), Policy())
    far = Layer(
        str(home / "config.yaml"),
        str(project),
        msgspec.convert({"preToolUse": {"preventRootAdditions": False, "generatedFileMessage": "No."}}, Policy),
    )
    (project / "src" / "gen.py").write_text("@generated")

    assert denied([near], call("Write", project, file_path="new.txt"))
    assert denied([near, far], call("Write", project, file_path="new.txt")) is None
    assert denied([near, far], call("Write", project, file_path="src/gen.py")) == "No."


def test_the_user_wide_file_alone_has_no_root(project: Path, home: Path) -> None:
    far = Layer(str(home / "config.yaml"), str(project), Policy())

    assert denied([far], call("Write", project, file_path="new.txt")) is None


def test_a_file_of_conclaude_protects_as_much_as_it_did(project: Path) -> None:
    rules: dict[str, Any] = {"uneditableFiles": ["src/*.py"]}

    assert denied(layer(project, ".conclaude.yaml", **rules), call("Edit", project, file_path="src/deep/x.py"))
    assert denied(layer(project, **rules), call("Edit", project, file_path="src/deep/x.py")) is None


def test_the_trace_names_every_rule_and_why(project: Path) -> None:
    rules = layer(project, uneditableFiles=["*.lock", ".env"])
    checks = Guards([rules]).check(call("Edit", project, file_path=".env")).checks

    assert [(check.setting, check.rule, check.matched, check.why) for check in checks] == [
        ("preToolUse.protectOwnFiles", "true", False, "it is not one of these files"),
        ("preToolUse.uneditableFiles[0]", "*.lock", False, "the pattern does not match"),
        ("preToolUse.uneditableFiles[1]", ".env", True, f"{project}/.env matches"),
    ]
    assert checks[2].file == f"{project}/.fairlead.yaml"


def test_as_hooks_they_deny_and_allow(project: Path) -> None:
    manager = HookManager()
    register_guards(manager, [layer(project, uneditableFiles=[".env"])])

    assert_blocks(manager, call("Edit", project, file_path=".env"))
    assert_allows(manager, call("Edit", project, file_path="src/main.py"))


@for_each("path", ["a\0b", 5, ["a"]])
def test_a_call_that_cannot_be_checked_is_denied(path: object, project: Path) -> None:
    manager = HookManager()
    register_guards(manager, [layer(project)])

    assert manager.fire_sync(call("Edit", project, file_path=path)).blocked


# -- permission requests -------------------------------------------------------------------------------


@for_each(
    ("tool", "permission", "reason"),
    [
        ("Bash", "deny", "Tool 'Bash' blocked by permissionRequest.deny pattern: Ba*"),
        ("Read", "allow", None),
        ("Write", "deny", "Tool 'Write' blocked by permissionRequest.default setting"),
    ],
)
def test_permission_is_denied_granted_or_left_to_the_default(
    tool: str, permission: str, reason: str | None, project: Path
) -> None:
    section = {"default": "Deny", "allow": ["Read", "Bash"], "deny": ["Ba*"]}
    rules = Layer("f", str(project), msgspec.convert({"permissionRequest": section}, Policy))
    event = PermissionRequest(session_id="s", tool_name=tool, tool_input={})
    output = Guards([rules]).check_permission(event).output

    assert (output.permission, output.reason) == (permission, reason)


def test_without_that_section_the_client_asks_the_user(project: Path) -> None:
    event = PermissionRequest(session_id="s", tool_name="Bash", tool_input={})

    assert Guards([layer(project)]).check_permission(event).output.permission is None


@for_each(
    "path",
    [
        sys.executable,
        str(Path(sys.executable).resolve()),
        str(Path(fairlead.__file__).with_name("cli") / "event.py"),
        str(Path(msgspec.__file__).parent / "_core.so"),
        str(Path(os.__file__).with_name("json") / "__init__.py"),
        "/anywhere/bin/fairlead-hook",
        "/home/somebody/.local/bin/fairlead",
    ],
)
def test_the_programs_that_decide_are_protected(path: str) -> None:
    """An agent that could replace them could have every call allowed."""
    edit = PreToolUse(session_id="s", tool_name="Write", tool_input={"file_path": path}, cwd="/")
    link = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": f"ln -sf /bin/true {path}"}, cwd="/")
    for event in (edit, link):
        assert "preToolUse.protectOwnFiles" in (Guards([]).check(event).output.reason or "")
