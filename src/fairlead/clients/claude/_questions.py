"""What the user is asked about a tool call: one line that says it, and the details below."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from fairlead.clients.claude._tools import path_of, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MAX_DIFF_INPUT = 20_000
"""Characters of a text that is compared: comparing takes more than linear time, and only the start is shown."""
_CONTEXT_LINES = 2


def question_of(tool: str, tool_input: Mapping[str, Any]) -> str:
    """Return the command, the file with its change, the plan, or the questions of a call."""
    if tool == "AskUserQuestion":
        return "\n".join(_questions(tool_input.get("questions")))
    if isinstance(plan := tool_input.get("plan"), str):
        return plan.strip()
    changes = list(_changes(tool_input))
    return "\n".join([path_of(tool_input), *changes]) if changes else summary_of(tool_input)


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
            yield from _diff(old[:_MAX_DIFF_INPUT], (new or "")[:_MAX_DIFF_INPUT])


def _diff(old: str, new: str) -> Iterator[str]:
    lines = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=_CONTEXT_LINES))
    for line in lines[3:]:  # without the names of the files, and where the first lines are
        yield "..." if line.startswith("@@") else line
