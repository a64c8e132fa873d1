"""The messages about changed files: one for the agent, and one for the user, who alone can decide about a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from fairlead.events import HookOutput
from fairlead.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.daemon.integrity._file_state import ChangeKind

_MAX_SHOWN = 10

Cause = Literal["call", "approved", "shared", "unseen", "outside"]
"""Who may have changed a file.

call      the call that has just ended, and nothing else
approved  that call, and the user was asked about it
shared    one of several calls or background commands
unseen    perhaps that call: the files were not checked when it began
outside   no call: the user, or a process that an earlier command has left running
"""

_WORDS: dict[ChangeKind, str] = {
    "added": "was created",
    "removed": "was removed",
    "changed": "was changed",
    "replaced": "was replaced by something that is not the file",
    "mode": "has other permissions",
}

_AFTER_RESTORE = "Do not change them by any other way. If they have to change, ask the user to do it."
_AFTER_REPORT = "Tell the user about it. Do not change them again, or back, unless the user asks you to."


class ReportedChange(NamedTuple):
    """A change of one protected file."""

    path: str
    what: ChangeKind
    rule: str
    cause: Cause
    by: tuple[str, ...]
    """The calls that may have made it."""
    is_restored: bool = False
    kept: str = ""
    """The path at which the changed version is kept; "" if none is."""
    problem: str = ""
    """Why it was not restored, although it should have been."""


def report(changes: Sequence[ReportedChange]) -> HookOutput | None:
    """Return the output that reports changes; `None` if there are none."""
    if not changes:
        return None
    for_agent = [change for change in changes if change.cause in {"call", "shared", "unseen"}]
    return HookOutput(
        additional_context=_agent_text(for_agent) if for_agent else None, system_message=_user_text(changes)
    )


def _agent_text(changes: Sequence[ReportedChange]) -> str:
    is_certain = all(change.cause == "call" for change in changes)
    is_undone = all(change.is_restored for change in changes)
    begin = "This call has changed" if is_certain else "This call, or one that ran beside it, has changed"
    lines = [f"{begin} files that the policy protects from you (preToolUse.integrity):"]
    for change in changes[:_MAX_SHOWN]:
        state = "it was put back" if change.is_restored else "it is left as it is now"
        lines.append(f"- {printable(change.path)} {_WORDS[change.what]} ({change.rule}); {state}.")
    lines += _more(changes)
    lines.append(_AFTER_RESTORE if is_undone else _AFTER_REPORT)
    return "\n".join(lines)


def _user_text(changes: Sequence[ReportedChange]) -> str:
    lines = [_user_line(change) for change in changes[:_MAX_SHOWN]]
    return "\n".join(["Integrity check (preToolUse.integrity):", *lines, *_more(changes)])


def _user_line(change: ReportedChange) -> str:
    begin = f"- {printable(change.path)} {_WORDS[change.what]} ({change.rule}) {_cause(change)}"
    if change.is_restored:
        kept = f"; the changed version is {printable(change.kept)}" if change.kept else ""
        return f"{begin}. It was put back{kept}."
    if change.problem:
        return f"{begin}. It could not be put back: {printable(change.problem)}."
    return f"{begin}. It is left as it is now."


def _cause(change: ReportedChange) -> str:
    by = ", ".join(change.by)
    return {
        "call": f"by {by}",
        "approved": f"by {by}, which you were asked about",
        "unseen": f"before the end of {by}; what it was when that began is not known",
        "shared": f"while several calls could have done it: {by}",
        "outside": "outside of tool calls: by you, or by a process that an earlier command has left running",
    }[change.cause]


def _more(changes: Sequence[ReportedChange]) -> list[str]:
    return [f"- and {len(changes) - _MAX_SHOWN} more"] if len(changes) > _MAX_SHOWN else []
