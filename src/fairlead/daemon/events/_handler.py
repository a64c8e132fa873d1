"""Handles one event, from the payload to the reply. Called in threads, and in the event loop for what is quick."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients import UnknownClientError, client_named, client_or_default, known_clients, loaded_client
from fairlead.daemon.events._extension import EventContext, MustWait, NotThisDaemon, Reaction
from fairlead.daemon.events._messages import OK, PLAN, SILENCE, HookReply
from fairlead.daemon.events._plans import plan_reply
from fairlead.decide import Decision, event_record, settle, verdict_of
from fairlead.errors import FairleadError
from fairlead.events import HookOutput
from fairlead.policy import NotCached, NotInterruptible

if TYPE_CHECKING:
    from fairlead.clients import Client
    from fairlead.daemon.events._extension import ExtensionRegistry
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._recorder import EventRecorder
    from fairlead.decide import PolicyContext
    from fairlead.events import Event

_MAX_INLINE_PAYLOAD = 16 * 1024
_MAX_INLINE_COMMAND = 2 * 1024
"""Bytes of a payload with a shell command, which takes longest to analyse."""
_MAX_INLINE_SECONDS = 0.002
_MAX_DURATIONS = 4096


class EventHandler:
    """Asks the extensions, merges their reactions, records the event and returns the reply."""

    def __init__(self, extensions: ExtensionRegistry, recorder: EventRecorder) -> None:
        self._extensions = extensions
        self._recorder = recorder
        list(known_clients())  # load them now, and not at the first event
        self._durations: dict[tuple[str, str], tuple[float, float]] = {}
        """Seconds that the last two events took, by the caller's folder and the event's name.

        One alone may be slow because the system has stopped this process. Events that wait for another process have
        no entry."""
        self._waiting: set[tuple[str, str]] = set()
        """Folders and names of events whose last one waited for another process."""

    def handle_inline(self, request: HookRequest, payload: bytes) -> HookReply | None:
        """Handle an event in the event loop if that is faster than starting a thread; else return `None`.

        That is so for a small payload, a cached policy, and a folder in which one of the last two events of this name
        was quick.
        """
        client = loaded_client(request.client)
        if client is None:
            return None
        size, last = len(payload), self._durations.get((request.cwd, request.event))
        if last is None or (last[0] > _MAX_INLINE_SECONDS < last[1]) or size > _MAX_INLINE_PAYLOAD:
            return None
        if size > _MAX_INLINE_COMMAND and client.shell_mark in payload:
            return None
        try:
            return self._handle(request, client, payload, inline=True)
        except (NotCached, NotInterruptible):
            return None
        except MustWait:
            self._note_waiting(request)
            return None

    def is_waiting(self, request: HookRequest) -> bool:
        """Return whether the last event like this one had to wait for another process."""
        return (request.cwd, request.event) in self._waiting

    def handle(
        self, request: HookRequest, payload: bytes, *, may_wait: bool = False, policy: PolicyContext | None = None
    ) -> HookReply:
        """Decide, record, reply. Raises `NotThisDaemon` if only the caller's process can decide the event.

        Without `may_wait`, raises `MustWait` if an extension has to wait for another process; `policy` is what was
        found by then.
        """
        try:
            client = client_named(request.client)
        except UnknownClientError:
            raise NotThisDaemon(f"unknown client: {request.client}") from None
        try:
            reply = self._handle(request, client, payload, inline=False, may_wait=may_wait, policy=policy)
        except MustWait:
            self._note_waiting(request)
            raise
        except NotInterruptible as slow:
            raise NotThisDaemon(str(slow)) from None
        return reply

    def _handle(  # noqa: PLR0913 - how it is handled
        self,
        request: HookRequest,
        client: Client,
        payload: bytes,
        *,
        inline: bool,
        may_wait: bool = False,
        policy: PolicyContext | None = None,
    ) -> HookReply:
        started = perf_counter()
        try:
            event = client.parse(payload, request.event)
        except FairleadError as error:
            return self._reject(request, client, payload, error, started)
        context = EventContext(event, request, client, inline=inline, payload=payload, may_wait=may_wait, policy=policy)
        try:
            reaction = self._react(context)
        except MustWait as wait:
            wait.policy = context.policy
            raise
        reply = SILENCE if reaction is None else _reply(context, reaction, payload)
        if not may_wait:
            self._note_duration(request, perf_counter() - started)
        elif not context.has_waited:
            self._waiting.discard((request.cwd, request.event))
        steps = len(reaction.plan.steps) if reaction is not None and reaction.plan is not None else 0
        try:
            hook = reaction.decided_by if reaction is not None else ""
            self._record(request, payload, event, reply, steps, started, hook, inline=inline)
        except (FairleadError, OSError):
            self._extensions.undo(request.id)
            raise
        return reply

    def _note_waiting(self, request: HookRequest) -> None:
        if len(self._waiting) >= _MAX_DURATIONS:
            self._waiting.clear()
        self._waiting.add((request.cwd, request.event))
        self._durations.pop((request.cwd, request.event), None)

    def _note_duration(self, request: HookRequest, seconds: float) -> None:
        key = request.cwd, request.event
        last = self._durations.get(key)
        if last is None and len(self._durations) >= _MAX_DURATIONS:
            self._durations.clear()
        self._durations[key] = seconds if last is None else last[1], seconds

    def handle_as_json(self, request: HookRequest, payload: bytes) -> dict[str, Any]:
        """Handle an event of a client that calls over HTTP, without a launcher. Raises nothing: an error denies.

        No command can be run, for there is no process of the caller: a gate that has commands denies.
        """
        started, client = perf_counter(), client_or_default(request.client)
        event: Event | None = None
        hook = ""
        try:
            event = client.parse(payload, request.event)
            context = EventContext(event, request, client, inline=False, payload=payload, may_wait=True)
            reaction = self._react(context) or Reaction()
            hook = reaction.decided_by
            output = _output_without_caller(event, reaction)
        except Exception as error:  # noqa: BLE001 - the client takes an error for consent
            output = HookOutput.deny(f"fairlead cannot decide: {error}")
        document = client.to_json(event, output) if event else client.refuse_json(request.event, output.reason or "")
        reply = HookReply(OK, verdict=verdict_of(output), reason=output.reason or "")
        try:
            self._record(request, payload, event, reply, 0, started, hook)
        except (FairleadError, OSError) as error:
            document = client.refuse_json(request.event, f"fairlead cannot record the event: {error}")
        return document

    def _react(self, context: EventContext) -> Reaction | None:
        """Ask the extensions in their order. Once one has blocked the event, no contributor is asked."""
        subscribers = self._extensions.subscribers(context.event.event_name)
        if context.inline:
            for extension in subscribers.may_block:
                if extension.may_block(context):
                    raise NotCached
        merged: Reaction | None = None
        for extension in subscribers.before_reply:
            if merged is not None and merged.output.blocked and extension.kind == "contributor":
                continue
            reaction = extension.before_reply(context)
            if reaction is not None:
                merged = reaction if merged is None else merged.merge(reaction)
                context.is_blocked = merged.output.blocked
        return merged

    def _reject(
        self, request: HookRequest, client: Client, payload: bytes, error: FairleadError, started: float
    ) -> HookReply:
        answer = client.refuse(request.event, payload, f"fairlead: {error}")
        stderr = f"{answer.stderr}\n".encode(errors="replace") if answer.stderr else b""
        reply = HookReply(OK, answer.exit_code, answer.stdout, stderr, verdict="failed", reason=str(error))
        self._record(request, payload, None, reply, 0, started)
        return reply

    def _record(  # noqa: PLR0913, PLR0917 - one parameter a field
        self,
        request: HookRequest,
        payload: bytes,
        event: Event | None,
        reply: HookReply,
        steps: int,
        started: float,
        hook: str = "",
        *,
        inline: bool = False,
    ) -> None:
        record = event_record(
            request.id,
            request.event,
            payload,
            event,
            client=request.client,
            route="daemon",
            verdict=reply.verdict,
            exit_code=reply.exit,
            reason=reply.reason,
            seconds=perf_counter() - started,
            steps=steps,
            hook=hook,
            caller=request.caller,
        )
        if inline:
            self._recorder.write_later(record, event)
        else:
            self._recorder.write(record, event)


def _reply(context: EventContext, reaction: Reaction, payload: bytes) -> HookReply:
    """Return the answer if nothing is left to be done; else leave the rest to the caller."""
    event, request = context.event, context.request
    decision = Decision(
        output=reaction.output,
        log=reaction.log,
        plan=reaction.plan,
        notifications=reaction.notifications,
        waits=reaction.start_wait is not None,
        undoable=reaction.undoable,
    )
    undo_id = request.id if reaction.undoable else ""
    receipt = undo_id if request.receipts else ""
    if reaction.plan is not None and reaction.plan.steps:
        return plan_reply(context, decision, payload, undo_id)
    settled = settle(event, decision)
    verdict, reason = verdict_of(settled.output), settled.output.reason or ""
    if settled.notes:
        document = msgspec.json.encode(decision)
        return HookReply(PLAN, stdout=document, verdict=verdict, reason=reason, undo_id=undo_id, receipt=receipt)
    answer = context.client.render(event, settled.output)
    lines = [*settled.log, answer.stderr] if answer.stderr else settled.log
    stderr = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    reply = HookReply(OK, answer.exit_code, answer.stdout, stderr, verdict, reason, undo_id, receipt)
    if reaction.start_wait is not None and verdict != "blocked":
        return reaction.start_wait(reply)
    return reply


def _output_without_caller(event: Event, reaction: Reaction) -> HookOutput:
    """Return the output of a reaction whose commands cannot be run."""
    if reaction.plan is not None and reaction.plan.steps:
        text = "this policy has commands, which an http hook cannot run: fairlead hooks install"
        return reaction.output.merge(HookOutput.deny(text) if event.can_block else HookOutput(system_message=text))
    return settle(event, Decision(output=reaction.output, log=reaction.log, plan=reaction.plan)).output
