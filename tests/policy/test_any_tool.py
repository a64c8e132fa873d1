"""Tools that no table knows: every string of their input is judged by the tool's name and its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy.cases import for_each

from fairlead.clients._any_tool import MAX_DEPTH, MAX_STRINGS, generic_call
from fairlead.clients._patches import patch_paths
from fairlead.events import PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose `.env` and `vault` may neither be changed nor read."""
    project = tmp_path.resolve() / "project"
    for folder in ("src", "conf", "vault", "docs"):
        (project / folder).mkdir(parents=True)
    for file in (".env", "conf/.env", "vault/key", "src/a.py", "docs/a.md", ".fairlead.yaml"):
        (project / file).write_text("text\n")
    (project / "src" / "wipe.sh").write_text("#!/bin/sh\nrm .env\n")
    return project


def verdict(project: Path, tool: str, tool_input: dict[str, Any], **rules: list[str]) -> str:
    """`block`, `ask`, `narrow` or `pass`, with `.env` and `vault` protected from changes unless rules are given."""
    section: dict[str, Any] = {"preventRootAdditions": False, **(rules or {"uneditableFiles": [".env", "/vault"]})}
    layer = Layer(f"{project}/.fairlead.yaml", str(project), msgspec.convert({"preToolUse": section}, Policy))
    filled = msgspec.json.decode(msgspec.json.encode(tool_input).replace(b"{p}", str(project).encode()))
    event = PreToolUse(session_id="s", tool_name=tool, tool_input=filled, cwd=str(project))
    output = Guards([layer]).check(event).output
    if output.updated_input is not None:
        return "narrow"
    return "block" if output.blocked else "ask" if output.permission == "ask" else "pass"


@for_each(
    ("tool", "tool_input"),
    [
        ("mcp__fs__write_file", {"path": ".env", "content": "x"}),
        ("mcp__fs__edit_file", {"path": "{p}/.env", "edits": [{"oldText": "a", "newText": "b"}]}),
        ("mcp__fs__move_file", {"source": ".env", "destination": "src/e"}),
        ("mcp__fs__move_file", {"source": "src/a.py", "destination": "{p}/./.env"}),
        ("mcp__fs__delete_directory", {"path": "conf"}),
        ("mcp__fs__move_directory", {"from": "conf", "to": "docs/conf"}),
        ("mcp__fs__rename", {"old_path": "{p}", "new_path": "{p}2"}),
        ("mcp__fs__copy_file", {"src": "docs/a.md", "dst": ".env"}),
        ("mcp__fs__rename_file", {"path": "conf/a", "new_name": ".env"}),
        ("mcp__fs__write_files", {"files": [{"path": "src/a.py", "content": ""}, {"path": ".env", "content": ""}]}),
        ("mcp__fs__write_files", {"files": {".env": "x"}}),
        ("mcp__fs__save", {"uri": "file://{p}/.env", "text": "x"}),
        ("mcp__fs__save", {"uri": "file://localhost{p}/%2eenv"}),
        ("mcp__fs__save", {"uri": "FILE:{p}/.env"}),
        ("mcp__ide__createNewFile", {"pathInProject": ".env", "projectPath": "{p}", "text": "x"}),
        ("mcp__ide__replaceText", {"pathInProject": "a/../.env", "projectPath": "{p}/docs/.."}),
        ("mcp__ide__replace", {"filepath": "{p}/conf/.env"}),
        ("mcp__x__manage", {"operation": "delete", "path": "vault/key"}),
        ("mcp__x__process", {"arguments": '{"output_path": ".env"}'}),
        ("mcp__x__render", {"options": {"deep": [{"outputPath": "vault/new"}]}}),
        ("mcp__x__download", {"url": "https://a.b/c", "save_to": ".env"}),
        ("mcp__x__edit_many", {"paths": "src/a.py, .env"}),
        ("mcp__x__remove", {"glob": "conf/.e*"}),
        ("mcp__x__apply_patch", {"patch": "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-a\n+b\n"}),
        ("mcp__x__apply", {"input": "*** Begin Patch\n*** Update File: .env\n@@\n-a\n+b\n*** End Patch"}),
        ("str_replace_based_edit_tool", {"command": "create", "path": ".env", "file_text": "x"}),
        ("mcp__sh__run", {"command": "rm .env"}),
        ("mcp__sh__run", {"cmd": "rm", "args": ["-f", ".env"]}),
        ("mcp__sh__run", {"cmd": "rm", "args": ["key"], "cwd": "vault"}),
        ("mcp__sh__run", {"command": ["bash", "-lc", "rm .env"], "workdir": "{p}"}),
        ("mcp__sh__run", {"commands": ["ls", "rm .env"]}),
        ("mcp__sh__run", {"steps": [{"run": {"command": "rm key", "working_directory": "{p}/vault"}}]}),
        ("mcp__sh__run", {"steps": [{"run": "ls"}, {"run": "rm .env"}]}),
        ("mcp__sh__exec", {"program": "tee", "argv": [".env"]}),
        ("mcp__sh__run", {"command": "echo x", "args": [">", ".env"], "shell": True}),
        ("mcp__tmux__send_keys", {"pane": "1", "keys": "rm .env"}),
        ("mcp__dc__interact_with_process", {"pid": 3, "input": "rm .env\n"}),
        ("mcp__py__execute", {"language": "bash", "code": "rm .env"}),
        ("mcp__ide__executeCode", {"code": "open('.env', 'w').write('')"}),
        ("mcp__node__run_js", {"script": "require('fs').writeFileSync('.env', '')"}),
        ("mcp__sh__run", {"args": ["rm", ".env"]}),
        ("mcp__sh__run", {"command": "rm", "args": ".env"}),
        ("mcp__sh__exec", {"c": "rm .env"}),
        ("mcp__sh__exec", {"lines": ["ls", "rm .env"]}),
        ("mcp__py__python", {"input": "import os; os.remove('.env')"}),
        ("mcp__py__eval", {"expr": "open('.env','w')"}),
        ("mcp__fs__clear_directory", {"dir": "conf"}),
        ("Bash", {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: .env\n*** End Patch\nE"}),
        ("Bash", {"command": "apply_patch '*** Begin Patch\n*** Update File: conf/.env\n@@\n*** End Patch'"}),
        ("shell", {"command": ["bash", "-lc", "apply_patch <<'E'\n*** Update File: .env\nE"]}),
        ("run_shell_command", {"command": "rm .env", "directory": "{p}"}),
        ("Newer", {"destination": {"file": ".env"}}),
        ("mcp__fs__write_file", {"path": ".fairlead.yaml", "content": ""}),
        ("mcp__fs__write_file", {"path": ["conf", ".env"]}),
        ("mcp__fs__write_file", {"path": ["vault", "key"]}),
        ("mcp__fs__write_file", {"path": "$PWD/.env"}),
        ("mcp__fs__write_file", {"path": "${CLAUDE_PROJECT_DIR}/conf/.env"}),
        ("mcp__fs__create_file", {"directory": "{p}/docs/..", "filename": "vault/x"}),
        ("mcp__fs__delete_files", {"paths": ["conf/.e*"]}),
        ("mcp__x__run_script", {"script": "src/wipe.sh"}),
        ("mcp__git__git_checkout", {"repo_path": "{p}", "files": [".env"], "branch_name": "main"}),
        ("mcp__git__rm", {"path": ".env"}),
        ("mcp__fs__delete", {"target": ".fairlead.yaml"}),
    ],
)
def test_a_tool_that_changes_a_protected_file_is_blocked(tool: str, tool_input: dict[str, Any], project: Path) -> None:
    assert verdict(project, tool, tool_input) == "block"


@for_each(
    ("tool", "tool_input"),
    [
        ("mcp__x__process", {"path": ".env"}),
        ("mcp__x__process", {"file": {"name": "conf/.env"}}),
        ("mcp__x__process", {"anything": "conf/.env"}),
        ("mcp__x__process", {"anything": [["deep", {"er": "{p}/.env"}]]}),
        ("mcp__x__process", {"folder": "conf"}),
        ("mcp__x__process", {"path": ".env", "operation": "read"}),
        ("mcp__x__handle", {"path": ".fairlead.yaml"}),
        ("mcp__db__execute", {"sql": "COPY t TO 'vault/out.csv'"}),
        ("NewerTool", {"file_path": ".env"}),
        ("mcp__fs__update", {"uri": "vscode-file://{p}/.env"}),
        ("mcp__fs__replace_in_files", {"include": "conf/**", "replace": "b"}),
        ("mcp__sqlite__execute", {"query": "ATTACH 'vault/key' AS x"}),
        ("mcp__docker__run", {"image": "alpine", "volumes": ["{p}/vault:/v"]}),
        ("mcp__x__process", {"many": ["a"] * (MAX_STRINGS + 1)}),
    ],
)
def test_what_is_done_to_a_protected_file_is_asked_if_nothing_says_it(
    tool: str, tool_input: dict[str, Any], project: Path
) -> None:
    assert verdict(project, tool, tool_input) == "ask"


@for_each(
    ("tool", "tool_input"),
    [
        ("mcp__fs__read_file", {"path": ".env"}),
        ("mcp__fs__read_text_file", {"path": "file://{p}/.env"}),
        ("mcp__fs__get_file_info", {"path": ".env"}),
        ("mcp__fs__write_file", {"path": "src/a.py", "content": ".env"}),
        ("mcp__fs__edit_file", {"path": "docs/a.md", "edits": [{"oldText": ".env", "newText": "vault/key"}]}),
        ("mcp__fs__create_directory", {"path": "src/new"}),
        ("mcp__fs__copy_file", {"source": ".env", "destination": "src/e"}),
        ("mcp__fs__move_directory", {"source": "docs", "destination": "documentation"}),
        ("mcp__git__git_commit", {"repo_path": "{p}", "message": "Protect .env"}),
        ("mcp__git__commit", {"message": ".env"}),
        ("mcp__mail__send", {"to": "a@b.org", "subject": ".env", "body": "Look at vault/key, please."}),
        ("mcp__gh__create_issue", {"title": ".env is wrong", "body": "rm .env", "labels": [".env"]}),
        ("mcp__docs__search", {"query": ".env"}),
        ("mcp__docs__search", {"query": "how to read vault/key"}),
        ("mcp__thinking__think", {"thought": "vault/key"}),
        ("Bash", {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Update File: src/a.py\n+.env\n*** End Patch\nE"}),
        ("mcp__browser__browser_type", {"ref": "e1", "text": "rm -rf .env"}),
        ("mcp__sqlite__write_query", {"query": "insert into t values ('.env')"}),
        ("mcp__fs__replace_in_files", {"include": "**/*.ts", "replace": "b"}),
        ("mcp__fs__update", {"uri": "https://a.b/.env"}),
        ("mcp__agent__run", {"task": "look at .env"}),
        ("SendMessage", {"to": "vault", "message": "look at .env"}),
        ("mcp__chat__send_message", {"to": "vault", "message": "look at .env"}),
        ("mcp__serena__replace_symbol_body", {"name_path": "Foo", "relative_path": "src/a.py", "body": "open('.env')"}),
        ("mcp__serena__search_for_pattern", {"substring_pattern": "foo.*bar", "relative_path": "src"}),
        ("mcp__browser__click", {"selector": ".env", "element": "Save .env"}),
        ("mcp__browser__evaluate", {"function": "() => document.title"}),
        ("mcp__figma__get_code", {"nodeId": "1:2", "dirForAssetWrites": "{p}/docs"}),
        ("mcp__ide__getDiagnostics", {"uri": "file://{p}/src/a.py"}),
        ("mcp__notion__create_page", {"properties": {"title": [{"text": {"content": ".env"}}]}}),
        ("mcp__x__process", {"anything": "do something with .env"}),
        ("mcp__x__process", {"path": "src/a.py"}),
        ("mcp__x__build_project", {"projectPath": "{p}"}),
        ("mcp__x__process", {"path": "{p}"}),
        ("mcp__x__process", {"version": "1.0.1", "url": "https://a.b/.env"}),
        ("mcp__git__git_add", {"repo_path": "{p}", "files": [".env"]}),
        ("mcp__git__git_status", {"repo_path": "{p}"}),
        ("mcp__fs__write_file", {"path": "src/[id].tsx", "content": ""}),
        ("mcp__fs__write_file", {"path": "src/$name.ts", "content": ""}),
        ("mcp__x__run_script", {"script": "build"}),
        ("mcp__sh__run", {"command": "ls -la", "cwd": "{p}"}),
        ("mcp__sh__run", {"command": "cat .env"}),
        ("mcp__db__query", {"sql": "SELECT '.env'"}),
        ("mcp__x__explain_code", {"code": "open('.env', 'w')"}),
        ("mcp__ide__executeCode", {"code": "print('.env')"}),
        ("str_replace_based_edit_tool", {"command": "view", "path": ".env"}),
        ("mcp__fs__read_many", {"many": ["a"] * (MAX_STRINGS + 1)}),
        ("AskUserQuestion", {"questions": [{"question": "?", "header": ".env", "options": [{"label": ".env"}]}]}),
        ("mcp__ask__user", {"questions": [{"question": "?", "hint": ".env"}]}),
    ],
)
def test_what_does_not_change_a_protected_file_passes(tool: str, tool_input: dict[str, Any], project: Path) -> None:
    assert verdict(project, tool, tool_input) == "pass"


@for_each(
    ("tool", "tool_input", "expected"),
    [
        ("mcp__fs__read_file", {"path": ".env"}, "block"),
        ("mcp__fs__read_multiple_files", {"paths": ["docs/a.md", "{p}/.env"]}, "block"),
        ("mcp__fs__move_file", {"source": ".env", "destination": "src/e"}, "block"),
        ("mcp__fs__copy_directory", {"source": "conf", "destination": "docs/conf"}, "block"),
        ("mcp__zip__compress", {"input": "conf", "output": "c.zip"}, "block"),
        ("mcp__code__search_code", {"path": ".", "pattern": "KEY"}, "block"),
        ("mcp__code__search_code", {"path": "docs", "pattern": "KEY"}, "pass"),
        ("mcp__fs__list_directory", {"path": "conf"}, "pass"),
        ("mcp__fs__directory_tree", {"path": "."}, "pass"),
        ("mcp__fs__search_files", {"path": ".", "pattern": "*.env"}, "pass"),
        ("mcp__fs__get_file_info", {"path": ".env"}, "pass"),
        ("mcp__mail__send", {"attachments": [".env"]}, "block"),
        ("mcp__x__upload", {"files": ["conf"]}, "block"),
        ("ReadMcpResourceTool", {"server": "fs", "uri": "file://{p}/.env"}, "block"),
        ("WebFetch", {"url": "file://{p}/.env", "prompt": "read"}, "block"),
        ("Glob", {"path": "vault", "pattern": "*"}, "pass"),
        ("Grep", {"pattern": "KEY"}, "narrow"),
        ("Grep", {"pattern": "KEY", "type": "py"}, "pass"),
        ("Grep", {"pattern": "KEY", "type": "config"}, "narrow"),
        ("mcp__fs__search_files", {"path": "vault", "pattern": "KEY"}, "block"),
    ],
)
def test_unreadable_files_are_not_read_by_any_tool_and_may_be_listed(
    tool: str, tool_input: dict[str, Any], expected: str, project: Path
) -> None:
    assert verdict(project, tool, tool_input, unreadableFiles=[".env", "/vault"]) == expected


def test_a_rule_on_the_shell_applies_to_every_tool_that_runs_a_command(project: Path) -> None:
    rule = {"tool": "Bash", "action": "block", "commandPattern": "git push*"}

    def check(tool: str, **tool_input: Any) -> str:
        return verdict(project, tool, tool_input, toolUsageValidation=[rule])  # type: ignore[list-item]

    assert check("mcp__sh__run", command="git --version; git push") == "block"
    assert check("mcp__sh__run", cmd="git", args=["push", "--force"]) == "block"
    assert check("mcp__sh__run", command="git status") == "pass"


def test_an_input_that_is_too_deep_asks(project: Path) -> None:
    nested: Any = ".env"
    for _ in range(MAX_DEPTH + 1):
        nested = [nested]

    assert verdict(project, "mcp__x__process", {"a": nested}) == "ask"
    assert verdict(project, "mcp__x__process", {"a": nested}, preventAdditions=["x"]) == "pass"


def test_a_large_input_is_read_quickly() -> None:
    call = generic_call("mcp__x__write", {"content": "x/y " * 1_000_000, "path": "/a", "rows": [["a/b"] * 100] * 1000})

    assert call.paths[0].path == "/a"
    assert len(call.unknown) == 1


@for_each(
    ("text", "expected"),
    [
        ("*** Begin Patch\n*** Add File: a b.txt\n+x\n", [("a b.txt", "write")]),
        ("*** Delete File: x/y\r\n", [("x/y", "delete")]),
        ("*** Update File: a\n*** Move to: b\n@@\n", [("a", "write"), ("b", "write")]),
        ("--- a/x/y\t2020\n+++ b/x/y\n", [("a/x/y", "write"), ("x/y", "write"), ("b/x/y", "write"), ("x/y", "write")]),
        ("--- /dev/null\n+++ new\n", [("new", "write")]),
        ('--- "a/cl\\303\\251"\n', [("a/clé", "write"), ("clé", "write")]),
        ("rename from x\nrename to y\n", [("x", "move"), ("y", "write")]),
        ("a text with --- in it\n", []),
    ],
)
def test_a_patch_names_its_files(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(access.path, access.mode) for access in patch_paths(text)] == expected


@for_each(
    ("tool", "tool_input", "expected"),
    [
        ("mcp__fs__create_directory", {"path": "new"}, "pass"),
        ("mcp__fs__create_directory", {"path": "vault/new"}, "block"),
        ("mcp__fs__move_directory", {"source": "docs", "destination": "documentation"}, "pass"),
        ("mcp__fs__copy_directory", {"source": "src", "destination": "{p}/lib"}, "pass"),
        ("mcp__fs__copy", {"from": "src/a.py", "to": "docs"}, "pass"),
        ("mcp__fs__copy_file", {"source": "src/a.py", "destination": "conf"}, "pass"),
        ("mcp__zip__extract", {"archive": "a.zip", "destination": "lib/"}, "pass"),
        ("mcp__zip__extract", {"archive": "a.zip", "output_dir": "docs"}, "pass"),
        ("mcp__zip__unzip", {"archive": "a.zip", "destination": "conf"}, "ask"),
        ("mcp__zip__unzip", {"archive": "a.zip", "destination": "{p}"}, "ask"),
        ("mcp__zip__unzip", {"archive": "a.zip", "destination": "vault"}, "block"),
        ("mcp__fs__copy_file", {"source": "src/a.py", "destination": "new.py"}, "block"),
        ("mcp__fs__copy_file", {"source": "src/a.py", "destination": "{p}"}, "block"),
        ("mcp__fs__move_file", {"source": "docs/.env", "destination": "conf"}, "block"),
        ("Write", {"file_path": "new.py", "content": ""}, "block"),
    ],
)
def test_folders_are_no_new_files_at_the_root(
    tool: str, tool_input: dict[str, Any], expected: str, project: Path
) -> None:
    rules: dict[str, Any] = {"preventRootAdditions": True, "uneditableFiles": [".env", "/vault"]}

    assert verdict(project, tool, tool_input, **rules) == expected


TEXTS = st.sampled_from([".env", "conf/.env", "rm .env", "{}", '{"path": ".env"}', "[", "file:///x", "*", "~", "$", ""])
KEYS = st.sampled_from(
    ["path", "files", "command", "args", "cwd", "code", "env", "pattern", "new_name", "x", "a/b", "patch"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)
TOOLS = st.sampled_from(
    ["mcp__x__read", "mcp__x__write", "mcp__x__run", "mcp__git__checkout", "Newer", "send_keys", ""]
)


@settings(deadline=None, max_examples=300)
@given(TOOLS | st.text(max_size=20), st.dictionaries(KEYS | st.text(max_size=5), VALUES, max_size=6))
def test_an_input_of_any_shape_has_a_normal_form(tool: str, tool_input: dict[str, Any]) -> None:
    call = generic_call(tool, tool_input)

    assert all(access.path for access in call.paths)
    assert call.command is None or isinstance(call.command, str)
