"""The questions to the user about tool calls, each one line with details below it, and the answers to them.

Seen in client 2.1.325 at a terminal: the client shows its own dialog while a hook of PermissionRequest runs, and takes
the first answer. If the user answers in the dialog, the hook keeps running, and its output is ignored. Escape in the
dialog and the hook's timeout end the hook with SIGTERM. Without output, after a kill or after a timeout, the dialog
stays open. Tools that ask the user (`_WITH_INPUT`) are allowed only by an answer with `updatedInput`; without it the
dialog stays open. A plan is read from its file, and is empty without one. Elicitation hooks differ: their answer
counts, but until the hook ends the client shows no form, and Escape does not end the hook.
"""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from fairlead.clients._tool_calls import Choice
from fairlead.clients.claude._tools import TOOL_KINDS, path_of, summary_of
from fairlead.events import HookOutput, encode_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MAX_COMPARED = 40_000
"""Characters up to which two texts are compared line by line, which takes more than linear time. For longer texts, only
their common start and end are left out."""
_MAX_SHOWN = 1_000_000
"""Characters of a text that are shown. A model cannot write as many in one call."""
_CONTEXT_LINES = 2
_ASKING = "AskUserQuestion"
_WITH_INPUT = frozenset({_ASKING, "ExitPlanMode"})
"""Tools that the client allows only if the hook returns an input."""


def question_of(tool: str, tool_input: Mapping[str, Any]) -> str:
    """Return what a call asks the user about: its command, file with changes, plan, or questions."""
    if tool == _ASKING:
        return "\n".join(_questions(tool_input.get("questions")))
    if isinstance(plan := tool_input.get("plan"), str):
        return plan.strip()
    changes = list(_changes(tool_input))
    summary = "\n".join([path_of(tool_input), *changes]) if changes else summary_of(tool_input)
    return "\n".join(filter(None, (summary, *_rest(tool, tool_input, summary))))


def _rest(tool: str, tool_input: Mapping[str, Any], summary: str) -> Iterator[str]:
    """Yield a line for each option that is true, and for an unknown tool also for each other key of the input."""
    for key, value in tool_input.items():
        if value is True:
            yield f"{key}: yes"
        elif tool not in TOOL_KINDS and value != summary:
            yield f"{key}: {value if isinstance(value, str) else encode_json(value).decode()}"


def _questions(questions: object) -> Iterator[str]:
    for question in questions if isinstance(questions, list) else ():
        if not isinstance(question, dict):
            continue
        yield str(question.get("question") or question.get("header") or "")
        for option in question.get("options") or ():
            if isinstance(option, dict) and option.get("label"):
                description = option.get("description")
                yield f"  - {option['label']}" + (f": {description}" if description else "")


def _changes(tool_input: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that a call changes in a file, as in a diff."""
    edits = tool_input.get("edits")
    for edit in edits if isinstance(edits, list) else (tool_input,):
        if not isinstance(edit, dict):
            continue
        old, new = edit.get("old_string") or "", edit.get("new_string") or edit.get("content") or edit.get("new_source")
        if isinstance(old, str) and isinstance(new or "", str) and (old or new):
            yield from _diff(old[:_MAX_SHOWN], (new or "")[:_MAX_SHOWN])
            left = max(0, len(old) - _MAX_SHOWN) + max(0, len(new or "") - _MAX_SHOWN)
            if left:
                yield f"… and {left} more characters"


def _diff(old: str, new: str) -> Iterator[str]:
    before, after = _differing(old.splitlines(), new.splitlines(), _CONTEXT_LINES)
    if sum(map(len, before)) + sum(map(len, after)) > _MAX_COMPARED:
        before, after = _differing(before, after, 0)
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    lines = list(unified_diff(before, after, lineterm="", n=_CONTEXT_LINES))
    for line in lines[3:]:  # without the names of the files, and the first line numbers
        yield "..." if line.startswith("@@") else line


def _differing(old: list[str], new: list[str], context: int) -> tuple[list[str], list[str]]:
    """Return two lists of lines without their common start and end, except the nearest `context` lines."""
    pairs = list(zip(old, new, strict=False))
    start = next((index for index, (one, other) in enumerate(pairs) if one != other), len(pairs))
    rest = zip(reversed(old[start:]), reversed(new[start:]), strict=False)
    end = next((index for index, (one, other) in enumerate(rest) if one != other), min(len(old), len(new)) - start)
    start, end = max(0, start - context), max(0, end - context)
    return old[start : len(old) - end], new[start : len(new) - end]


# -- answers -------------------------------------------------------------------------------------------


def choices_of(tool: str, tool_input: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Return the questions of a call; empty if it has none, if one cannot be read, or if two have the same text.

    Questions that cannot be returned can be asked only by the client.
    """
    questions = tool_input.get("questions") if tool == _ASKING else None
    choices = [_choice(question) for question in questions] if isinstance(questions, list) else []
    readable = tuple(choice for choice in choices if choice is not None)
    is_clear = len({choice.question for choice in readable}) == len(choices)
    return readable if is_clear else ()


def _choice(question: object) -> Choice | None:
    if not isinstance(question, dict) or not isinstance(text := question.get("question"), str):
        return None
    given = question.get("options")
    options = [
        (label, about if isinstance(about := option.get("description"), str) else "")
        for option in (given if isinstance(given, list) else ())
        if isinstance(option, dict) and isinstance(label := option.get("label"), str)
    ]
    labels, descriptions = (tuple(option[part] for option in options) for part in (0, 1))
    return Choice(text, labels, question.get("multiSelect") is True, descriptions)


def approval(tool: str, tool_input: Mapping[str, Any], answers: Sequence[str]) -> HookOutput:
    """Return the output that allows a call, with one of `answers` for each of its `choices_of`, in order.

    Raise `ValueError` if it has any and the numbers differ. The client looks up the answer to a question by the
    question's text.
    """
    choices = choices_of(tool, tool_input)
    if tool not in _WITH_INPUT or (tool == _ASKING and not choices):  # the client asks unreadable questions itself
        return HookOutput.grant()
    changed = dict(tool_input)
    if choices:
        changed["answers"] = {choice.question: answer for choice, answer in zip(choices, answers, strict=True)}
    return HookOutput(permission="allow", updated_input=changed)
