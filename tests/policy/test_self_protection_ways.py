"""Further ways to switch the guards off, and everyday commands that resemble them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from policy.cases import for_each
from policy.self_protection_ways import EVERYDAY, WAYS

from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards

if TYPE_CHECKING:
    from pathlib import Path

SITE = next(path for path in sys.path if path.endswith("site-packages") and path.startswith(sys.prefix))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with scripts that switch the guards off, in a home with hooks installed for the user."""
    home = tmp_path.resolve() / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for folder in (".claude", ".local/state/fairlead/run", ".local/bin"):
        (home / folder).mkdir(parents=True)
    (home / ".claude/settings.json").write_text('{"hooks": "/x/fairlead-hook"}')
    project = tmp_path.resolve() / "project"
    for folder in (".venv/bin", "src", "tmp", ".claude"):
        (project / folder).mkdir(parents=True)
    (project / ".fairlead.yaml").write_text("{}\n")
    (project / "reqs.txt").write_text("fairlead\n")
    (project / "off.sh").write_text("fairlead uninstall --yes\n")
    (project / "agent.sh").write_text("claude -p x\n")
    (project / "off.py").write_text("import subprocess\nsubprocess.run(['fairlead','uninstall'])\n")
    (project / "Makefile").write_text("all:\n\ttrue\noff:\n\tfairlead daemon stop\n")
    (project / "package.json").write_text('{"scripts": {"off": "claude --bare -p x"}}')
    return project


def call(project: Path, tool: str, tool_input: dict[str, Any]) -> HookOutput:
    policy = msgspec.convert({"preToolUse": {"preventRootAdditions": False}}, Policy)
    event = PreToolUse(session_id="s", tool_name=tool, tool_input=tool_input, cwd=str(project))
    return Guards([Layer(str(project / ".fairlead.yaml"), str(project), policy)]).check(event).output


def held(output: HookOutput) -> bool:
    return output.blocked or output.permission == "ask"


def filled(text: str, project: Path) -> str:
    home = project.parent / "home"
    return text.replace("{site}", SITE).replace("{prefix}", sys.prefix).replace("{home}", str(home))


@for_each("command", WAYS)
def test_it_is_held(command: str, project: Path) -> None:
    assert held(call(project, "Bash", {"command": filled(command, project)}))


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("mcp__x__exec", {"argv": ["fairlead", "hooks", "uninstall"]}),
    ("mcp__shell__run", {"cmd": "fairlead uninstall"}),
    ("mcp__terminal__execute", {"command": ["fairlead", "uninstall"]}),
    ("mcp__shell__run", {"program": "fairlead", "args": ["hooks", "uninstall"]}),
    ("mcp__x__run_script", {"script": "fairlead uninstall\n"}),
    ("mcp__python__exec", {"code": "import subprocess; subprocess.run(['fairlead','uninstall'])"}),
    ("mcp__fs__write_file", {"path": "{site}/x.pth", "content": "import evil"}),
    ("mcp__fs__write", {"uri": "file://{home}/.claude/settings.json", "text": "{}"}),
    ("mcp__fs__move", {"from": "{home}/.claude", "to": "elsewhere"}),
    ("mcp__fs__delete_directory", {"path": "{prefix}"}),
    ("mcp__fs__create_symlink", {"target": "/bin/true", "link": "{home}/.local/bin/claude"}),
    ("mcp__edit__apply", {"files": [{"path": "{home}/.claude/settings.json", "content": "{}"}]}),
    ("mcp__process__kill", {"name": "fairlead"}),
    ("mcp__process__kill_process", {"pattern": "fairlead"}),
    ("mcp__ide__executeCode", {"code": "!fairlead uninstall"}),
    ("Write", {"file_path": "/proc/self/root{home}/.claude/settings.json", "content": "{}"}),
    ("Edit", {"file_path": "{prefix}/lib/../pyvenv.cfg", "old_string": "a", "new_string": "b"}),
    ("NotebookEdit", {"notebook_path": "{site}/x.py", "new_source": "x"}),
    ("mcp__http__request", {"method": "POST", "url": "http://127.0.0.1:7777/v1/stop"}),
    ("mcp__shell__run", {"command": "pytest", "env": {"CLAUDE_CONFIG_DIR": "elsewhere"}}),
    ("mcp__shell__run", {"command": "claude -p x", "env": {"CLAUDE_CONFIG_DIR": "elsewhere"}}),
    ("mcp__systemd__stop_unit", {"unit": "fairlead.service"}),
    ("mcp__pkg__uninstall", {"package": "fairlead"}),
    ("Write", {"file_path": "~/.claude/settings.json", "content": "{}"}),
    ("mcp__tmux__send_keys", {"keys": "fairlead uninstall"}),
    ("PowerShell", {"command": "fairlead uninstall"}),
    ("mcp__process__kill", {"pid": "{pid}"}),
]


@for_each("tool_call", CALLS)
def test_it_is_held_by_whatever_tool(tool_call: tuple[str, dict[str, Any]], project: Path) -> None:
    tool, tool_input = tool_call
    if tool_input == {"pid": "{pid}"}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fairlead.ipc.daemon_pid", lambda _: 4711)
            assert held(call(project, tool, {"pid": 4711}))
            assert not held(call(project, tool, {"pid": 4712}))
        return
    text = filled(msgspec.json.encode(tool_input).decode(), project)
    assert held(call(project, tool, msgspec.json.decode(text)))


@for_each("command", EVERYDAY)
def test_it_passes_without_a_question(command: str, project: Path) -> None:
    output = call(project, "Bash", {"command": command})
    assert not held(output), output.reason


@for_each(
    "tool_call",
    [
        ("mcp__process__kill", {"name": "node"}),
        ("mcp__notes__delete", {"text": "remove fairlead from the notes"}),
        ("mcp__http__request", {"url": "http://127.0.0.1:8000/v1/users"}),
        ("mcp__shell__run", {"command": "pytest", "env": {"PYTHONPATH": "src"}}),
        ("WebFetch", {"url": "https://example.com/v1/stopwatch", "prompt": "x"}),
    ],
)
def test_other_tools_pass_without_a_question(tool_call: tuple[str, dict[str, Any]], project: Path) -> None:
    output = call(project, *tool_call)
    assert not held(output), output.reason
