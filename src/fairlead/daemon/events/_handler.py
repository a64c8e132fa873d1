"""Handles one event, from the payload to the reply. Runs in threads, or in the event loop for events that are quick."""

from __future__ import annotations

from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients import UnknownClientError, client_named, client_or_default, known_clients
from fairlead.daemon.events._extension import EventContext, NeedsLongWait
from fairlead.daemon.events._messages import EMPTY_REPLY, OK, PLAN, HookReply
from fairlead.daemon.events._plans import plan_reply
from fairlead.decide import NO_DECISION, settle, verdict_of
from fairlead.errors import FairleadError, NeedsCaller, NeedsThread
from fairlead.events import NO_OPINION, HookOutput
from fairlead.journal import event_record

if TYPE_CHECKING:
    from fairlead.clients import Client
    from fairlead.daemon.events._extension import ExtensionRegistry
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._recorder import EventRecorder
    from fairlead.decide import Decision, HookCause, PolicyContext
    from fairlead.events import Event

    _EventKey = tuple[str, str]
    """The caller's folder and the event's name."""

_MAX_LOOP_PAYLOAD = 16 * 1024
_MAX_LOOP_COMMAND = 2 * 1024
"""The maximum bytes of a payload with a shell command in the event loop: shell commands take longest to analyse."""
_MAX_LOOP_SECONDS = 0.002
_MAX_THREAD_SECONDS = 0.25
"""Seconds of an event in a thread after which the next one is not tried in the event loop. Threads wait for others."""
_MIN_PAUSE = 1.0
_MAX_PAUSE = 60.0
"""The longest pause in seconds until slow events are tried in the event loop again. Each failure doubles the pause."""
_NEVER = 0.0, 0.0
_MAX_EVENT_KEYS = 4096
_MAX_LEFT = 256


class EventHandler:
    """Asks the extensions, merges their decisions, records the event and returns the reply."""

    def __init__(self, extensions: ExtensionRegistry, recorder: EventRecorder) -> None:
        self._extensions = extensions
        self._recorder = recorder
        list(known_clients())  # load them now, and not at the first event
        self._durations = _Durations()
        self._long_waits: set[_EventKey] = set()
        """Folders and event names whose last event waited for the user's own code."""
        self._left: dict[int, EventContext] = {}
        """Events that the event loop has parsed and left to a thread, by the identity of the request."""

    def handle_in_loop(self, request: HookRequest, payload: bytes) -> HookReply | None:
        """Handle an event in the event loop if that is faster than starting a thread; else return `None`.

        It is faster for a small payload, a cached policy, and a folder in which events of this name were quick. Raises
        the same errors as `handle`, except `NeedsLongWait`.
        """
        client, size, key = request.known_client, len(payload), (request.cwd, request.event)
        if client is None or size > _MAX_LOOP_PAYLOAD or not self._durations.are_quick(key):
            return None
        if size > _MAX_LOOP_COMMAND and client.shell_mark in payload:
            return None
        delay = self._durations.delay_before(key)
        started = perf_counter()
        try:
            reply = self._handle(request, client, payload, started, may_wait=False)
        except NeedsThread:
            return None
        except NeedsLongWait:
            self._note_long_wait(request)
            return None
        if delay is not None or perf_counter() - started > _MAX_LOOP_SECONDS:
            self._durations.note(key, perf_counter() - started, delay)
        return reply

    def waits_long(self, request: HookRequest) -> bool:
        """Return whether the last event like this one had to wait for the user's own code."""
        return (request.cwd, request.event) in self._long_waits

    def handle(
        self, request: HookRequest, payload: bytes, *, may_wait_long: bool = False, policy: PolicyContext | None = None
    ) -> HookReply:
        """Decide and record an event, and return the reply.

        Raises `NeedsCaller` if only the caller's process can decide the event, and `FairleadError` or `OSError` if it
        cannot be decided or recorded. Without `may_wait_long`, raises `NeedsLongWait` if an extension has to wait for
        the user's own code; the second call then gets the `policy` of that error.
        """
        try:
            client = request.known_client or client_named(request.client)
        except UnknownClientError:
            raise NeedsCaller(f"unknown client: {request.client}") from None
        try:
            return self._handle(
                request, client, payload, perf_counter(), may_wait=True, may_wait_long=may_wait_long, policy=policy
            )
        except NeedsLongWait:
            self._note_long_wait(request)
            raise

    def _handle(
        self,
        request: HookRequest,
        client: Client,
        payload: bytes,
        started: float,
        *,
        may_wait: bool,
        may_wait_long: bool = False,
        policy: PolicyContext | None = None,
    ) -> HookReply:
        left = self._left.pop(id(request), None)
        try:
            event = client.parse(payload, request.event) if left is None else left.event
        except FairleadError as error:
            return self._reject(request, client, payload, error, started)
        policy = left.policy if left is not None and policy is None else policy
        context = EventContext(
            event, request, client, may_wait=may_wait, payload=payload, may_wait_long=may_wait_long, policy=policy
        )
        try:
            decision = self._decide(context)
        except NeedsLongWait as wait:
            wait.policy = context.policy
            raise
        except NeedsThread:
            self._leave_to_thread(context)
            raise
        reply = EMPTY_REPLY if decision is NO_DECISION else _reply(context, decision, payload)
        if may_wait_long and not context.has_waited_long:
            self._long_waits.discard((request.cwd, request.event))
        elif may_wait and not may_wait_long:
            self._durations.note_in_thread((request.cwd, request.event), perf_counter() - started)
        steps = 0 if decision.plan is None else len(decision.plan.steps)
        try:
            self._record(
                request, payload, event, reply, started, cause=context.hook_cause, steps=steps, may_wait=may_wait
            )
        except (FairleadError, OSError):
            self._extensions.undo(request.id)
            raise
        return reply

    def _note_long_wait(self, request: HookRequest) -> None:
        key = request.cwd, request.event
        if len(self._long_waits) >= _MAX_EVENT_KEYS:
            self._long_waits.clear()
        self._long_waits.add(key)
        self._durations.forget(key)

    def handle_as_json(self, request: HookRequest, payload: bytes) -> dict[str, Any]:
        """Handle an event of a client that calls over HTTP, without a launcher. Raises nothing: an error denies.

        No command can be run, because there is no process of the caller. So commands in the decision deny an
        event that can be blocked.
        """
        started, client = perf_counter(), client_or_default(request.client)
        event: Event | None = None
        cause: HookCause | None = None
        try:
            event = client.parse(payload, request.event)
            context = EventContext(event, request, client, may_wait=True, payload=payload, may_wait_long=True)
            decision = self._decide(context)
            cause = context.hook_cause
            output = _output_without_caller(event, decision)
        except Exception as error:  # the client takes an error for consent
            output = HookOutput.deny(f"fairlead cannot decide: {error}")
        document = client.to_json(event, output) if event else client.refuse_json(request.event, output.reason or "")
        reply = HookReply(OK, verdict=verdict_of(output), reason=output.reason or "")
        try:
            self._record(request, payload, event, reply, started, cause=cause)
        except (FairleadError, OSError) as error:
            document = client.refuse_json(request.event, f"fairlead cannot record the event: {error}")
        return document

    def _decide(self, context: EventContext) -> Decision:
        """Ask the extensions in their order. Once one has blocked the event, no contributor is asked."""
        kind, needing, gates, contributors = self._extensions.subscribers(context.event, context.client)
        context.tool_kind = kind
        if not context.may_wait:
            for needs_thread in needing:
                if needs_thread(context):
                    raise NeedsThread
        merged = NO_DECISION
        for before_reply in gates:
            decision = before_reply(context)
            if decision is not None and decision is not NO_DECISION:
                merged = decision if merged is NO_DECISION else merged.merge(decision)
                context.is_blocked = merged.output is not NO_OPINION and merged.output.blocked
        for before_reply in contributors:
            if context.is_blocked:
                break
            decision = before_reply(context)
            if decision is not None:
                merged = decision if merged is NO_DECISION else merged.merge(decision)
                context.is_blocked = merged.output.blocked
        return merged

    def _leave_to_thread(self, context: EventContext) -> None:
        """Keep an event and its policy for the thread that will handle it."""
        if len(self._left) >= _MAX_LEFT:
            self._left.clear()
        self._left[id(context.request)] = context

    def _reject(
        self, request: HookRequest, client: Client, payload: bytes, error: FairleadError, started: float
    ) -> HookReply:
        answer = client.refuse(request.event, payload, f"fairlead: {error}")
        stderr = f"{answer.stderr}\n".encode(errors="replace") if answer.stderr else b""
        reply = HookReply(OK, answer.exit_code, answer.stdout, stderr, verdict="failed", reason=str(error))
        self._record(request, payload, None, reply, started)
        return reply

    def _record(
        self,
        request: HookRequest,
        payload: bytes,
        event: Event | None,
        reply: HookReply,
        started: float,
        *,
        cause: HookCause | None = None,
        steps: int = 0,
        may_wait: bool = True,
    ) -> None:
        verdict, reason, hook = reply.verdict, reply.reason, ""
        if cause is not None and event is not None:
            verdict, reason, hook = cause.recorded(event, verdict, reason)
        record = event_record(
            request.id,
            request.event,
            payload,
            event,
            client=request.client,
            route="daemon",
            verdict=verdict,
            exit_code=reply.exit,
            reason=reason,
            seconds=perf_counter() - started,
            steps=steps,
            hook=hook,
            caller=request.caller,
            is_valid=event is not None and request.is_read_strictly,
        )
        if may_wait:
            self._recorder.write(record, event)
        else:
            self._recorder.write_later(record, event)


class _Durations:
    """Decides, by their durations, which events are handled in the event loop.

    After two slow events in a row, or a very slow event in a thread, events with the same key are handled in threads
    for a while.
    """

    def __init__(self) -> None:
        self._known: set[_EventKey] = set()
        """Folders and event names of which an event was handled in a thread before: the first event reads files."""
        self._slow: dict[_EventKey, tuple[float, float]] = {}
        """Folders and event names whose last event was slow → the time until which such events are handled in threads,
        and the length of that pause in seconds, which is 0 after the first slow event."""

    def are_quick(self, key: _EventKey) -> bool:
        """Return whether an event may be handled in the event loop."""
        return key in self._known and not (self._slow and self._slow.get(key, _NEVER)[0] > monotonic())

    def delay_before(self, key: _EventKey) -> float | None:
        """Return `_run_delay()` if the last event with this key was slow; else `None`. `note` takes the result."""
        return _run_delay() if self._slow and key in self._slow else None

    def note(self, key: _EventKey, seconds: float, delay_before: float | None) -> None:
        """Note how long an event took in the event loop. The time in which other programs ran does not count.

        `delay_before` is what `delay_before()` returned before the event; `None` if the last event was not slow.
        """
        if delay_before is not None:
            seconds -= _run_delay() - delay_before
        if seconds <= _MAX_LOOP_SECONDS:
            self._slow.pop(key, None)
        else:
            self._pause(key, is_first=delay_before is None)

    def note_in_thread(self, key: _EventKey, seconds: float) -> None:
        """Note how long an event took in a thread."""
        if key not in self._known:
            if len(self._known) >= _MAX_EVENT_KEYS:
                self._known.clear()
            self._known.add(key)
        if seconds > _MAX_THREAD_SECONDS:
            self._pause(key, is_first=False)

    def _pause(self, key: _EventKey, *, is_first: bool) -> None:
        if len(self._slow) >= _MAX_EVENT_KEYS:
            self._slow.clear()
        pause = 0.0 if is_first else min(max(_MIN_PAUSE, 2 * self._slow.get(key, _NEVER)[1]), _MAX_PAUSE)
        self._slow[key] = monotonic() + pause, pause

    def forget(self, key: _EventKey) -> None:
        """Have the next event with this key handled in a thread, as if it were the first."""
        self._known.discard(key)


def _run_delay() -> float:
    """Return for how many seconds this thread was ready to run and was not scheduled; 0 if that is not known."""
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _reply(context: EventContext, decision: Decision, payload: bytes) -> HookReply:
    """Return the reply with the client's answer; or with a plan if the caller has to run commands or send notes.

    If an extension has set `start_wait` and the event is not blocked, the reply makes the launcher wait.
    """
    event, request = context.event, context.request
    undo_id = request.id if decision.undoable else ""
    if decision.plan is not None and decision.plan.steps:
        return plan_reply(context, decision, payload, undo_id)
    receipt = undo_id if request.receipts else ""
    settled = settle(event, decision)
    verdict, reason = settled.verdict, settled.reason
    if settled.notes:
        document = msgspec.json.encode(decision)
        return HookReply(PLAN, stdout=document, verdict=verdict, reason=reason, undo_id=undo_id, receipt=receipt)
    answer = context.client.render(event, settled.output)
    lines = [*settled.log, answer.stderr] if answer.stderr else settled.log
    stderr = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    reply = HookReply(OK, answer.exit_code, answer.stdout, stderr, verdict, reason, undo_id, receipt)
    if context.start_wait is not None and verdict != "blocked":
        return context.start_wait(reply)
    return reply


def _output_without_caller(event: Event, decision: Decision) -> HookOutput:
    """Return the output for a caller that cannot run commands.

    A decision with commands denies an event that can be blocked; at any other event the user gets a message.
    """
    if decision.plan is not None and decision.plan.steps:
        text = "this policy has commands, which an http hook cannot run: fairlead hooks install"
        return decision.output.merge(HookOutput.deny(text) if event.can_block else HookOutput(system_message=text))
    return settle(event, decision).output
