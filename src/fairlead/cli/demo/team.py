"""The team of `fairlead demo`: its project, its policy, its events, and the expected outcome of each. Plain data."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.testing import make_payload

POLICY = """\
preToolUse:
  uneditableFiles:
    - {pattern: .env, message: Secrets are for a person to change.}
userPromptSubmit:
  contextRules:
    - {pattern: upload, prompt: How uploads work is in docs/upload.md.}
subagentStart:
  context: {"*": Say which files you changed.}
subagentStop:
  commands: {"*": [run: echo "$FAIRLEAD_AGENT_TYPE is done" >> team.log]}
stop:
  commands:
    - {run: grep -q retry CHANGES.md, message: Say in CHANGES.md what is new.}
"""

FILES = {
    ".env": "UPLOAD_KEY=secret\n",
    "CHANGES.md": "# Changes\n",
    "src/upload.py": "def upload(file):\n    send(file)\n",
    ".fairlead.yaml": POLICY,
}

EXPECTED_FILE = ("team.log", "Explore is done\ncoder is done\n")
"""The name of a file in the project, and its text after the policy's commands have run."""

EDITED_FILE = ("CHANGES.md", "# Changes\n- An upload that fails is tried again (retry).\n")
"""The name of a file in the project, and its text after the agent's edit, with which the check passes."""

SESSION = "5e551011-0000-4000-8000-000000000001"
_IDS = {"Explore": "a5dc68169f39536c4", "coder": "a7fe81120d126f83a"}


class DemoEvent(msgspec.Struct, frozen=True):
    """One event: the agent it belongs to, the fields of its payload, and its expected outcome."""

    who: str
    """`main`, or the type of a subagent."""
    event: str
    what: str
    """The text that the demo shows for the event: a part of the payload, or what happens."""
    fields: dict[str, Any]
    verdict: str = "none"
    """The expected verdict, as in the journal: none, said, asked or blocked."""
    reason: str = ""
    """Text that the reason must contain."""

    def payload(self, project: str) -> dict[str, Any]:
        """Return a recorded payload of the real client, with the fields of this event. `project` is a folder."""
        agent = {"agent_id": _IDS[self.who], "agent_type": self.who} if self.who in _IDS else {}
        fields = {key: _in_project(value, project) for key, value in self.fields.items()}
        return make_payload(self.event, session_id=SESSION, cwd=project, **agent, **fields)


def _in_project(value: Any, project: str) -> Any:
    """Return the value of a field. A `file_path` in it, relative to `project`, becomes absolute, as in the client."""
    if isinstance(value, dict) and "file_path" in value:
        return {**value, "file_path": f"{project}/{value['file_path']}"}
    return value


def _tool(
    who: str, tool: str, what: str, tool_input: dict[str, str], outcome: tuple[str, str] = ("none", "")
) -> DemoEvent:
    fields = {"tool_name": tool, "tool_input": tool_input}
    return DemoEvent(who, "PreToolUse", f"{tool} {what}", fields, *outcome)


def _edit(who: str, file: str, outcome: tuple[str, str] = ("none", "")) -> DemoEvent:
    return _tool(who, "Edit", file, {"file_path": file, "old_string": "", "new_string": "x"}, outcome)


def _bash(who: str, command: str, outcome: tuple[str, str] = ("none", "")) -> DemoEvent:
    return _tool(who, "Bash", command, {"command": command}, outcome)


def _agent(kind: str, task: str) -> DemoEvent:
    return _tool("main", "Agent", kind, {"subagent_type": kind, "description": task, "prompt": task})


def _subagent_start(kind: str) -> DemoEvent:
    return DemoEvent(kind, "SubagentStart", "", {}, "said", "Say which files you changed.")


def _subagent_stop(kind: str, message: str) -> DemoEvent:
    return DemoEvent(kind, "SubagentStop", "runs a command", {"last_assistant_message": message})


_BLOCKED = ("blocked", "Secrets are for a person to change.")
_ASKED = ("asked", "which file rm deletes is only known when it runs")
_PROMPT = "Retry failed uploads"

TEAM = (
    DemoEvent("main", "SessionStart", "startup", {"source": "startup"}),
    DemoEvent(
        "main", "UserPromptSubmit", _PROMPT, {"prompt": _PROMPT}, "said", "How uploads work is in docs/upload.md."
    ),
    _agent("Explore", "Find the code of uploads"),
    _subagent_start("Explore"),
    _tool("Explore", "Read", "src/upload.py", {"file_path": "src/upload.py"}),
    _bash("Explore", "grep -rn upload src"),
    _subagent_stop("Explore", "It is all in src/upload.py."),
    _agent("coder", "Add the retries"),
    _subagent_start("coder"),
    _edit("coder", "src/upload.py"),
    _edit("coder", ".env", _BLOCKED),
    _bash("coder", 'cp /dev/null .e""nv', _BLOCKED),
    _bash("coder", 'rm -rf "$OLD"', _ASKED),
    _bash("coder", "python -m pytest -q"),
    _subagent_stop("coder", "An upload is tried three times."),
    DemoEvent("main", "Stop", "runs a check", {}, "blocked", "Say in CHANGES.md what is new."),
    _edit("main", "CHANGES.md"),
    DemoEvent("main", "Stop", "runs a check", {"stop_hook_active": True}),
    DemoEvent("main", "SessionEnd", "prompt_input_exit", {"reason": "prompt_input_exit"}),
)
