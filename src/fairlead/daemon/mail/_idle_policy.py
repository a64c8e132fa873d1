"""Makes an agent that stops read its mail, do its tasks, and then wait for more mail.

The setting `mail.stay` has three values. With `always`, the agent waits in a hook that the client waits for. With
`wake`, it waits in a hook that the client does not wait for, and that wakes it. With `no`, it does not wait.
"""

from __future__ import annotations

import asyncio
from functools import partial
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from fairlead.clients import client_named
from fairlead.daemon.events._extension import EventContext
from fairlead.daemon.events._messages import NOT_FOUND, OK, UNAVAILABLE, WAIT, HookReply, error_reply
from fairlead.daemon.mail._receipts import reader_pid, unique_showing
from fairlead.daemon.mail._turn_limit import TurnLimiter, send_withheld_notices
from fairlead.decide import WAKE_EVENTS, find_event_policy, idle_settings
from fairlead.errors import NeedsThread
from fairlead.events import HookOutput, Stop, encode_json
from fairlead.journal import MAX_REASON_LENGTH, CommandsRecord
from fairlead.mail import MailError, incomplete, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.clients import Task
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.events._extension import StartWait
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._recorder import EventRecorder
    from fairlead.daemon.mail._service import MailService
    from fairlead.daemon.mail._waiters import Mode, Waiter, WaitToken
    from fairlead.decide import IdleSettings, PolicyContext
    from fairlead.events import Event, UserPromptSubmit
    from fairlead.mail import Agent, MessageService

MAX_WAKE_WAIT = 2_000_000
"""The longest timeout that all clients support, in seconds (23 days)."""

_OPEN_TIMEOUT = 5.0
_WAKE_DELAY = 0.5
"""Seconds for which a wake hook waits first. Meanwhile another hook of the event may show the mail without a turn."""
_MAX_REMINDED = 2000
_MAX_COMPARED = 50
"""How many queued messages are checked against the limits of automatic turns."""
_ONLY_AT_STOP = "only at the end of a turn is there something to wait for"
_TURN_CHECK = 0.5
"""Seconds between two checks whether a turn has ended, because an interrupted turn ends without an event."""


class IdlePolicy:
    """Shows mail to agents that stop, reminds them of their tasks, and makes them wait for mail."""

    def __init__(self, mail: MailService, recorder: EventRecorder, errors: ErrorLog) -> None:
        self._mail = mail
        self._recorder = recorder
        self._errors = errors
        self._lock = Lock()
        self._reminded: dict[str, tuple[tuple[Task, ...], int]] = {}
        """By session id: the tasks of the last reminder, and how often in a row the session was reminded of them."""
        self.turns = TurnLimiter()

    @staticmethod
    def settings(context: EventContext) -> IdleSettings:
        """Return the settings that apply when the agent of an event stops. Raises `NeedsThread` in the event loop."""
        return idle_settings(context.event, context.policy, context.request.env)

    def may_stay(self, agent: Agent, context: EventContext) -> bool:
        """Return whether an agent may wait for mail after a stop; True if that is not known without reading a file."""
        if self._mail.stay_of(agent) != "no":
            return True
        try:
            return self.settings(context).stay != "no"
        except NeedsThread:
            return True

    def waits_always(self, event: Stop) -> bool:
        """Return whether `mail.stay` was `always` when the agent of an event last stopped. Never blocks."""
        service = self._mail.service_within(0)
        agent = service.find_by_session(event.session_id) if service else None
        return agent is not None and self._mail.stay_of(agent) == "always"

    # -- at the end of a turn, in a thread -------------------------------------------------------------

    def show_mail(
        self, service: MessageService, event: Stop, context: EventContext, showing: str = ""
    ) -> HookOutput | None:
        """Show queued mail, and return the block that keeps the agent from stopping.

        Returns `None` if there is no mail, or if it is held because of the turn limits. A showing counts as an
        automatic turn. `showing` is the id of the showing, by default the id of the event.
        """
        agent = self._mail.agents.of_event(service, event, context.request)
        settings = self.settings(context)
        self._mail.set_stay(agent, settings.stay)
        if not self._may_cause_turn(service, agent, settings):
            return None
        messages, left = self._mail.show(service, agent, event, context.request, showing=showing)
        if messages:
            self.turns.add(agent.id, (message.thread for message in messages), time())
        return HookOutput.block(render.stop_reason(messages, left)) if messages else None

    def _may_cause_turn(self, service: MessageService, agent: Agent, settings: IdleSettings) -> bool:
        """Return whether queued mail may cause a turn. If it is held from now on, send the notices about that."""
        if not service.queued_count(agent):
            return True
        queued = [message for _, message in service.inbox(agent, stages=("queued",), limit=_MAX_COMPARED)]
        reason, is_new = self.turns.check(agent.id, queued, settings, time())
        if is_new:
            send_withheld_notices(service, agent, queued, reason)
        return not reason

    def reset_turns(self, event: UserPromptSubmit) -> None:
        """Reset the count of automatic turns of an agent, because the user has written a prompt in its session."""
        service = self._mail.service_within(0)
        agent = service.find_by_session(event.session_id) if service else None
        if agent is not None:
            self.turns.release(agent.id)

    def wait_starter(self, event: Stop, context: EventContext) -> StartWait | None:
        """Return a function that takes the reply to a stop and starts the agent's wait; `None` if it does not wait."""
        if self.settings(context).stay != "always":
            return None
        return lambda reply: self._start(event, context, reply.stdout)

    def resume(self, payload: bytes, request: HookRequest, stdout: bytes, *, wakes: bool = False) -> HookReply:
        """Continue an event that another process has decided, or whose wait was interrupted. Called in a thread.

        Mail that was shown at the event is queued again first. Then shows mail or starts the wait; at an event other
        than `Stop`, the reply is an error. `stdout` is the output that must be printed in any case. With `wakes`,
        continues the wait of a wake hook instead.
        """
        event = client_named(request.client).parse(payload, request.event)
        service, output = self._mail.service_within(_OPEN_TIMEOUT), None
        showing = _showing(request)
        context = _context(event, request) if not wakes and isinstance(event, Stop) else None
        try:
            if service is not None:
                self._mail.requeue_all(service, request.id)
                if context is not None and isinstance(event, Stop):
                    output = self.show_mail(service, event, context, showing)
        except MailError as error:
            self._errors.report(f"mail could not be shown at {event.event_name}: {error}")
        if wakes:
            return self.wake(payload, request)
        if context is None or not isinstance(event, Stop):
            return error_reply(NOT_FOUND, _ONLY_AT_STOP)
        if output is not None:
            reply = _blocked(event, request, output.reason or "", stdout)
            return replace(reply, undo_id=showing, receipt=showing) if request.receipts else reply
        return self._start(event, context, stdout)

    def wake(self, payload: bytes, request: HookRequest) -> HookReply:
        """Start the wait of a wake hook, and return the reply with its token.

        At a `Stop`, the hook gets a wait only if `mail.stay` is `wake`. At other events, the wait checks that. A client
        without a terminal (`-p`, the SDK) waits for this hook, too, and would never end, so it gets no wait. The
        reply is an error at an event that has no wake hook.
        """
        client = client_named(request.client)
        event = client.parse(payload, request.event)
        if event.event_name not in WAKE_EVENTS:
            return error_reply(NOT_FOUND, _ONLY_AT_STOP)
        if client.is_headless(request.env) or (isinstance(event, Stop) and not _should_wake(event, request)):
            return HookReply(OK)
        return self._issue_token("wake", event, request, MAX_WAKE_WAIT, b"")

    def mark_idle(self, event: Stop) -> None:
        """Notify the senders of unanswered requests that the agent is idle, unless its subagents still work.

        Errors are only reported.
        """
        service = self._mail.service_within(0)
        agent = service.find_by_session(event.session_id) if service else None
        if service is None or agent is None or _has_running_subagents(event):
            return
        try:
            service.notify_idle(agent)
        except MailError as error:
            self._errors.report(f"those who wait for {agent.name} could not be notified: {error}")

    def _start(self, event: Stop, context: EventContext, stdout: bytes) -> HookReply:
        """Start the wait of an agent that has no mail. If it has incomplete tasks, remind it of them instead."""
        settings, request = self.settings(context), context.request
        client = context.client
        stored = client.read_tasks(client.config_folder(request.env, request.cwd), event.session_id)
        tasks = incomplete(self._mail.tasks.tasks_of(event.session_id, stored))
        if tasks and self._may_remind(event.session_id, tasks, settings.max_reminders):
            return _blocked(event, request, render.tasks_reason(tasks), stdout)
        self.mark_idle(event)
        if self._mail.is_unavailable:
            return HookReply(OK, stdout=stdout)
        return self._issue_token("stop", event, request, settings.wait, stdout)

    def _may_remind(self, session: str, tasks: tuple[Task, ...], limit: int) -> bool:
        """Return whether a session may be reminded of these tasks, and if so, count the reminder.

        `limit` is how often in a row it may be reminded of the same tasks; 0 for no limit.
        """
        with self._lock:
            before, count = self._reminded.get(session, ((), 0))
            count = count if before == tasks else 0
            if limit and count >= limit:
                return False
            if len(self._reminded) >= _MAX_REMINDED:
                self._reminded.clear()
            self._reminded[session] = tasks, count + 1
        return True

    def _issue_token(self, mode: Mode, event: Event, request: HookRequest, seconds: float, stdout: bytes) -> HookReply:
        token = self._mail.waiters.issue(mode, event, request, seconds, stdout)
        return HookReply(WAIT, token=token.token, milliseconds=int(seconds * 1000))

    # -- waiting, in the event loop --------------------------------------------------------------------

    async def wait(self, token: str, is_disconnected: Callable[[], bool]) -> HookReply:
        """Wait until mail arrives or the time is up, and return the reply to the launcher that requested the token.

        If the launcher disconnects meanwhile, the mail in the reply is queued again. Errors are reported, and the reply
        then lets the agent stop.
        """
        service = await self._mail.opened()
        wait = self._mail.waiters.claim(token)
        if wait is None:
            return error_reply(NOT_FOUND, "unknown token; ask for a new one")
        if wait.is_over or service is None:
            return HookReply(OK, stdout=wait.stdout)
        try:
            agent = await self._mail.run(self._mail.agents.of_event, service, wait.event, wait.request)
            with self._mail.waiters.waiting_with_token(wait, agent.id) as waiter:
                return await self._wait(service, agent, wait, waiter, is_disconnected)
        except Exception as error:  # without a reply the launcher would ask again and again
            self._errors.report(f"an agent cannot wait for mail: {error}")
            return HookReply(OK, stdout=wait.stdout)

    async def _wait(
        self,
        service: MessageService,
        agent: Agent,
        wait: WaitToken,
        waiter: Waiter,
        is_disconnected: Callable[[], bool],
    ) -> HookReply:
        end = "mail" if wait.mode == "stop" else await waiter.wait(_WAKE_DELAY)
        if wait.mode == "wake" and not await self._mail.run(_should_wake, wait.event, wait.request):
            return HookReply(OK)
        while end in {"mail", "time"}:
            has_mail = service.queued_count(agent)
            if has_mail and self._mail.must_withhold(wait):
                end = await waiter.wait(_TURN_CHECK)
                continue
            reply = await self._deliver(service, agent, wait, is_disconnected) if has_mail else None
            if reply is not None:
                return reply
            if wait.seconds_left() <= 0:
                return await self._on_timeout(wait)
            end = await waiter.wait(wait.seconds_left())
        if end == "shutdown":
            return error_reply(UNAVAILABLE, "the daemon shuts down")
        return HookReply(OK, stdout=wait.stdout)

    async def _deliver(
        self, service: MessageService, agent: Agent, wait: WaitToken, is_disconnected: Callable[[], bool]
    ) -> HookReply | None:
        """Return the reply with queued mail; `None` if there is none to show, or it is held."""
        name = _showing(wait.request)
        showing = asyncio.ensure_future(self._mail.run(self._show, service, agent, wait, name))
        undo = partial(self._mail.undo_delivery, name)
        try:
            reply = await asyncio.shield(showing)
        except asyncio.CancelledError:
            showing.add_done_callback(lambda _: undo())
            raise
        if reply is not None and is_disconnected():
            undo()
        return reply

    def _show(self, service: MessageService, agent: Agent, wait: WaitToken, showing: str) -> HookReply | None:
        self._mail.retry_undo(service)
        event, request = wait.event, wait.request
        if not self._may_cause_turn(service, agent, self.settings(_context(event, request))):
            return None
        pid = reader_pid(request.id) if request.receipts else None
        name = "wake" if wait.mode == "wake" else event.event_name
        messages, left = self._mail.take(service, agent, name, showing, pid)
        if not messages:
            return None
        self.turns.add(agent.id, (message.thread for message in messages), time())
        reason = render.stop_reason(messages, left)
        self._record(wait, reason)
        if wait.mode == "wake":
            reply = HookReply(OK, 2, stderr=f"{reason}\n".encode(errors="replace"))
        else:
            reply = _blocked(event, request, reason, wait.stdout)
        return replace(reply, undo_id=showing, receipt=showing if request.receipts else "")

    async def _on_timeout(self, wait: WaitToken) -> HookReply:
        """Return the reply of a wait whose time is up.

        At a stop it is the heartbeat, which keeps the agent from stopping. A wake hook gets the token of a new wait.
        """
        if wait.mode == "wake":
            return self._issue_token("wake", wait.event, wait.request, MAX_WAKE_WAIT, b"")
        await self._mail.run(self._record, wait, render.HEARTBEAT)
        return _blocked(wait.event, wait.request, render.HEARTBEAT, wait.stdout)

    def _record(self, wait: WaitToken, reason: str) -> None:
        """Record in the journal that a wait ended with a block, and its reason. Errors are only reported."""
        record = CommandsRecord(
            id=wait.request.id,
            at=time(),
            verdict="blocked",
            reason=reason[:MAX_REASON_LENGTH],
            seconds=round(monotonic() - wait.issued_at, 6),
        )
        try:
            self._recorder.write(record)
        except Exception as error:  # a full disk
            self._errors.report(f"the end of a wait is not recorded: {error}")


def _should_wake(event: Event, request: HookRequest) -> bool:
    """Return whether mail wakes the agent of an event, by its policy."""
    return idle_settings(event, _policy(event, request), request.env).stay == "wake"


def _context(event: Event, request: HookRequest) -> EventContext:
    """Return the context of an event that another process has answered."""
    return EventContext(event, request, client_named(request.client), may_wait=True, policy=_policy(event, request))


def _policy(event: Event, request: HookRequest) -> PolicyContext:
    """Return the policy of an event that another process answers.

    So looking it up starts no session, and gives the user no notices.
    """
    caller = request.caller
    process = caller.pid, caller.start
    return find_event_policy(
        event, event.cwd or request.cwd, project=caller.project, process=process, is_answered=False
    )


def _showing(request: HookRequest) -> str:
    """Return the id for a showing after the event's own reply: a new id if there are receipts, else the event's."""
    return unique_showing(request.id) if request.receipts else request.id


def _blocked(event: Event, request: HookRequest, reason: str, stdout: bytes) -> HookReply:
    """Return the reply that keeps an agent from stopping, merged with `stdout`, which must be printed in any case."""
    answer = client_named(request.client).render(event, HookOutput.block(reason))
    text = answer.stdout
    if stdout:
        document: dict[str, Any] = {**_object(stdout), **_object(text)}
        text = encode_json(document) + b"\n"
    return HookReply(OK, answer.exit_code, text, answer.stderr.encode(errors="replace"), "blocked", reason)


def _object(text: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _has_running_subagents(event: Stop) -> bool:
    """Return whether subagents of the agent work in the background. The turn continues when they are done."""
    tasks = event.background_tasks or []
    return any(isinstance(task, dict) and task.get("type") == "subagent" for task in tasks)
