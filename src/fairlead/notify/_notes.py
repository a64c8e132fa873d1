"""Decides whether the user is notified of an event, and composes notes. Pure: reads and sends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.events import Notification
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.events import Event

Status = Literal["success", "failure", "blocked", "running", "warning"]
"""The outcome of an event or command. `running` is sent before a command, the others after it."""

CommandStatus = Literal["running", "success", "failure"]

_MAX_TITLE_LENGTH = 100
_MAX_BODY_LENGTH = 500
_MAX_NAME_LENGTH = 60
"""The limit for each name in a body, so that a long name cannot displace the others."""
_MAX_NAMED = 3
"""The maximum number of sessions or messages that a note names."""


class Note(msgspec.Struct, frozen=True):
    """A notification to the user: title and body are one line of bounded text without control characters."""

    title: str
    body: str
    status: Status


class WaitingSession(msgspec.Struct, frozen=True):
    """A session that needs the user, and why. The texts are untrusted."""

    project: str
    reason: str
    agent: str = ""
    """The type of the subagent that needs the user; "" for a main session."""
    about: str = ""
    """The command or question, or the name of the file concerned."""


def event_note(
    event: Event,
    *,
    status: Status,
    detail: str | None = None,
    enabled: bool,
    events: Iterable[str] = (),
    hooks: Iterable[str] = (),
    show_errors: bool,
    show_success: bool,
    show_system_events: bool,
) -> Note | None:
    """Return the note about an event; `None` if the settings do not ask for one.

    `detail` is the text of the note; if it is missing or blank, a default text is used. `enabled`, `events` and the
    `show_…` flags are the settings. `events` has names of events, or `*` for all events. `hooks` is its former name.
    """
    if not (enabled and _is_listed(event.event_name, (*events, *hooks))):
        return None
    is_system = is_system_event(event.event_name)
    if not _is_shown(
        status, is_system=is_system, errors=show_errors, success=show_success, system_events=show_system_events
    ):
        return None
    return Note(_title(event, status), _body(event, status, detail), status)


def command_note(event: Event, command: str | None, status: CommandStatus) -> Note:
    """Return the note about the start or the end of a command; `command` is `None` if its text is not shown."""
    label, text_without_command = _COMMAND_TEXTS[status]
    body = text_without_command if command is None else f"{label}: {command}"
    return Note(_title(event, status), one_line(body, _MAX_BODY_LENGTH), status)


def attention_note(requests: Sequence[WaitingSession]) -> Note:
    """Return the note about one or more sessions that need the user. It names at most three of them."""
    if len(requests) == 1:
        title = f"Fairlead - {one_line(requests[0].project, _MAX_NAME_LENGTH)} needs you"
        return Note(
            one_line(title, _MAX_TITLE_LENGTH), one_line(_attention_text(requests[0]), _MAX_BODY_LENGTH), "warning"
        )
    first = requests[:_MAX_NAMED]
    named = [f"{one_line(request.project, _MAX_NAME_LENGTH)}: {_attention_text(request)}" for request in first]
    more = len(requests) - len(named)
    body = "; ".join([*named, f"and {more} more"] if more else named)
    return Note(f"Fairlead - {len(requests)} sessions need you", one_line(body, _MAX_BODY_LENGTH), "warning")


def mail_note(messages: Sequence[tuple[str, str, bool]]) -> Note:
    """Return the note about one or more messages to the user. It names at most three of them.

    A message is given as its sender, its subject, and whether it is a request. The texts are untrusted.
    """
    named = [_mail_text(*message) for message in messages[:_MAX_NAMED]]
    more = len(messages) - len(named)
    count = "you have mail" if len(messages) == 1 else f"you have {len(messages)} messages"
    body = "; ".join([*named, f"and {more} more"] if more else named)
    return Note(f"Fairlead - {count}", one_line(body, _MAX_BODY_LENGTH), "warning")


def _mail_text(sender: str, subject: str, is_request: bool) -> str:  # noqa: FBT001 - a part of a message
    verb = "asks" if is_request else "writes"
    return f"{one_line(sender, _MAX_NAME_LENGTH)} {verb}: {one_line(subject, _MAX_TITLE_LENGTH)}"


def is_system_event(name: str) -> bool:
    """Return whether the event with this name is about the lifecycle of a session, not about its tools and checks.

    Case, `-` and `_` in the name do not matter.
    """
    return _normalize(name) in _SYSTEM_EVENTS


def _is_listed(name: str, events: Iterable[str]) -> bool:
    return any(listed.strip() == "*" or _normalize(listed) == _normalize(name) for listed in events)


def _is_shown(status: Status, *, is_system: bool, errors: bool, success: bool, system_events: bool) -> bool:
    """Return whether the settings ask for a note with this status.

    `errors`, `success` and `system_events` are the `show_…` settings. `success` does not apply to system events.
    """
    if status == "failure":
        return errors
    if status in {"blocked", "warning"}:
        return errors or (is_system and system_events)
    return system_events if is_system else success


def _title(event: Event, status: Status) -> str:
    title = f"Fairlead - {one_line(event.event_name, _MAX_NAME_LENGTH)}{_TITLE_SUFFIXES.get(status, '')}"
    return one_line(title, _MAX_TITLE_LENGTH)


def _body(event: Event, status: Status, detail: str | None) -> str:
    about = ", ".join(filter(None, (_agent(event), _subject(event))))
    text = detail if detail and not detail.isspace() else _default_text(event, status)
    return one_line(f"{about}: {text}" if about else text, _MAX_BODY_LENGTH)


def _attention_text(request: WaitingSession) -> str:
    parts = [one_line(text, _MAX_NAME_LENGTH) for text in (request.agent, request.reason, request.about)]
    return ": ".join(filter(None, parts))


def _agent(event: Event) -> str:
    """Return a subagent as `TYPE (ID)`, or as the one of them that is known; "" for a main session."""
    name, kind = one_line(event.agent_id or "", _MAX_NAME_LENGTH), one_line(event.agent_type or "", _MAX_NAME_LENGTH)
    return f"{kind} ({name})" if name and kind and name != kind else name or kind


def _subject(event: Event) -> str:
    return "" if event.subject_field == "agent_type" else one_line(event.subject, _MAX_NAME_LENGTH)


def _default_text(event: Event, status: Status) -> str:
    if status == "success" and isinstance(event, Notification) and event.message:
        return event.message
    if status == "success":
        return _SYSTEM_EVENT_TEXTS.get(event.event_name, "All checks passed")
    return _STATUS_TEXTS[status]


def _normalize(name: str) -> str:
    return name.replace("_", "").replace("-", "").strip().lower()


_TITLE_SUFFIXES = {"failure": " Failed", "blocked": " Blocked", "warning": " Warning"}

_STATUS_TEXTS = {
    "failure": "Command failed",
    "blocked": "Blocked",
    "running": "Running",
    "warning": "Passed with a warning",
}

_COMMAND_TEXTS: dict[CommandStatus, tuple[str, str]] = {
    "running": ("Running", "Running a command"),
    "success": ("Command passed", "Command passed"),
    "failure": ("Command failed", "Command failed"),
}
"""Status → the label before the command, and the text of the note if the command is not shown."""

_SYSTEM_EVENT_TEXTS = {
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
"""System events, with the text of a success: conclaude's eleven (`SessionStart` to `WorktreeRemove`) and later events
of the same kind. Frequent events (`FileChanged`, `MessageDisplay`, `InstructionsLoaded`) are left out, because with
`*` the user would get too many notes."""

_SYSTEM_EVENTS = frozenset(map(_normalize, _SYSTEM_EVENT_TEXTS))
