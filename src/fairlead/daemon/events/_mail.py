"""What the mail has to say at each event. Sync, for threads.

The policy speaks first: where it blocks, no mail is shown. An answer carries exactly what the office has marked as
shown; if that answer cannot be given, the mark is taken back.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fairlead.clients import Task, client_or_default
from fairlead.decide import DOCTOR_SESSION
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
    UserPromptSubmit,
)
from fairlead.mail import STAGES, MailError
from fairlead.mail import _render as words

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon.events._handler import HookReply
    from fairlead.daemon.events._request import HookRequest
    from fairlead.daemon.mail._idle_policy import IdlePolicy
    from fairlead.daemon.mail._service import MailService
    from fairlead.decide import Decision
    from fairlead.events import Event
    from fairlead.journal import CommandsRecord
    from fairlead.mail import Agent, Message, MessageService

_OPENING = 1.0
"""Seconds that an event waits for an office that is being opened."""
_MAILED = frozenset(
    {
        *("SessionStart", "SessionEnd", "UserPromptSubmit", "PostToolUse", "Stop", "SubagentStart", "SubagentStop"),
        *("PreCompact", "TaskCreated", "TaskCompleted"),
    }
)
_FREQUENT = frozenset({"PostToolUse", "UserPromptSubmit", "Stop"})
"""Those of them at which there is mostly nothing to say."""
_PLANNED = 202
_MOST_REMEMBERED = 2000
_MOST_UNREAD = 100
_OWN_WORDS = "You are the agent "
_LONGEST_SAVED = 2000


class _Planned(NamedTuple):
    """An event whose answer depends on commands that the caller runs."""

    event: str
    agent: Agent
    stays: bool


class MailDelivery:
    """Brings mail at events."""

    def __init__(self, mail: MailService, stays: IdlePolicy, trouble: Callable[[str], None]) -> None:
        self._mail = mail
        self._stays = stays
        self._trouble = trouble
        self._lock = Lock()
        self._cleared: dict[tuple[int, int], str] = {}
        """By process: the session that /clear has ended there, and whose agent goes on."""
        self._planned: dict[str, _Planned] = {}

    def is_quiet(self, event: Event, ask: HookRequest) -> bool:
        """Tell whether there is nothing to say or to note. Never waits itself, for the loop asks."""
        name = event.event_name
        if name not in _MAILED:
            return True
        office = self._mail.office_within(0)
        if office is None or self._mail.owes:
            return office is None and name == "PostToolUse"
        agent = office.known(event.session_id, event.agent_id or "")
        if name == "PostToolUse":
            return agent is None or not office.waiting(agent, urgent_only=True)
        if name not in _FREQUENT or agent is None or agent.ended or office.waiting(agent):
            return False
        return not isinstance(event, Stop) or (not office.may_owe(agent) and self._stays.never(agent, event, ask))

    def speak(self, event: Event, ask: HookRequest, decision: Decision) -> Decision:
        """Add what the mail says to what was decided. Mail at the end of a turn comes before the policy's commands."""
        if event.event_name not in _MAILED or event.session_id == DOCTOR_SESSION:
            return decision
        try:
            said = self._said(event, ask, may_show=not decision.output.blocked)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the mail, the event is answered
            self._trouble(f"mail could not be shown at {event.event_name}: {error}")
            said = None
        if isinstance(event, Stop) and self._stays.how(event, ask).stay == "always":
            decision = msgspec.structs.replace(decision, stays=True)
        if said is None:
            return decision
        plan = None if said.blocked else decision.plan
        return msgspec.structs.replace(decision, output=decision.output.merge(said), plan=plan, mailed=True)

    def answered(self, event: Event, ask: HookRequest, decision: Decision, reply: HookReply) -> HookReply:
        """See to what follows from an answer: one who may stop waits instead, or is idle now."""
        if decision.mailed:
            reply = msgspec.structs.replace(reply, shows=ask.id)
        if event.event_name not in _MAILED or reply.verdict in {"blocked", "failed"}:
            return reply
        if isinstance(event, SubagentStop) and event.agent_type:
            self._mail.waits.release(event.session_id, "stop")  # so that the client can tell what came of it
        if reply.status == _PLANNED:
            self._remember(event, ask, stays=decision.stays)
        elif isinstance(event, Stop) and decision.stays:
            return self._stays.begin(event, ask, reply.stdout)
        elif isinstance(event, Stop):
            self._stays.mark_idle(event)
        return reply

    def done(self, done: CommandsRecord) -> None:
        """Hear what came of an event's commands: a prompt that they blocked has swallowed what was shown with it."""
        with self._lock:
            planned = self._planned.pop(done.id, None)
        office = self._mail.office_within(0)
        if planned is None or office is None:
            return
        try:
            if done.verdict == "blocked" and planned.event == "UserPromptSubmit":
                office.unshow(done.id)
            elif done.verdict != "blocked" and planned.event == "Stop" and not planned.stays:
                office.went_idle(planned.agent)
        except MailError as error:
            self._trouble(f"the mail could not follow an event's commands: {error}")

    def _remember(self, event: Event, ask: HookRequest, *, stays: bool) -> None:
        office = self._mail.office_within(0)
        agent = office.known(event.session_id, event.agent_id or "") if office else None
        if agent is not None:
            with self._lock:
                if len(self._planned) >= _MOST_REMEMBERED:
                    self._planned.clear()
                self._planned[ask.id] = _Planned(event.event_name, agent, stays)

    def take_back(self, event_id: str) -> None:
        """Hear that an answer could not be given."""
        self._mail.undo_delivery(event_id)

    # -- what is said ----------------------------------------------------------------------------------

    def _said(self, event: Event, ask: HookRequest, *, may_show: bool) -> HookOutput | None:
        if isinstance(event, TaskCreated | TaskCompleted):
            status = "pending" if isinstance(event, TaskCreated) else "completed"
            self._mail.tasks.take(event.session_id, Task(event.task_id or "", status, event.task_subject or ""))
            return None
        if isinstance(event, SessionStart):
            client_or_default(ask.client).export_session(ask.caller.env_file, event.session_id, ask.cwd)
        elif isinstance(event, SessionEnd):
            self._goodbye(event, ask)
            return None
        office = self._mail.office_within(0 if event.event_name == "PostToolUse" else _OPENING)
        if office is None or not may_show:
            return None
        self._mail.retry_undo(office)
        return self._at(office, event, ask)

    def _at(self, office: MessageService, event: Event, ask: HookRequest) -> HookOutput | None:
        if isinstance(event, Stop):
            return self._stays.mail(office, event, ask)
        if isinstance(event, SubagentStop):
            return None if event.stop_hook_active else _at_end_of_subagent(office, event, ask)
        if isinstance(event, PreCompact):
            return None if event.agent_id else self._before_compaction(office, event, ask)
        if isinstance(event, SessionStart):
            return self._at_start(office, event, ask)
        agent = self._mail.agent_of(office, event, ask)
        if isinstance(event, SubagentStart):
            return _context(words.session_context, *shown(office, agent, event, ask))
        urgent_only = not isinstance(event, UserPromptSubmit)
        return _context(words.prompt_context, *shown(office, agent, event, ask, urgent_only=urgent_only))

    def _at_start(self, office: MessageService, event: SessionStart, ask: HookRequest) -> HookOutput | None:
        if event.source == "clear":
            self._continue(office, event, ask)
        agent = self._mail.agent_of(office, event, ask)
        said = _context(words.session_context, *shown(office, agent, event, ask))
        if event.source != "compact":
            return said
        own = "" if agent.saved.startswith(_OWN_WORDS) else words.harmless(agent.saved[:_LONGEST_SAVED])
        if not (own or said or self._writes(office, agent, event, ask)):
            return None
        known = HookOutput(additional_context=f"{_identity(office, agent)}\n{own}".rstrip())
        return known.merge(said) if said else known

    def _before_compaction(self, office: MessageService, event: PreCompact, ask: HookRequest) -> HookOutput | None:
        agent = self._mail.agent_of(office, event, ask)
        status = _identity(office, agent)
        if not agent.saved or agent.saved.startswith(_OWN_WORDS):  # what it saved itself stays
            office.save(agent, status)
        return HookOutput(additional_context=status) if self._writes(office, agent, event, ask) else None

    def _writes(self, office: MessageService, agent: Agent, event: Event, ask: HookRequest) -> bool:
        """Tell whether an agent has to do with mail: to one that has not, its name is noise."""
        return self._stays.how(event, ask).stay != "no" or bool(office.inbox(agent, stages=STAGES, limit=1))

    def _goodbye(self, event: SessionEnd, ask: HookRequest) -> None:
        """Let nobody wait any more; the tracker tells that the session has ended."""
        self._mail.waits.release(event.session_id, "stop", "wake")
        process = ask.caller.pid, ask.caller.start
        if event.reason == "clear" and ask.caller.pid:
            with self._lock:
                if len(self._cleared) >= _MOST_REMEMBERED:
                    self._cleared.clear()
                self._cleared[process] = event.session_id

    def _continue(self, office: MessageService, event: SessionStart, ask: HookRequest) -> None:
        """Let the agent go on whose session /clear has ended in the same process."""
        with self._lock:
            before = self._cleared.pop((ask.caller.pid, ask.caller.start), None)
        is_new = office.known(event.session_id) is None
        if before is not None and is_new and office.known(before) is not None:
            office.continue_as(before, event.session_id)


def shown(
    office: MessageService, agent: Agent, event: Event, ask: HookRequest, *, urgent_only: bool = False
) -> tuple[list[Message], int]:
    """Take what waits for an agent, marked as shown at this event; and say how much is left."""
    messages = office.show(agent, event.event_name, ask.id, urgent_only=urgent_only, most=words.MOST_SHOWN)
    return messages, office.waiting(agent, urgent_only=urgent_only)


def _context(say: Callable[[list[Message], int], str], messages: list[Message], left: int) -> HookOutput | None:
    return HookOutput(additional_context=say(messages, left)) if messages else None


def _identity(office: MessageService, agent: Agent) -> str:
    unread = len(office.inbox(agent, limit=_MOST_UNREAD))
    return words.identity(agent, unread, [message for _, message in office.owed_by(agent, limit=10)])


def _at_end_of_subagent(office: MessageService, event: SubagentStop, ask: HookRequest) -> HookOutput | None:
    agent = office.known(event.session_id, event.agent_id or "")
    if agent is None:  # nobody can have written to one who was never heard of
        return None
    messages, left = shown(office, agent, event, ask)
    return HookOutput.block(words.stop_reason(messages, left)) if messages else None
