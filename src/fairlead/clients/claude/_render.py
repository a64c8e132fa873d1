"""An output as Claude Code reads it: exit code, stdout and stderr.

What the client does with each was seen in runs of versions 2.1.197 and 2.1.325. Where it ignores a block, the user gets
a message in place of it.
"""

from __future__ import annotations

from fairlead.clients.protocol import NO_REASON, Answer
from fairlead.events import Event, HookEvent, HookOutput, encode_json
from fairlead.structs import LIGHT

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Any, Literal

    _Form = Literal["permission", "request", "decision", "exit", "feedback", "context", "text", "none"]
    """How a block of an event is written.

    permission  a decision on the tool call, and exit 2
    request     a decision on the permission request; exit 2 would not be honoured
    decision    `decision: block`, and exit 2
    exit        exit 2 alone: the client reads no decision here
    feedback    `decision: block` with exit 0: keeps the agent going, tells the model, or (PostToolBatch) ends the turn
    context     the reason goes to the model as context: nothing is left to block
    text        exit 2; the client reads stdout as plain text here, so JSON is never printed
    none        the client cannot block: the reason goes to the user as a message
    """

_FORMS: dict[str, _Form] = {
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

_EXIT_FORMS = frozenset({"permission", "decision", "exit", "text"})
BLOCKS = frozenset(name for name, form in _FORMS.items() if form != "context")
"""Events of which the client carries a block out."""
BLOCKS_BY_EXIT_CODE = frozenset(name for name, form in _FORMS.items() if form in _EXIT_FORMS)

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
_WITHOUT_SPECIFIC = frozenset(
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
"""Events for which the client's schema has no `hookSpecificOutput`: with one it would refuse the whole answer."""


def render(event: Event, output: HookOutput) -> Answer:
    """Return an output as exit code, stdout and stderr."""
    form = _form(event)
    reason = output.reason or NO_REASON if output.blocked else ""
    exit_code = 2 if output.blocked and form in _EXIT_FORMS else 0
    if form == "text":
        return Answer(exit_code, _plain(event, output) if not output.blocked else b"", reason)
    document = to_json(event, output)
    stdout = encode_json(document) + b"\n" if document else b""
    return Answer(exit_code, stdout, reason if exit_code else "")


def refuse_json(event: str, reason: str) -> dict[str, Any]:
    """Return the JSON answer to an event that cannot be decided: a denial, where the event is the gate."""
    if event != "PreToolUse":
        return {"systemMessage": reason}
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": event, **decision}}


def _form(event: Event) -> _Form:
    """Return how a block of an event is written; of an event that only a newer client has, as for most events."""
    return _FORMS.get(event.event_name, "none" if HookEvent.find(event.event_name) else "decision")


def to_json(event: Event, output: HookOutput) -> dict[str, Any]:
    """Return the client's JSON output; empty if there is nothing to answer."""
    form = _form(event)
    document = _top_level(output, form)
    specific = _specific(event, output, form)
    if specific:
        specific.pop("hookEventName", None)
        document["hookSpecificOutput"] = {"hookEventName": event.event_name, **specific}
    return document


def _top_level(output: HookOutput, form: _Form) -> dict[str, Any]:
    document = {key: value for key, value in output.extra.items() if key in _TOP_LEVEL}
    if document.get("continue") is False and output.stop_reason is not None:
        document["stopReason"] = output.stop_reason
    message = output.system_message
    if output.blocked and form == "none":
        message = _lines(output.reason or NO_REASON, message)
    if message is not None:
        document["systemMessage"] = message
    if output.suppress_logging:
        document["suppressOutput"] = True
    if output.blocked and form in {"decision", "feedback", "text"}:
        document |= {"decision": "block", "reason": output.reason or NO_REASON}
    return document


def _specific(event: Event, output: HookOutput, form: _Form) -> dict[str, Any]:
    if event.event_name in _WITHOUT_SPECIFIC:
        return {}
    specific = {key: value for key, value in output.extra.items() if key not in _TOP_LEVEL}
    if form == "permission":
        specific |= _permission(event, output)
    elif form == "request":
        specific = _request(output, specific)
    context = output.additional_context
    if output.blocked and form == "context":
        context = _lines(output.reason or NO_REASON, context)
    if context is not None and event.event_name in _TAKES_CONTEXT:
        specific["additionalContext"] = context
    return specific


def _lines(first: str, second: str | None) -> str:
    return first if second is None else f"{first}\n{second}"


def _permission(event: Event, output: HookOutput) -> dict[str, Any]:
    if output.blocked:
        return {"permissionDecision": "deny", "permissionDecisionReason": output.reason or NO_REASON}
    decision: dict[str, Any] = {}
    if output.permission is not None:
        defers = output.permission == "defer" and event.event_name != "PreToolUse"
        decision["permissionDecision"] = "ask" if defers else output.permission  # only a tool call can be deferred
        if output.permission_reason is not None:
            decision["permissionDecisionReason"] = output.permission_reason
    if output.updated_input is not None and event.event_name == "PreToolUse":
        decision["updatedInput"] = output.updated_input
    return decision


def _request(output: HookOutput, rest: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a permission request; without a decision the client asks the user."""
    if output.blocked:
        return {"decision": {"behavior": "deny", "message": output.reason or NO_REASON, **_more(rest)}}
    if output.permission != "allow":
        return {}
    changed = {} if output.updated_input is None else {"updatedInput": output.updated_input}
    return {"decision": {"behavior": "allow", **changed, **_more(rest)}}


def _more(rest: dict[str, Any]) -> dict[str, Any]:
    """Return the extra keys of hooks without those that would override the decision."""
    return {key: value for key, value in rest.items() if key not in {"behavior", "message", "updatedInput"}}


def _plain(event: Event, output: HookOutput) -> bytes:
    """Return what the client reads as plain text: instructions for the summary, or the worktree's path."""
    text = output.additional_context if event.event_name == "PreCompact" else output.extra.get("worktreePath")
    return f"{text}\n".encode(errors="replace") if text else b""
