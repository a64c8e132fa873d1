"""The environment variables of a command: each as `FAIRLEAD_X` and, for existing scripts, as `CONCLAUDE_X`.

Knows events, but no files and no processes. A value that cannot be an environment variable, or is too large for one, is
left out: the command gets the whole payload on stdin.
"""

from __future__ import annotations

from fairlead.clients import client_or_default
from fairlead.events import Event, PostToolBatch, PostToolUse, SubagentStart, ToolEvent, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fairlead.policy.commands._plan import Plan

PREFIXES = ("FAIRLEAD_", "CONCLAUDE_")
MAX_VALUE_BYTES = 32 * 1024
"""The maximum number of bytes of a value; a longer one is left out.

The system starts no program with one above 128 KiB (Linux), or 1 MB in all (macOS)."""

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
ALL_VARIABLES = frozenset(
    prefix + name
    for prefix in PREFIXES
    for name in (*_ALWAYS, *_AGENT, *_TOOL, *_COMPUTED, *(name for names in _BY_EVENT.values() for name in names))
)
"""Every variable that an event may set. An inherited one belongs to another event, and is not passed on."""


def event_variables(event: Event, **more: str | None) -> dict[str, str]:
    """Return the variables that an event sets, and those in `more`, each with both prefixes.

    A value that is `None`, or cannot be an environment variable, is left out.
    """
    fields = {**_ALWAYS, **_AGENT, **_BY_EVENT.get(event.event_name, {})}
    values: dict[str, Any] = {name: getattr(event, field, None) for name, field in fields.items()}
    if isinstance(event, SubagentStart):
        values["AGENT_TRANSCRIPT_PATH"] = client_or_default(event.client).agent_transcript(event) or None
    if isinstance(event, ToolEvent):
        values |= _tool_values(event)
    if isinstance(event, PostToolBatch):
        values |= _batch_values(event)
    return _with_prefixes({**values, **more})


def command_environment(
    own: Mapping[str, str], inherited: Mapping[str, str], folder: str, payload: bytes
) -> dict[str, str]:
    """Return the environment of a command: `inherited` without the variables of events, and those of the plan (`own`).

    `folder`, that of the policy, and `payload` become variables, too; a payload that is too large does not.
    """
    kept = {name: value for name, value in inherited.items() if name not in ALL_VARIABLES}
    return {**kept, **own, **_with_prefixes({"CONFIG_DIR": folder, **_payload_variable(payload)})}


def plan_variables(plan: Plan, payload: bytes) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the variables that the commands of a plan do not inherit: of all commands, and in a list of each one."""
    folders = [_with_prefixes({"CONFIG_DIR": step.folder}) for step in plan.steps]
    return {**plan.env, **_with_prefixes(_payload_variable(payload))}, folders


def _payload_variable(payload: bytes) -> dict[str, str | None]:
    small = payload if len(payload) <= MAX_VALUE_BYTES else b""
    return {"PAYLOAD_JSON": small.decode(errors="replace") or None}


def _with_prefixes(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as variables with both prefixes, except values that cannot be a variable."""
    texts = {name: _text(value) for name, value in values.items() if value is not None}
    return {prefix + name: text for name, text in texts.items() if _fits(text) for prefix in PREFIXES}


def _file_path(event: ToolEvent) -> str | None:
    """Return the file that a tool call names; `None` if it names none."""
    return client_or_default(event.client).file_of(event.tool_input)


def _tool_values(event: ToolEvent) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(event, field) for name, field in _TOOL.items()}
    values["FILE_PATH"] = _file_path(event)
    if isinstance(event, PostToolUse):
        values["TOOL_INPUT"] = encode_json(event.tool_input)
        values["TOOL_OUTPUT"] = encode_json(event.tool_response)
        values["TOOL_TIMESTAMP"] = event.timestamp.isoformat() if event.timestamp else None
    return values


def _batch_values(event: PostToolBatch) -> dict[str, Any]:
    calls = event.tool_calls or []
    names = [str(call.get("tool_name", "")) for call in calls if isinstance(call, dict)]
    return {"TOOL_BATCH_SIZE": len(calls), "TOOL_BATCH_NAMES": ",".join(names)}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fits(text: str) -> bool:
    """Return whether the system accepts a value: not too long, no NUL, no lone surrogate."""
    try:
        return len(text.encode()) <= MAX_VALUE_BYTES and "\0" not in text
    except UnicodeEncodeError:
        return False
