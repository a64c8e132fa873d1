"""Renders outputs for Claude Code: exit code, stdout and stderr.

The client's reactions to these were seen in runs of versions 2.1.197 and 2.1.325. If the client ignores a block, the
user gets a message instead.
"""

from __future__ import annotations

from fairlead.clients.protocol import NO_REASON, ClientAnswer
from fairlead.events import NO_OPINION, Event, HookEvent, HookOutput, encode_json
from fairlead.structs import LIGHT

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Any, Literal

    _Form = Literal["permission", "request", "decision", "exit", "feedback", "context", "text", "none"]
    """The form in which a block of an event is written.

    permission  a decision on the tool call, and exit code 2
    request     a decision on the permission request; the client ignores exit code 2 here
    decision    `decision: block`, and exit code 2
    exit        only exit code 2, because the client reads no decision here
    feedback    `decision: block`, exit code 0: keeps the agent going, tells the model, or (PostToolBatch) ends the turn
    context     the reason is added to the model's context, because it is too late to block
    text        exit code 2; the client reads stdout as plain text here, so JSON is never printed
    none        a message to the user, because the client cannot block the event
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
"""Events that the client can block."""
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
_NOTHING = ClientAnswer()
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
"""Events without `hookSpecificOutput` in the client's schema. The client rejects an answer that has it."""


def render(event: Event, output: HookOutput) -> ClientAnswer:
    """Return an output as exit code, stdout and stderr."""
    if output == NO_OPINION:
        return _NOTHING
    form, reason = _form(event), _block_reason(output)
    exit_code = 2 if reason and form in _EXIT_FORMS else 0
    if form == "text":
        return ClientAnswer(exit_code, b"" if reason else _plain(event, output), reason)
    document = _document(event, output, form, reason)
    stdout = encode_json(document) + b"\n" if document else b""
    return ClientAnswer(exit_code, stdout, reason if exit_code else "")


def refuse_json(event: str, reason: str) -> dict[str, Any]:
    """Return the JSON answer to an event that cannot be decided: a denial for PreToolUse, else a message."""
    if event != "PreToolUse":
        return {"systemMessage": reason}
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": event, **decision}}


def _form(event: Event) -> _Form:
    """Return the form of a block of an event. Events of newer clients get the most common form."""
    form = _FORMS.get(event.event_name)
    return form if form is not None else "none" if HookEvent.find(event.event_name) else "decision"


def _block_reason(output: HookOutput) -> str:
    """Return why an output blocks; empty if it does not."""
    return output.reason or NO_REASON if output.blocked else ""


def to_json(event: Event, output: HookOutput) -> dict[str, Any]:
    """Return the client's JSON output; empty if there is nothing to answer."""
    return _document(event, output, _form(event), _block_reason(output))


def _document(event: Event, output: HookOutput, form: _Form, reason: str) -> dict[str, Any]:
    document = _top_level(output, form, reason)
    specific = _specific(event, output, form, reason)
    if specific:
        specific.pop("hookEventName", None)
        document["hookSpecificOutput"] = {"hookEventName": event.event_name, **specific}
    return document


def _top_level(output: HookOutput, form: _Form, reason: str) -> dict[str, Any]:
    document = {key: value for key, value in output.extra.items() if key in _TOP_LEVEL}
    if document.get("continue") is False and output.stop_reason is not None:
        document["stopReason"] = output.stop_reason
    message = output.system_message
    if reason and form == "none":
        message = _lines(reason, message)
    if message is not None:
        document["systemMessage"] = message
    if output.suppress_logging:
        document["suppressOutput"] = True
    if reason and form in {"decision", "feedback", "text"}:
        document |= {"decision": "block", "reason": reason}
    return document


def _specific(event: Event, output: HookOutput, form: _Form, reason: str) -> dict[str, Any]:
    if event.event_name in _WITHOUT_SPECIFIC:
        return {}
    specific = {key: value for key, value in output.extra.items() if key not in _TOP_LEVEL}
    if form == "permission":
        specific |= _permission(event, output, reason)
    elif form == "request":
        specific = _request(output, specific, reason)
    context = output.additional_context
    if reason and form == "context":
        context = _lines(reason, context)
    if context is not None and event.event_name in _TAKES_CONTEXT:
        specific["additionalContext"] = context
    return specific


def _lines(first: str, second: str | None) -> str:
    return first if second is None else f"{first}\n{second}"


def _permission(event: Event, output: HookOutput, reason: str) -> dict[str, Any]:
    if reason:
        return {"permissionDecision": "deny", "permissionDecisionReason": reason}
    decision: dict[str, Any] = {}
    if output.permission is not None:
        defers = output.permission == "defer" and event.event_name != "PreToolUse"
        decision["permissionDecision"] = "ask" if defers else output.permission  # only PreToolUse can be deferred
        if output.permission_reason is not None:
            decision["permissionDecisionReason"] = output.permission_reason
    if output.updated_input is not None and event.event_name == "PreToolUse":
        decision["updatedInput"] = output.updated_input
    return decision


def _request(output: HookOutput, rest: dict[str, Any], reason: str) -> dict[str, Any]:
    """Return the answer to a permission request. Without a decision the client asks the user."""
    if reason:
        return {"decision": {"behavior": "deny", "message": reason, **_more(rest)}}
    if output.permission != "allow":
        return {}
    changed = {} if output.updated_input is None else {"updatedInput": output.updated_input}
    return {"decision": {"behavior": "allow", **changed, **_more(rest)}}


def _more(rest: dict[str, Any]) -> dict[str, Any]:
    """Return the extra keys of hooks without those that would override the decision."""
    return {key: value for key, value in rest.items() if key not in {"behavior", "message", "updatedInput"}}


def _plain(event: Event, output: HookOutput) -> bytes:
    """Return the plain text that the client reads, if any: instructions for the summary, or a worktree's path."""
    text = output.additional_context if event.event_name == "PreCompact" else output.extra.get("worktreePath")
    return f"{text}\n".encode(errors="replace") if text else b""
