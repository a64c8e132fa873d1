"""Shows mail at events. Called from worker threads, and from the event loop if there is nothing to show.

The gates are asked first: if one blocks, no mail is shown. Messages are marked as shown before the reply is sent; if
the reply is not delivered, `undo` removes the mark.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from fairlead.clients import Task, client_or_default
from fairlead.daemon.events._extension import EventExtension
from fairlead.decide import Decision
from fairlead.events import (
    HookOutput,
    PreCompact,
    SessionEnd,
    SessionStart,
    Stop,
    SubagentStart,
    SubagentStop,
    TaskCompleted,
    TaskCreated,
    ToolEvent,
    UserPromptSubmit,
)
from fairlead.journal import DOCTOR_SESSION
from fairlead.mail import STAGES, MailError, render
from fairlead.text import printable_block

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.mail._idle_policy import IdlePolicy
    from fairlead.daemon.mail._service import MailService
    from fairlead.events import Event
    from fairlead.journal import CommandsRecord, EventRecord
    from fairlead.mail import Agent, Message, MessageService

_OPEN_TIMEOUT = 1.0
"""Seconds that an event waits for a message service that is being opened."""
_RARELY_MAIL = frozenset({"PostToolUse", "UserPromptSubmit", "Stop"})
"""Frequent events at which there is mostly nothing to show."""
_NOT_ANSWERED = frozenset({"blocked", "failed"})
_MAX_REMEMBERED = 2000
_MAX_UNREAD = 100
_MAX_SAVED_LENGTH = 2000
_OWN_TEXT = "You are the agent "


def create(daemon: Daemon) -> MailDelivery:
    """Return the extension."""
    return MailDelivery(daemon.mail, daemon.idle, daemon.errors)


class _Planned(NamedTuple):
    """An event whose answer depends on commands that the caller runs."""

    event_name: str
    agent: Agent


class MailDelivery(EventExtension):
    """Shows an agent its mail, makes idle agents wait for mail, and handles the outcome of the event."""

    kind = "contributor"
    events = frozenset(
        {
            *("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SubagentStart", "SubagentStop"),
            "PreCompact",
        }
    )

    def __init__(self, mail: MailService, idle: IdlePolicy, errors: ErrorLog) -> None:
        self._mail = mail
        self._idle = idle
        self._errors = errors
        self._lock = Lock()
        self._planned: dict[str, _Planned] = {}

    def needs_thread(self, context: EventContext) -> bool:
        """Return whether there is something to show, or to look up on the disk."""
        event = context.event
        name = event.event_name
        service = self._mail.service_within(0)
        if service is None or self._mail.has_pending_undo:
            return service is not None or name != "PostToolUse"
        mail = service.waiting_mail(event.session_id, event.agent_id or "")
        if name == "PostToolUse":
            return mail is not None and mail.urgent > 0
        if name not in _RARELY_MAIL or mail is None or mail.agent.ended or mail.queued:
            return True
        return isinstance(event, Stop) and (mail.may_owe_reply or self._idle.may_stay(mail.agent, context))

    def before_reply(self, context: EventContext) -> Decision | None:
        """Show mail. At the end of a turn it comes before the policy's commands, and an idle agent waits for it.

        `None` means that there is nothing to show; always so in the event loop.
        """
        event = context.event
        if not context.may_wait or event.session_id == DOCTOR_SESSION:
            return None
        output: HookOutput | None = None
        try:
            output = self._output(context)
        except Exception as error:  # an error of the mail must not keep an event from its answer
            self._errors.report(f"mail could not be shown at {event.event_name}: {error}")
        if isinstance(event, Stop):
            context.start_wait = self._idle.wait_starter(event, context)
        waits = context.start_wait is not None
        if output is None:
            return Decision(waits=True) if waits else None
        return Decision(output=output, waits=waits, undoable=True)

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Note the activity of the agent, and the outcome of the event."""
        if record.session == DOCTOR_SESSION:
            return
        self._mail.note_activity(record, event)
        if isinstance(event, ToolEvent):
            return  # nearly all events: nothing follows from them
        if isinstance(event, TaskCreated | TaskCompleted):
            status = "pending" if isinstance(event, TaskCreated) else "completed"
            self._mail.tasks.update(event.session_id, Task(event.task_id or "", status, event.task_subject or ""))
        elif isinstance(event, SessionEnd):
            self._mail.waiters.release(event.session_id, "stop", "wake")  # its agent's end is learned from the tracker
        elif record.verdict not in _NOT_ANSWERED:
            self._answered(record, event)

    def after_commands(self, record: CommandsRecord) -> None:
        """Handle the results of an event's commands.

        If a command has blocked a prompt, the mail that was shown with the prompt is queued again. An agent that has
        stopped is marked as idle.
        """
        with self._lock:
            planned = self._planned.pop(record.id, None)
        service = self._mail.service_within(0)
        if planned is None or service is None:
            return
        try:
            if record.verdict == "blocked" and planned.event_name == "UserPromptSubmit":
                service.requeue(record.id)
            elif (
                record.verdict != "blocked"
                and planned.event_name == "Stop"
                and self._mail.stay_of(planned.agent) != "always"
            ):
                service.notify_idle(planned.agent)
        except MailError as error:
            self._errors.report(f"mail could not follow the commands of an event: {error}")

    def undo(self, event_id: str) -> None:
        """Requeue the mail in a reply that was not delivered."""
        self._mail.undo_delivery(event_id)

    # -- what is shown ---------------------------------------------------------------------------------

    def _output(self, context: EventContext) -> HookOutput | None:  # noqa: PLR0911 - one for each kind of event
        event = context.event
        service = self._mail.service_within(0 if event.event_name == "PostToolUse" else _OPEN_TIMEOUT)
        if service is None:
            return None
        self._mail.retry_undo(service)
        if isinstance(event, Stop):
            return self._idle.show_mail(service, event, context)
        if isinstance(event, SubagentStop):
            return None if event.stop_hook_active else self._at_subagent_stop(service, context)
        if isinstance(event, PreCompact):
            return None if event.agent_id else self._before_compaction(service, context)
        if isinstance(event, SessionStart):
            return self._at_session_start(service, event, context)
        agent = self._mail.agents.of_event(service, event, context.request)
        if isinstance(event, SubagentStart):
            return self._context(service, agent, context, render.session_context)
        urgent_only = not isinstance(event, UserPromptSubmit)
        if not urgent_only and self._idle.turns.withheld(agent.id) and _is_automatic(event):
            return None  # this mail waits for the person, who did not write the prompt
        return self._context(service, agent, context, render.prompt_context, urgent_only=urgent_only)

    def _at_session_start(
        self, service: MessageService, event: SessionStart, context: EventContext
    ) -> HookOutput | None:
        agent = self._mail.agents.of_event(service, event, context.request)
        mail = self._context(service, agent, context, render.session_context)
        if event.source != "compact":
            return mail
        saved = "" if agent.saved.startswith(_OWN_TEXT) else printable_block(agent.saved[:_MAX_SAVED_LENGTH])
        if not (saved or mail or self._uses_mail(service, agent, context)):
            return None
        identity = HookOutput(additional_context=f"{_identity(service, agent)}\n{saved}".rstrip())
        return identity.merge(mail) if mail else identity

    def _before_compaction(self, service: MessageService, context: EventContext) -> HookOutput | None:
        agent = self._mail.agents.of_event(service, context.event, context.request)
        identity = _identity(service, agent)
        if not agent.saved or agent.saved.startswith(_OWN_TEXT):  # a text that the agent saved itself stays
            service.save_status(agent, identity)
        if not self._uses_mail(service, agent, context):
            return None
        return HookOutput(additional_context=render.compaction_context(identity))

    def _at_subagent_stop(self, service: MessageService, context: EventContext) -> HookOutput | None:
        event = context.event
        agent = service.find_by_session(event.session_id, event.agent_id or "")
        if agent is None:  # an unknown agent has no mail
            return None
        messages, left = self._mail.show(service, agent, event, context.request)
        return HookOutput.block(render.subagent_stop_reason(messages, left)) if messages else None

    def _context(
        self,
        service: MessageService,
        agent: Agent,
        context: EventContext,
        text: Callable[[list[Message], render.Left], str],
        *,
        urgent_only: bool = False,
    ) -> HookOutput | None:
        messages, left = self._mail.show(service, agent, context.event, context.request, urgent_only=urgent_only)
        return HookOutput(additional_context=text(messages, left)) if messages else None

    def _uses_mail(self, service: MessageService, agent: Agent, context: EventContext) -> bool:
        """Return whether an agent has ever had mail or waits for it. Other agents need not know their name."""
        return self._idle.settings(context).stay != "no" or bool(service.inbox(agent, stages=STAGES, limit=1))

    # -- the outcome of an event -----------------------------------------------------------------------

    def _answered(self, record: EventRecord, event: Event | None) -> None:
        if isinstance(event, SubagentStop) and event.agent_type:
            self._mail.waiters.release(event.session_id, "stop")  # so that the client can report the subagent's result
        if event is None or event.event_name not in {"Stop", "UserPromptSubmit"}:
            return
        if isinstance(event, UserPromptSubmit) and not self._idle.turns.is_empty and not _is_automatic(event):
            self._idle.reset_turns(event)
        if record.steps:
            self._remember_plan(record, event)
        elif isinstance(event, Stop) and not self._idle.waits_always(event):
            self._idle.mark_idle(event)

    def _remember_plan(self, record: EventRecord, event: Event) -> None:
        service = self._mail.service_within(0)
        agent = service.find_by_session(event.session_id, event.agent_id or "") if service else None
        if agent is not None:
            with self._lock:
                if len(self._planned) >= _MAX_REMEMBERED:
                    self._planned.clear()
                self._planned[record.id] = _Planned(event.event_name, agent)


def _is_automatic(event: Event) -> bool:
    """Return whether an event is a prompt that the client itself wrote."""
    return isinstance(event, UserPromptSubmit) and client_or_default(event.client).is_automatic(event.prompt)


def _identity(service: MessageService, agent: Agent) -> str:
    unread = len(service.inbox(agent, limit=_MAX_UNREAD))
    return render.identity_context(agent, unread, [message for _, message in service.unanswered_by(agent, limit=10)])
