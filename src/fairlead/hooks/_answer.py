"""Reads the answer of a command: JSON with the client's official keys, or with the snake-case keys of `HookOutput`.

An invalid answer raises `CommandFailed`, and so denies on a gate. The client itself would allow the action for most
invalid answers: text before the JSON, broken JSON, an unknown decision, a failure of the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.errors import CommandFailed
from fairlead.events import Event, HookOutput, decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCKING_EXIT_CODE = 2
_TEXT_IS_CONTEXT = frozenset({"SessionStart", "UserPromptSubmit", "UserPromptExpansion"})
"""Events at which output that is not JSON is added to the model's context, as the client does it."""

_TOP_LEVEL = {"terminalSequence"}
_KEYS = frozenset(
    {
        *("continue_execution", "stop_reason", "suppress_logging", "system_message", "updated_input"),
        *("additional_context", "continue", "stopReason", "suppressOutput", "systemMessage", "decision"),
        *("hookSpecificOutput", "permissionDecision"),
    }
)
"""Keys by which an object in the output is recognized as an answer."""

_MAX_STARTS = 32
_OUTPUT_KEYS = {"hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"}
_DECISIONS = {"block": "deny", "deny": "deny", "approve": "allow", "allow": "allow", "ask": "ask"}
_PERMISSIONS = {"allow", "ask", "defer", "deny"}


def read_answer(event: Event, exit_code: int, stdout: bytes, stderr: bytes) -> HookOutput:
    """Return the `HookOutput` for the exit code and the output of a command. `exit_code` is negative for a signal.

    Raise `CommandFailed` if the command has failed, or its answer is invalid.
    """
    errors = stderr.decode(errors="replace").strip()
    text = stdout.decode(errors="replace").strip("\ufeff \t\r\n")
    if exit_code == _BLOCKING_EXIT_CODE:
        return _blocked(text, errors)
    document = _document(text, event)
    answer = None if document is None else _answer(document, event)
    if exit_code != 0 and (answer is None or not answer.blocked):
        raise CommandFailed(f"{_ending(exit_code)}{': ' + errors.splitlines()[0] if errors else ''}")
    if answer is not None:
        return answer
    if text and event.event_name in _TEXT_IS_CONTEXT:
        return HookOutput(additional_context=text)
    return HookOutput.allow()


def _ending(exit_code: int) -> str:
    if exit_code < 0:
        return f"the command was killed by signal {-exit_code}"
    return f"the command ended with exit code {exit_code}"


def _blocked(text: str, errors: str) -> HookOutput:
    """Return the output for a command that blocks by its exit code.

    The reason is `errors`, its stderr, or else the one that the JSON in `text`, its stdout, gives.
    """
    try:
        answer = _answer(_parsed(text), None)
    except CommandFailed:
        answer = HookOutput.allow()
    return HookOutput(
        continue_execution=False,
        stop_reason=errors or answer.reason or answer.system_message or "blocked by a command that gave no reason",
        system_message=answer.system_message,
        additional_context=answer.additional_context,
    )


def _document(text: str, event: Event) -> dict[str, Any] | None:
    """Return the JSON object in the output; `None` if the output is plain text or empty.

    Text before the object, such as log lines, is skipped. Raise `CommandFailed` if text that begins with `{` is not
    valid JSON. Text that only has a key of an answer in it must be valid, too, unless the event takes text as context.
    """
    if text.startswith("{"):
        return _parsed(text)
    for start in _starts(text):
        try:
            document = _parsed(text[start:])
        except CommandFailed:
            continue
        if not _KEYS.isdisjoint(document):
            return document
    if event.event_name not in _TEXT_IS_CONTEXT and any(f'"{key}"' in text for key in _KEYS):
        return _parsed(text)
    return None


def _starts(text: str) -> Iterator[int]:
    """Yield the first `_MAX_STARTS` positions at which a JSON object may start."""
    start = text.find("{")
    for _ in range(_MAX_STARTS):
        if start == -1:
            return
        yield start
        start = text.find("{", start + 1)


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = decode_json(text)
    except (ValueError, RecursionError) as error:
        raise CommandFailed(f"its output is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise CommandFailed("its output is JSON, but not an object")
    return document


def _answer(document: dict[str, Any], event: Event | None) -> HookOutput:
    return _document_output(document).merge(_client_output(document)).merge(_specific_output(document, event))


def _document_output(document: dict[str, Any]) -> HookOutput:
    """Return the output in the snake-case keys, which are the fields of `HookOutput`.

    Raise `CommandFailed` if one of their values has a wrong type.
    """
    continues = _flag(document, "continue_execution")
    return HookOutput(
        continue_execution=continues is not False,
        stop_reason=_text(document, "stop_reason"),
        suppress_logging=_flag(document, "suppress_logging") or False,
        system_message=_text(document, "system_message"),
        updated_input=_object(document, "updated_input"),
        additional_context=_text(document, "additional_context"),
    )


def _client_output(document: dict[str, Any]) -> HookOutput:
    """Return the output in the client's keys at the top level. Raise `CommandFailed` if a value is invalid."""
    output = HookOutput(
        suppress_logging=_flag(document, "suppressOutput") or False,
        system_message=_text(document, "systemMessage"),
        extra={key: document[key] for key in _TOP_LEVEL & document.keys()},
    )
    decision = _choice(document, "decision", _DECISIONS)
    if decision is not None:
        output = output.merge(_verdict(_DECISIONS[decision], _text(document, "reason"), output.system_message))
    if _flag(document, "continue") is False:
        stop = HookOutput(
            continue_execution=False, stop_reason=_text(document, "stopReason"), extra={"continue": False}
        )
        output = output.merge(stop)
    return output


def _specific_output(document: dict[str, Any], event: Event | None) -> HookOutput:
    """Return the output in the client's keys for one event, which are below `hookSpecificOutput`.

    Raise `CommandFailed` if a value is invalid, or the keys are for another event than `event` (`None` for any).
    """
    specific = _object(document, "hookSpecificOutput") or {}
    named = _text(specific, "hookEventName")
    if event is not None and named is not None and named != event.event_name:
        raise CommandFailed(f"hookEventName: expected {event.event_name}, got {named}")
    output = HookOutput(
        updated_input=_object(specific, "updatedInput"),
        additional_context=_text(specific, "additionalContext"),
        extra={key: value for key, value in specific.items() if key not in _OUTPUT_KEYS and key != "decision"},
    )
    permission = _choice(specific, "permissionDecision", _PERMISSIONS)
    if permission is not None:
        message = _text(document, "systemMessage")
        output = output.merge(_verdict(permission, _text(specific, "permissionDecisionReason"), message))
    return output.merge(_request(specific))


def _request(specific: dict[str, Any]) -> HookOutput:
    """Return the output in the key `decision`, the answer to a PermissionRequest; without the key, no opinion.

    Raise `CommandFailed` if the decision is invalid.
    """
    decision = _object(specific, "decision")
    if decision is None:
        return HookOutput.allow()
    behavior = _choice(decision, "behavior", {"allow", "deny"})
    if behavior is None:
        raise CommandFailed("hookSpecificOutput.decision: missing `behavior`")
    rest = {key: value for key, value in decision.items() if key not in {"behavior", "message", "updatedInput"}}
    output = HookOutput(updated_input=_object(decision, "updatedInput"), extra=rest)
    return output.merge(_verdict(behavior, _text(decision, "message")))


def _verdict(permission: str, reason: str | None, message: str | None = None) -> HookOutput:
    """Return the output for a permission: "allow", "ask", "defer" or "deny".

    For a denial without `reason`, the reason is `message`, the message to the user, in which plugins put it.
    """
    if permission == "deny":
        return HookOutput.deny(reason or message or "denied by a command that gave no reason")
    if permission == "ask":
        return HookOutput.ask(reason or "a command wants you to decide")
    return HookOutput.grant(reason) if permission == "allow" else HookOutput.defer(reason)


# -- typed lookups -------------------------------------------------------------------------------------


def _text(document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is None or isinstance(value, str):
        return value
    raise CommandFailed(f"{key}: expected a string, got {type(value).__name__}")


def _flag(document: dict[str, Any], key: str) -> bool | None:
    value = document.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise CommandFailed(f"{key}: expected true or false, got {type(value).__name__}")


def _object(document: dict[str, Any], key: str) -> dict[str, Any] | None:
    value = document.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise CommandFailed(f"{key}: expected an object, got {type(value).__name__}")


def _choice(document: dict[str, Any], key: str, choices: set[str] | dict[str, str]) -> str | None:
    value = _text(document, key)
    if value is None or value in choices:
        return value
    raise CommandFailed(f"{key}: expected one of {', '.join(sorted(choices))}, got {value!r}")
