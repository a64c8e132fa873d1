"""Whether a person is told of an event, and in which words. Pure: nothing is read, nothing is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.events import Notification
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.events import Event

Status = Literal["success", "failure", "blocked", "running", "warning"]
"""How it went. `running` is told before a command, the others after."""

CommandStatus = Literal["running", "success", "failure"]

TITLE_LIMIT = 100
BODY_LIMIT = 500
NAME_LIMIT = 60
"""For each name in a body, so that a long one cannot push out the others."""
MOST_NAMED = 3
"""Sessions that are named where one note tells of many."""


class Note(msgspec.Struct, frozen=True):
    """What a person is told: plain text of one line each, without control characters, and bounded."""

    title: str
    body: str
    status: Status


class Waiting(msgspec.Struct, frozen=True):
    """Who needs the person, and why: texts of others, as they came."""

    project: str
    reason: str
    agent: str = ""
    """The type of the subagent that asks."""
    about: str = ""
    """The file that it is about."""


def note_for(  # noqa: PLR0913 - one for each setting of the section
    event: Event,
    *,
    status: Status,
    detail: str | None = None,
    enabled: bool,
    hooks: Iterable[str],
    show_errors: bool,
    show_success: bool,
    show_system_events: bool,
) -> Note | None:
    """Say what a person is to be told about an event; `None` if the settings do not ask for it."""
    if not (enabled and _listed(event.event_name, hooks)):
        return None
    system = is_system_event_hook(event.event_name)
    if not _shown(status, system=system, errors=show_errors, success=show_success, system_events=show_system_events):
        return None
    title = f"Fairlead - {one_line(event.event_name, NAME_LIMIT)}{_OUTCOMES.get(status, '')}"
    return Note(one_line(title, TITLE_LIMIT), _body(event, status, detail), status)


def note_of_command(event: Event, command: str | None, status: CommandStatus) -> Note:
    """Say that one command of an event begins, or how it ended; `None` is a command that is not to be shown."""
    title = f"Fairlead - {one_line(event.event_name, NAME_LIMIT)}{_OUTCOMES.get(status, '')}"
    words, alone = _OF_COMMAND[status]
    body = alone if command is None else f"{words}: {command}"
    return Note(one_line(title, TITLE_LIMIT), one_line(body, BODY_LIMIT), status)


def note_of_waiting(waiting: Sequence[Waiting]) -> Note:
    """Say who needs the person; of many at once, how many, and the first few of them."""
    if len(waiting) == 1:
        title = f"Fairlead - {one_line(waiting[0].project, NAME_LIMIT)} needs you"
        return Note(one_line(title, TITLE_LIMIT), one_line(_needs(waiting[0]), BODY_LIMIT), "warning")
    named = [f"{one_line(one.project, NAME_LIMIT)}: {_needs(one)}" for one in waiting[:MOST_NAMED]]
    more = len(waiting) - len(named)
    body = "; ".join([*named, f"and {more} more"] if more else named)
    return Note(f"Fairlead - {len(waiting)} sessions need you", one_line(body, BODY_LIMIT), "warning")


def is_system_event_hook(name: str) -> bool:
    """Whether an event is of a session's life, rather than of its tools and checks. Takes a name in any case."""
    return _fold(name) in _SYSTEM_EVENTS


def _listed(name: str, hooks: Iterable[str]) -> bool:
    return any(hook.strip() == "*" or _fold(hook) == _fold(name) for hook in hooks)


def _shown(status: Status, *, system: bool, errors: bool, success: bool, system_events: bool) -> bool:
    """For good news of a system event its own flag decides alone: `showSuccess` is about checks that pass."""
    if status == "failure":
        return errors
    if status in {"blocked", "warning"}:
        return errors or (system and system_events)
    return system_events if system else success


def _body(event: Event, status: Status, detail: str | None) -> str:
    about = ", ".join(filter(None, (_agent(event), _subject(event))))
    said = detail if detail and not detail.isspace() else _default(event, status)
    return one_line(f"{about}: {said}" if about else said, BODY_LIMIT)


def _needs(one: Waiting) -> str:
    said = [one_line(text, NAME_LIMIT) for text in (one.agent, one.reason, one.about)]
    return ": ".join(filter(None, said))


def _agent(event: Event) -> str:
    """The type is what a person knows it by, the id is what tells two of a type apart."""
    name, kind = one_line(event.agent_id or "", NAME_LIMIT), one_line(event.agent_type or "", NAME_LIMIT)
    return f"{kind} ({name})" if name and kind and name != kind else name or kind


def _subject(event: Event) -> str:
    return "" if event.subject_field == "agent_type" else one_line(event.subject, NAME_LIMIT)


def _default(event: Event, status: Status) -> str:
    if status == "success" and isinstance(event, Notification) and event.message:
        return event.message
    if status == "success":
        return _MOMENTS.get(event.event_name, "All checks passed")
    return _SAID[status]


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").strip().lower()


_OUTCOMES = {"failure": " Failed", "blocked": " Blocked", "warning": " Warning"}

_SAID = {"failure": "Command failed", "blocked": "Blocked", "running": "Running", "warning": "Passed with a warning"}

_OF_COMMAND: dict[CommandStatus, tuple[str, str]] = {
    "running": ("Running", "Running a command"),
    "success": ("Command passed", "Command passed"),
    "failure": ("Command failed", "Command failed"),
}
"""What to say before a command's name, and what where it has none."""

_MOMENTS = {
    "SessionStart": "Session started",
    "SessionEnd": "Session ended",
    "Setup": "Setup",
    "UserPromptSubmit": "Prompt received",
    "SubagentStart": "Subagent started",
    "SubagentStop": "Subagent stopped",
    "TeammateIdle": "Teammate is idle",
    "TaskCreated": "Task created",
    "TaskCompleted": "Task completed",
    "Notification": "The client wants your attention",
    "PreCompact": "The conversation is about to be compacted",
    "PostCompact": "The conversation was compacted",
    "ConfigChange": "Settings changed",
    "WorktreeCreate": "Worktree is about to be created",
    "WorktreeRemove": "Worktree is about to be removed",
}
"""The system events, and what to say of each that went well: conclaude's eleven (`SessionStart` to `WorktreeRemove`)
with the events that came later and belong to them. Those that come by the dozen (`FileChanged`, `MessageDisplay`,
`InstructionsLoaded`) are none, or `*` would drown a person."""

_SYSTEM_EVENTS = frozenset(map(_fold, _MOMENTS))
