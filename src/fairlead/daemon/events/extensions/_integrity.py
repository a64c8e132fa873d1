"""The integrity check: compares the protected files after a tool whose effects are not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients import client_or_default
from fairlead.daemon.events._extension import EventExtension
from fairlead.daemon.integrity._calls import RunningCall
from fairlead.daemon.integrity._monitor import IntegrityMonitor
from fairlead.daemon.integrity._report import report
from fairlead.decide import Decision
from fairlead.events import (
    HookOutput,
    PostToolBatch,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SessionEnd,
    SessionStart,
    Stop,
    SubagentStop,
    ToolEvent,
    UserPromptSubmit,
)
from fairlead.journal import DOCTOR_SESSION

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.integrity._project import CheckedProject
    from fairlead.daemon.integrity._report import ReportedChange
    from fairlead.events import Event
    from fairlead.journal import EventRecord

_MAX_SHOWN = 100
_MAX_FILE_CALLS = 1000
_NOT_RUN = frozenset({"blocked", "failed"})


def create(daemon: Daemon) -> IntegrityCheck:
    """Return the extension."""
    return IntegrityCheck(daemon.integrity, daemon.errors)


class IntegrityCheck(EventExtension):
    """Reports protected files that a tool has changed, and puts them back if the policy says so."""

    kind = "contributor"
    events = frozenset({"SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure"})
    tool_kinds = frozenset({"shell", "file_write", "other"})
    recorded_events = frozenset(
        {"PreToolUse", "UserPromptSubmit", "PostToolBatch", "SubagentStop", "Stop", "SessionEnd"}
    )

    def __init__(self, monitor: IntegrityMonitor, errors: ErrorLog) -> None:
        self._monitor = monitor
        self._errors = errors
        self._file_calls: dict[str, EventContext] = {}
        """Event id → calls of file tools that are being decided. No files are checked before them, so it is enough to
        add them to the running calls after the reply."""
        self._shown: dict[str, tuple[CheckedProject, list[ReportedChange]]] = {}
        """Event id → the findings in its reply, for the case that the reply is not delivered."""

    def needs_thread(self, context: EventContext) -> bool:
        """Return whether files have to be read, or many files have to be checked."""
        event = context.event
        if isinstance(event, ToolEvent):
            return _may_change_others(context, event) and self._monitor.needs_full_check(context)
        return isinstance(event, SessionStart)

    def before_reply(self, context: EventContext) -> Decision | None:
        """Check the files before and after a call. An error here does not keep the event from being answered."""
        event = context.event
        if event.session_id == DOCTOR_SESSION:
            return None
        try:
            output = self._output(context)
        except Exception as error:  # the tool has run already, or the guards have decided
            self._errors.report(f"the integrity check failed at {event.event_name}: {error}")
            output = HookOutput(system_message=f"The integrity check failed: {error}")
        return None if output is None else Decision(output=output, undoable=True)

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Note the verdict on a call, and which calls can no longer run."""
        calls = self._monitor.calls
        if isinstance(event, PreToolUse):
            self._tool_decided(record, event)
        elif isinstance(event, UserPromptSubmit):
            calls.note_prompt(event.session_id)
            if calls.has_unfinished:
                calls.end_tasks(event.session_id, None, client_or_default(event.client).ended_task(event.prompt))
        elif isinstance(event, PostToolBatch | SubagentStop):
            calls.end_calls_of_agent(event)
        elif isinstance(event, Stop):
            calls.end_calls_of_agent(event)
            calls.end_tasks(event.session_id, _task_ids(event.background_tasks))
        elif isinstance(event, SessionEnd):
            calls.end_calls_of_session(event.session_id)

    def undo(self, event_id: str) -> None:
        """Report the findings of an undelivered reply again, with the next reply."""
        shown = self._shown.pop(event_id, None)
        if shown is not None:
            project, findings = shown
            project.pending += findings

    def _output(self, context: EventContext) -> HookOutput | None:
        event = context.event
        if isinstance(event, SessionStart):
            self._monitor.project(context)
        elif isinstance(event, ToolEvent) and context.tool_kind == "file_write":
            self._file_tool(context, event)
        elif isinstance(event, ToolEvent) and _may_change_others(context, event):
            return self._checked_tool(context, event)
        return None

    def _tool_decided(self, record: EventRecord, event: PreToolUse) -> None:
        context, calls = self._file_calls.pop(record.id, None), self._monitor.calls
        if record.verdict in _NOT_RUN:
            calls.end_blocked_call(record.id)
            return
        if context is not None:
            calls.begin(RunningCall(event, record.id, context.cwd, record.caller, context.client))
        if record.verdict == "asked":
            calls.note_approval(record.id)

    def _file_tool(self, context: EventContext, event: ToolEvent) -> None:
        if isinstance(event, PreToolUse):
            if len(self._file_calls) >= _MAX_FILE_CALLS:
                self._file_calls.clear()
            self._file_calls[context.request.id] = context
        else:
            call = context.client.tool_call(event.tool_name, event.tool_input)
            self._monitor.note_written_files(event, [access.path for access in call.paths], context.cwd)

    def _checked_tool(self, context: EventContext, event: ToolEvent) -> HookOutput | None:
        if isinstance(event, PreToolUse):
            self._monitor.begin_call(context, event)
            return None
        if not isinstance(event, PostToolUse | PostToolUseFailure):
            return None
        task = context.client.background_task(event) if isinstance(event, PostToolUse) else ""
        found = self._monitor.end_call(context, event, task)
        if found is None:
            return None
        if len(self._shown) >= _MAX_SHOWN:
            del self._shown[next(iter(self._shown))]
        self._shown[context.request.id] = found
        return report(found[1])


def _task_ids(tasks: list[object] | None) -> frozenset[str] | None:
    """Return the ids of the background tasks that a client lists as running; `None` if it has sent no list."""
    if tasks is None:
        return None
    return frozenset(str(task.get("id")) for task in tasks if isinstance(task, dict))


def _may_change_others(context: EventContext, event: ToolEvent) -> bool:
    """Return whether a tool may change files that its call does not name."""
    return context.tool_kind != "file_write" and context.client.may_change_files(event.tool_name)
