"""The team of `fairlead demo`: its project, its policy, its events, and what has to come of each. Plain data."""

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

LEFT_BEHIND = ("team.log", "Explore is done\ncoder is done\n")
"""A file of the project, and what the policy's commands have written into it in the end."""

DONE_MEANWHILE = ("CHANGES.md", "# Changes\n- An upload that fails is tried again (retry).\n")
"""A file, and what it contains once the agent may edit it: the check passes then."""

SESSION = "5e551011-0000-4000-8000-000000000001"
_IDS = {"Explore": "a5dc68169f39536c4", "coder": "a7fe81120d126f83a"}


class Scene(msgspec.Struct, frozen=True):
    """One event: who it is about, what is new in its payload, and what has to come of it."""

    who: str
    event: str
    what: str
    """The part of the payload that is worth a look."""
    told: dict[str, Any]
    verdict: str = "none"
    """In the words of the journal: none, said, asked, blocked."""
    says: str = ""
    """What the answer has to contain."""

    def payload(self, project: str) -> dict[str, Any]:
        """Make the payload from one that the real client sent."""
        agent = {"agent_id": _IDS[self.who], "agent_type": self.who} if self.who in _IDS else {}
        told = {key: _in_project(value, project) for key, value in self.told.items()}
        return make_payload(self.event, session_id=SESSION, cwd=project, **agent, **told)


def _in_project(value: Any, project: str) -> Any:
    """Name files as the client does: by their whole path."""
    if isinstance(value, dict) and "file_path" in value:
        return {**value, "file_path": f"{project}/{value['file_path']}"}
    return value


def _tool(who: str, tool: str, what: str, tool_input: dict[str, str], came: tuple[str, str] = ("none", "")) -> Scene:
    told = {"tool_name": tool, "tool_input": tool_input}
    return Scene(who, "PreToolUse", f"{tool} {what}", told, *came)


def _edit(who: str, file: str, came: tuple[str, str] = ("none", "")) -> Scene:
    return _tool(who, "Edit", file, {"file_path": file, "old_string": "", "new_string": "x"}, came)


def _bash(who: str, command: str, came: tuple[str, str] = ("none", "")) -> Scene:
    return _tool(who, "Bash", command, {"command": command}, came)


def _agent(kind: str, task: str) -> Scene:
    return _tool("main", "Agent", kind, {"subagent_type": kind, "description": task, "prompt": task})


def _begins(kind: str) -> Scene:
    return Scene(kind, "SubagentStart", "", {}, "said", "Say which files you changed.")


def _ends(kind: str, message: str) -> Scene:
    return Scene(kind, "SubagentStop", "runs a command", {"last_assistant_message": message})


_NO = ("blocked", "Secrets are for a person to change.")
_ASK = ("asked", "which file rm deletes is only known when it runs")
_PROMPT = "Retry failed uploads"

TEAM = (
    Scene("main", "SessionStart", "startup", {"source": "startup"}),
    Scene("main", "UserPromptSubmit", _PROMPT, {"prompt": _PROMPT}, "said", "How uploads work is in docs/upload.md."),
    _agent("Explore", "Find the code of uploads"),
    _begins("Explore"),
    _tool("Explore", "Read", "src/upload.py", {"file_path": "src/upload.py"}),
    _bash("Explore", "grep -rn upload src"),
    _ends("Explore", "It is all in src/upload.py."),
    _agent("coder", "Add the retries"),
    _begins("coder"),
    _edit("coder", "src/upload.py"),
    _edit("coder", ".env", _NO),
    _bash("coder", 'cp /dev/null .e""nv', _NO),
    _bash("coder", 'rm -rf "$OLD"', _ASK),
    _bash("coder", "python -m pytest -q"),
    _ends("coder", "An upload is tried three times."),
    Scene("main", "Stop", "runs a check", {}, "blocked", "Say in CHANGES.md what is new."),
    _edit("main", "CHANGES.md"),
    Scene("main", "Stop", "runs a check", {"stop_hook_active": True}),
    Scene("main", "SessionEnd", "prompt_input_exit", {"reason": "prompt_input_exit"}),
)
