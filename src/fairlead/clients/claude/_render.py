"""Claude Code's dialect: an output as exit code, stdout and stderr.

What the client does with each of these was seen in runs of versions 2.1.197 and 2.1.325; where it ignores a
block, the person is told instead.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from fairlead.events import Event, HookEvent, HookOutput, encode_json

NO_REASON = "blocked by a hook that gave no reason"

_Way = Literal["permission", "request", "decision", "exit", "feedback", "context", "text", "none"]
"""How an event's block is said.

permission  a verdict on the call, and exit 2
request     a verdict on the permission request; exit 2 would not be honoured
decision    `decision: block`, and exit 2
exit        exit 2 alone: the client reads no decision here
feedback    `decision: block` with exit 0: keeps the agent going, tells the model, or (PostToolBatch) ends the turn
context     the reason goes to the model as context: nothing is left to block
text        exit 2; plain stdout is the client's input here, so JSON is never printed
none        the client cannot block: the person is told
"""

_WAYS: dict[str, _Way] = {
    "PreToolUse": "permission",
    "PreModelSwitch": "permission",
    "PermissionRequest": "request",
    "UserPromptSubmit": "decision",
    "UserPromptExpansion": "decision",
    "ConfigChange": "decision",
    "TaskCreated": "decision",
    "TaskCompleted": "exit",
    "TeammateIdle": "exit",
    "Elicitation": "exit",
    "ElicitationResult": "exit",
    "WorktreeRemove": "exit",
    "Stop": "feedback",
    "SubagentStop": "feedback",
    "PostToolUse": "feedback",
    "PostToolBatch": "feedback",
    "PostToolUseFailure": "context",
    "PreCompact": "text",
    "WorktreeCreate": "text",
}

_TAKES_CONTEXT = frozenset(
    {
        "SessionStart",
        "Setup",
        "UserPromptSubmit",
        "UserPromptExpansion",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "SubagentStart",
        "Stop",
        "SubagentStop",
        "PostModelSwitch",
    }
)
_TOP_LEVEL = frozenset({"continue", "stopReason", "terminalSequence"})
_NOTHING_SPECIFIC = frozenset(
    {
        "SessionEnd",
        "StopFailure",
        "PreCompact",
        "PostCompact",
        "TaskCreated",
        "TaskCompleted",
        "TeammateIdle",
        "ConfigChange",
        "InstructionsLoaded",
        "DirectoryAdded",
        "WorktreeRemove",
    }
)
"""Events for which the client's schema has no `hookSpecificOutput`: with one, the whole answer would be refused."""


class Answer(msgspec.Struct, frozen=True):
    """What the process that the client called leaves behind."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: str = ""


def render(event: Event, output: HookOutput) -> Answer:
    """Say the output as the client understands it."""
    way = _way(event)
    reason = output.reason or NO_REASON if output.blocked else ""
    exit_code = 2 if output.blocked and way in {"permission", "decision", "exit", "text"} else 0
    if way == "text":
        return Answer(exit_code, _plain(event, output) if not output.blocked else b"", reason)
    document = to_json(event, output)
    stdout = encode_json(document) + b"\n" if document else b""
    return Answer(exit_code, stdout, reason if exit_code else "")


def _way(event: Event) -> _Way:
    """Find how a block is said; to a client newer than we are, as most events say it."""
    return _WAYS.get(event.event_name, "none" if HookEvent.find(event.event_name) else "decision")


def to_json(event: Event, output: HookOutput) -> dict[str, Any]:
    """Write the client's JSON output; empty if there is nothing to say."""
    way = _way(event)
    document = _top_level(output, way)
    specific = _specific(event, output, way)
    if specific:
        specific.pop("hookEventName", None)
        document["hookSpecificOutput"] = {"hookEventName": event.event_name, **specific}
    return document


def _top_level(output: HookOutput, way: _Way) -> dict[str, Any]:
    document = {key: value for key, value in output.extra.items() if key in _TOP_LEVEL}
    if document.get("continue") is False and output.stop_reason is not None:
        document["stopReason"] = output.stop_reason
    message = output.system_message
    if output.blocked and way == "none":
        message = _lines(output.reason or NO_REASON, message)
    if message is not None:
        document["systemMessage"] = message
    if output.suppress_logging:
        document["suppressOutput"] = True
    if output.blocked and way in {"decision", "feedback", "text"}:
        document |= {"decision": "block", "reason": output.reason or NO_REASON}
    return document


def _specific(event: Event, output: HookOutput, way: _Way) -> dict[str, Any]:
    if event.event_name in _NOTHING_SPECIFIC:
        return {}
    specific = {key: value for key, value in output.extra.items() if key not in _TOP_LEVEL}
    if way == "permission":
        specific |= _permission(event, output)
    elif way == "request":
        specific = _request(output, specific)
    context = output.additional_context
    if output.blocked and way == "context":
        context = _lines(output.reason or NO_REASON, context)
    if context is not None and event.event_name in _TAKES_CONTEXT:
        specific["additionalContext"] = context
    return specific


def _lines(first: str, second: str | None) -> str:
    return first if second is None else f"{first}\n{second}"


def _permission(event: Event, output: HookOutput) -> dict[str, Any]:
    if output.blocked:
        return {"permissionDecision": "deny", "permissionDecisionReason": output.reason or NO_REASON}
    verdict: dict[str, Any] = {}
    if output.permission is not None:
        defers = output.permission == "defer" and event.event_name != "PreToolUse"
        verdict["permissionDecision"] = "ask" if defers else output.permission  # only a tool call can be deferred
        if output.permission_reason is not None:
            verdict["permissionDecisionReason"] = output.permission_reason
    if output.updated_input is not None and event.event_name == "PreToolUse":
        verdict["updatedInput"] = output.updated_input
    return verdict


def _request(output: HookOutput, rest: dict[str, Any]) -> dict[str, Any]:
    """Answer a permission request; without an opinion the client asks the person."""
    if output.blocked:
        return {"decision": {"behavior": "deny", "message": output.reason or NO_REASON, **_more(rest)}}
    if output.permission != "allow":
        return {}
    changed = {} if output.updated_input is None else {"updatedInput": output.updated_input}
    return {"decision": {"behavior": "allow", **changed, **_more(rest)}}


def _more(rest: dict[str, Any]) -> dict[str, Any]:
    """Leave out of one hook's extras what would undo the verdict of all."""
    return {key: value for key, value in rest.items() if key not in {"behavior", "message", "updatedInput"}}


def _plain(event: Event, output: HookOutput) -> bytes:
    """Say what these events read as plain text: instructions for the summary, or the worktree's path."""
    text = output.additional_context if event.event_name == "PreCompact" else output.extra.get("worktreePath")
    return f"{text}\n".encode(errors="replace") if text else b""
