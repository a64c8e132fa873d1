"""The environment and the harmless payloads with which the doctor runs a hook as Claude Code would."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairlead.clients.claude._environment import ENTRYPOINT, ENV_FILE, PROJECT_DIR, SESSION_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PermissionRequest"})


def hook_environment(environ: Mapping[str, str], session: str, project: str) -> dict[str, str]:
    """Return the environment in which the client would start a hook of a session.

    The variables of the session in which the doctor runs are replaced.
    """
    return {name: value for name, value in environ.items() if name != ENV_FILE} | {
        "CLAUDECODE": "1",
        ENTRYPOINT: "cli",
        SESSION_ID[0]: session,
        "CLAUDE_PID": str(os.getpid()),
        PROJECT_DIR: project,
    }


def harmless_payload(event: str) -> dict[str, object]:
    """Return the payload fields of a harmless tool call for an event; empty for events that are not about a tool."""
    call = {"tool_name": "Bash", "tool_input": {"command": "true", "description": "fairlead doctor"}}
    response = {"tool_response": {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}}
    if event not in _TOOL_EVENTS:
        return {}
    return {**call, **response} if event == "PostToolUse" else {**call}
