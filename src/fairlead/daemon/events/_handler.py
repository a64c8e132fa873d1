"""Decides one event, from the payload to what the launcher prints. Sync: it is called in worker threads."""

from __future__ import annotations

import os
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from fairlead.clients import CLIENTS
from fairlead.clients.claude._render import to_json
from fairlead.decide import GUARDED_EVENTS, Decision, decide, event_record, find_policy, post_guards, read_event
from fairlead.errors import FairleadError, failure_exit_code
from fairlead.events import HookOutput
from fairlead.execute import settle, verdict_of
from fairlead.hooks import HookContext, HookManager
from fairlead.policy import NotCached

if TYPE_CHECKING:
    from fairlead.clients.claude._render import Answer
    from fairlead.daemon.events._request import HookRequest
    from fairlead.decide import PolicyContext
    from fairlead.events import Event
    from fairlead.journal import EventRecord, Verdict

_MOST_MANAGERS = 256
_MOST_PACES = 4096
_SMALL = 16 * 1024
_SMALL_COMMAND = 2 * 1024
"""Bytes of a payload with a shell command: to look through one takes longer than through anything else."""
_QUICK = 0.002
"""Seconds that the loop may be kept."""
_NO_HOOKS = HookManager()


class RecordSink(Protocol):
    """Writes down what happened, before it is answered."""

    def __call__(self, record: EventRecord, event: Event | None) -> object:
        """Keep the record of an event. Raises `FairleadError` or `OSError` if it cannot."""


class HookReply(msgspec.Struct, frozen=True):
    """What the launcher is told: to print this (200), to run this (202), or to wait for this (303)."""

    status: int
    exit: int = 0
    stdout: bytes = b""
    """In a 202, the decision as JSON."""
    stderr: bytes = b""
    verdict: Verdict = "none"
    reason: str = ""
    shows: str = ""
    """The event's id, if mail is shown in this answer."""
    token: str = ""
    """In a 303, what to ask for."""
    milliseconds: int = 0
    """And how long that may take."""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Give the head of the answer in HTTP."""
        told = [
            (b"fairlead-exit", b"%d" % self.exit),
            (b"fairlead-stdout", b"%d" % len(self.stdout)),
            (b"content-length", b"%d" % (len(self.stdout) + len(self.stderr))),
        ]
        if self.token:
            told.append((b"location", b"/v1/waits/%b" % self.token.encode()))
            told.append((b"fairlead-wait", b"%d" % self.milliseconds))
        return told


class EventExtension(Protocol):
    """Has something to say at some events: the mail."""

    def is_quiet(self, event: Event, ask: HookRequest) -> bool:
        """Tell whether there is nothing to say or to note."""

    def speak(self, event: Event, ask: HookRequest, decision: Decision) -> Decision:
        """Add what is to be said to what was decided."""

    def answered(self, event: Event, ask: HookRequest, decision: Decision, reply: HookReply) -> HookReply:
        """See to what follows from an answer."""

    def take_back(self, event_id: str) -> None:
        """Hear that an answer could not be given."""


class NotThisDaemon(FairleadError):
    """An event that only the caller's own process can decide."""


class EventHandler:
    """Answers events. Holds the guards of the policies in use, compiled."""

    def __init__(self, keep: RecordSink, postman: EventExtension) -> None:
        self._keep = keep
        self._postman = postman
        self._managers: dict[tuple[object, ...], tuple[PolicyContext, HookManager]] = {}
        self._lock = Lock()
        self._paces: dict[tuple[str, str], float] = {}
        """How long the last event took, by the caller's folder and the event."""

    def answer_quickly(self, ask: HookRequest, payload: bytes) -> HookReply | None:
        """Decide at once, if that takes no longer than a thread would take to begin; else give `None`.

        So it is for a small payload, a policy that has been read, and a folder in which the last event like it was
        quick. A disk that hangs, a policy that is new, a long command: these are for a thread.
        """
        small = _SMALL_COMMAND if b'"Bash"' in payload else _SMALL
        if len(payload) > small or self._paces.get((ask.cwd, ask.event), 1.0) > _QUICK:
            return None
        try:
            return self.answer(ask, payload, cached_only=True)
        except NotCached:
            return None

    def answer(self, ask: HookRequest, payload: bytes, *, cached_only: bool = False) -> HookReply:
        """Decide, write down, answer. Raises `NotThisDaemon` if this is not the process to ask."""
        begun = perf_counter()
        if ask.client not in CLIENTS:
            raise NotThisDaemon(f"no such client: {ask.client}")
        try:
            event = read_event(payload, ask.event)
        except FairleadError as error:
            return self._refused(ask, payload, error, begun)
        if cached_only and not self._postman.is_quiet(event, ask):
            raise NotCached
        decision = self._decide(event, ask, cached_only=cached_only)
        if not cached_only:
            decision = self._postman.speak(event, ask, decision)
        reply = self._postman.answered(event, ask, decision, _reply(event, payload, decision, ask))
        if len(self._paces) >= _MOST_PACES:
            self._paces.clear()
        self._paces[ask.cwd, ask.event] = perf_counter() - begun
        try:
            self._write_down(ask, payload, event, reply, len(decision.plan.steps) if decision.plan else 0, begun)
        except (FairleadError, OSError):
            self._postman.take_back(ask.id)
            raise
        return reply

    def answer_in_json(self, ask: HookRequest, payload: bytes) -> dict[str, Any]:
        """Decide for a client that has no launcher. Raises nothing: what goes wrong denies on a gate."""
        begun = perf_counter()
        event: Event | None = None
        try:
            event = read_event(payload, ask.event)
            decision = self._postman.speak(event, ask, self._decide(event, ask))
            output = _without_caller(event, payload, decision)
        except Exception as error:  # noqa: BLE001 - the client takes an error for consent
            output = HookOutput.deny(f"fairlead cannot decide: {error}")
        document = to_json(event, output) if event else _denied(ask, output)
        reply = HookReply(200, verdict=verdict_of(output), reason=output.reason or "")
        try:
            self._write_down(ask, payload, event, reply, 0, begun)
        except (FairleadError, OSError) as error:
            document = _denied(ask, HookOutput.deny(f"fairlead cannot write the event down: {error}"))
        return document

    def _decide(self, event: Event, ask: HookRequest, *, cached_only: bool = False) -> Decision:
        cwd = event.cwd or ask.cwd
        if not os.path.isabs(cwd):
            raise NotThisDaemon("a folder relative to the caller's")
        policing = find_policy(cwd, cached_only=cached_only)
        manager = self._manager(policing, ask) if event.event_name in GUARDED_EVENTS else _NO_HOOKS
        return decide(event, policing, manager, HookContext(event.session_id, cwd=event.cwd))

    def _manager(self, policing: PolicyContext, ask: HookRequest) -> HookManager:
        """Give the guards of these files. A file that has changed is another layer, and so has other guards."""
        settings = ask.env.get("CLAUDE_CONFIG_DIR", "")
        settings = settings and os.path.join(ask.cwd, settings)
        key = (settings, *map(id, policing.layers))
        held = self._managers.get(key)
        if held is not None:
            return held[1]
        manager = HookManager()
        post_guards(manager, policing, {**os.environ, "CLAUDE_CONFIG_DIR": settings})
        with self._lock:
            if len(self._managers) >= _MOST_MANAGERS:
                self._managers.clear()
            self._managers[key] = policing, manager  # the layers are held too, so that no other gets their ids
        return manager

    def _refused(self, ask: HookRequest, payload: bytes, error: FairleadError, begun: float) -> HookReply:
        exit_code = failure_exit_code(ask.event, payload=payload)
        stderr = f"fairlead: {error}\n".encode(errors="replace")
        reply = HookReply(200, exit_code, stderr=stderr, verdict="failed", reason=str(error))
        self._write_down(ask, payload, None, reply, 0, begun)
        return reply

    def _write_down(  # noqa: PLR0913, PLR0917 - all that is known of it
        self, ask: HookRequest, payload: bytes, event: Event | None, reply: HookReply, steps: int, begun: float
    ) -> None:
        self._keep(
            event_record(
                ask.id,
                ask.event,
                payload,
                event,
                client=ask.client,
                road="daemon",
                verdict=reply.verdict,
                exit_code=reply.exit,
                reason=reply.reason,
                seconds=perf_counter() - begun,
                steps=steps,
                caller=ask.caller,
            ),
            event,
        )


def _without_caller(event: Event, payload: bytes, decision: Decision) -> HookOutput:
    """Settle what can be settled without a process to act in."""
    if decision.plan is not None and decision.plan.steps:
        text = "this policy has commands, which an http hook cannot run: fairlead hooks install"
        return decision.output.merge(HookOutput.deny(text) if event.can_block else HookOutput(system_message=text))
    return settle(event, payload, decision).output


def _denied(ask: HookRequest, output: HookOutput) -> dict[str, Any]:
    """Say no to a payload that could not be read, where that can be said."""
    if ask.event != "PreToolUse":
        return {"systemMessage": output.reason}
    verdict = {"permissionDecision": "deny", "permissionDecisionReason": output.reason}
    return {"hookSpecificOutput": {"hookEventName": ask.event, **verdict}}


_NOTHING = HookOutput()
_SILENCE = HookReply(200)


def _reply(event: Event, payload: bytes, decision: Decision, ask: HookRequest) -> HookReply:
    """Answer at once if nothing is left to be done; else hand the rest to the caller."""
    if decision.plan is None and decision.notices is None and not decision.log and decision.output == _NOTHING:
        return _SILENCE  # which is what nearly every event gets
    if decision.plan is not None and decision.plan.steps:
        return HookReply(202, stdout=msgspec.json.encode(decision), verdict=verdict_of(decision.output))
    settled = settle(event, payload, decision)
    verdict, reason = verdict_of(settled.output), settled.output.reason or ""
    if settled.notes:
        return HookReply(202, stdout=msgspec.json.encode(decision), verdict=verdict, reason=reason)
    answer: Answer = CLIENTS[ask.client].render(event, settled.output)
    lines = [*settled.log, answer.stderr] if answer.stderr else settled.log
    stderr = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    return HookReply(200, answer.exit_code, answer.stdout, stderr, verdict, reason)
