"""The variables that a command is given: each as `FAIRLEAD_X` and, for scripts that exist, as `CONCLAUDE_X`.

Knows events, no files and no processes. A value that cannot be a variable, or is too large for one, is left out:
the payload is on the command's stdin, whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.clients import client_or_default
from fairlead.events import Event, PostToolBatch, PostToolUse, SubagentStart, ToolEvent, encode_json

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIXES = ("FAIRLEAD_", "CONCLAUDE_")
MAX_VALUE = 32 * 1024
"""Bytes. The system refuses to start a program with one variable above 128 KiB (Linux), or 1 MB of all (macOS)."""

_ALWAYS = {"SESSION_ID": "session_id", "TRANSCRIPT_PATH": "transcript_path", "HOOK_EVENT": "event_name", "CWD": "cwd"}
_AGENT = {
    "AGENT_ID": "agent_id",
    "AGENT_TYPE": "agent_type",
    "SUBAGENT_TYPE": "agent_type",
    "AGENT_NAME": "agent_type",
    "AGENT_TRANSCRIPT_PATH": "agent_transcript_path",
}
_TOOL = {"TOOL_NAME": "tool_name", "TOOL_USE_ID": "tool_use_id"}
_TEAM = {"TEAMMATE_NAME": "teammate_name", "TEAM_NAME": "team_name"}
_TASK = {"TASK_ID": "task_id", "TASK_SUBJECT": "task_subject", "TASK_DESCRIPTION": "task_description"} | _TEAM
_ELICITATION = {"MCP_SERVER_NAME": "mcp_server_name", "ELICITATION_ID": "elicitation_id", "ELICITATION_MODE": "mode"}

_BY_EVENT: dict[str, dict[str, str]] = {
    "StopFailure": {"STOP_ERROR": "error"},
    "SubagentStart": {"SKILL_NAME": "agent_type"},
    "UserPromptSubmit": {"USER_PROMPT": "prompt"},
    "UserPromptExpansion": {
        "EXPANSION_TYPE": "expansion_type",
        "COMMAND_NAME": "command_name",
        "COMMAND_ARGS": "command_args",
        "COMMAND_SOURCE": "command_source",
        "EXPANDED_PROMPT": "prompt",
    },
    "PermissionDenied": {"DENY_REASON": "reason"},
    "TeammateIdle": _TEAM,
    "TaskCreated": _TASK,
    "TaskCompleted": _TASK,
    "ConfigChange": {"CONFIG_SOURCE": "source", "CONFIG_FILE_PATH": "file_path"},
    "Setup": {"SETUP_TRIGGER": "trigger"},
    "PreCompact": {"COMPACT_TRIGGER": "trigger"},
    "PostCompact": {"COMPACT_TRIGGER": "trigger", "COMPACT_SUMMARY": "compact_summary"},
    "CwdChanged": {"OLD_CWD": "old_cwd", "NEW_CWD": "new_cwd"},
    "FileChanged": {"FILE_PATH": "file_path", "FILE_EVENT": "event"},
    "InstructionsLoaded": {
        "INSTRUCTIONS_FILE_PATH": "file_path",
        "MEMORY_TYPE": "memory_type",
        "LOAD_REASON": "load_reason",
    },
    "Elicitation": {**_ELICITATION, "ELICITATION_MESSAGE": "message"},
    "ElicitationResult": {**_ELICITATION, "ELICITATION_ACTION": "action"},
    "MessageDisplay": {
        "MESSAGE_ID": "message_id",
        "TURN_ID": "turn_id",
        "MESSAGE_INDEX": "index",
        "MESSAGE_FINAL": "final",
        "MESSAGE_DELTA": "delta",
    },
    "WorktreeCreate": {"WORKTREE_NAME": "name"},
    "WorktreeRemove": {"WORKTREE_PATH": "worktree_path"},
}
"""Event → variable → the event's field."""

_COMPUTED = (
    *("CONFIG_DIR", "PAYLOAD_JSON", "FILE_PATH", "SLASH_COMMAND", "SLASH_COMMAND_ARGS", "TOOL_INPUT"),
    *("TOOL_OUTPUT", "TOOL_TIMESTAMP", "TOOL_BATCH_SIZE", "TOOL_BATCH_NAMES"),
)
OURS = frozenset(
    prefix + name
    for prefix in PREFIXES
    for name in (*_ALWAYS, *_AGENT, *_TOOL, *_COMPUTED, *(name for names in _BY_EVENT.values() for name in names))
)
"""Every variable that some event sets. One that was inherited is another event's, and is not passed on."""


def variables(event: Event, **more: str | None) -> dict[str, str]:
    """Give what the event says, under both prefixes; what it does not say is left out."""
    fields = {**_ALWAYS, **_AGENT, **_BY_EVENT.get(event.event_name, {})}
    found: dict[str, Any] = {name: getattr(event, field, None) for name, field in fields.items()}
    if isinstance(event, SubagentStart):
        found["AGENT_TRANSCRIPT_PATH"] = client_or_default(event.client).agent_transcript(event) or None
    if isinstance(event, ToolEvent):
        found |= _of_tool(event)
    if isinstance(event, PostToolBatch):
        found |= _of_batch(event)
    return prefixed({**found, **more})


def command_environment(
    given: Mapping[str, str], inherited: Mapping[str, str], folder: str, payload: bytes
) -> dict[str, str]:
    """Give a command's whole environment: the caller's, and ours for a command of the file in `folder`."""
    kept = {name: value for name, value in inherited.items() if name not in OURS}
    small = payload if len(payload) <= MAX_VALUE else b""
    own = prefixed({"CONFIG_DIR": folder, "PAYLOAD_JSON": small.decode(errors="replace") or None})
    return {**kept, **given, **own}


def prefixed(values: Mapping[str, Any]) -> dict[str, str]:
    """Write values as variables under both prefixes, without those that cannot be one."""
    texts = {name: _text(value) for name, value in values.items() if value is not None}
    return {prefix + name: text for name, text in texts.items() if _fits(text) for prefix in PREFIXES}


def file_of(event: ToolEvent) -> str | None:
    """Name the file that a tool call is about, if it is about one."""
    return client_or_default(event.client).file_of(event.tool_input)


def _of_tool(event: ToolEvent) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(event, field) for name, field in _TOOL.items()}
    found["FILE_PATH"] = file_of(event)
    if isinstance(event, PostToolUse):
        found["TOOL_INPUT"] = encode_json(event.tool_input)
        found["TOOL_OUTPUT"] = encode_json(event.tool_response)
        found["TOOL_TIMESTAMP"] = event.timestamp.isoformat() if event.timestamp else None
    return found


def _of_batch(event: PostToolBatch) -> dict[str, Any]:
    calls = event.tool_calls or []
    names = [str(call.get("tool_name", "")) for call in calls if isinstance(call, dict)]
    return {"TOOL_BATCH_SIZE": len(calls), "TOOL_BATCH_NAMES": ",".join(names)}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fits(text: str) -> bool:
    """Tell whether the system takes it: not too long, no NUL, no half of a surrogate pair."""
    try:
        return len(text.encode()) <= MAX_VALUE and "\0" not in text
    except UnicodeEncodeError:
        return False
