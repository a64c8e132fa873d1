"""Sends plans to the caller's process, which runs them, and settles the reports of their results.

The daemon runs no command. A compiled launcher runs the steps itself, and reports the results together with the
decision and the payload: so a daemon that was started meanwhile can settle them too, and nothing is kept in between.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_named
from fairlead.daemon.events._messages import OK, PLAN, HookReply
from fairlead.decide import begin_unchecked_stop, settle, verdict_of, would_block
from fairlead.errors import BLOCKED, NeedsThread
from fairlead.execute import FileChanges, commands_record, encode_steps, read_report
from fairlead.process import CANCELLED, CancellationToken

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._recorder import EventRecorder
    from fairlead.decide import Decision, Settled
    from fairlead.execute import Report
    from fairlead.policy import Plan, Step

    Resume = Callable[[bytes, HookRequest, bytes], HookReply]
    """Takes the payload, the request, and what the hook must print in any case. Returns the reply that makes the hook
    wait after its commands."""


def plan_reply(context: EventContext, decision: Decision, payload: bytes, undo_id: str) -> HookReply:
    """Return the reply that makes the caller run a plan. `undo_id` becomes `HookReply.undo_id`.

    Raises `NeedsThread` without `may_wait` if a step for the launcher has a `when` condition, because git has to be
    asked. If Python has to run a blocking plan of `Stop`, and `maxBlocks` such plans in a row were never settled, the
    reply lets the agent stop instead.
    """
    plan, request = decision.plan, context.request
    document = msgspec.json.encode(decision)
    is_blocking = plan is not None and would_block(plan)
    steps = None
    if plan is not None and request.runs_steps:
        is_wanted = None
        if any(step.when for step in plan.steps):
            if not context.may_wait:
                raise NeedsThread
            is_wanted = _condition()
        steps = encode_steps(plan, payload, context.client.command_payload(context.event, payload), is_wanted)
    if plan is not None and is_blocking and not steps and plan.event_name == "Stop":
        output = begin_unchecked_stop(plan)
        if output is not None:
            answer = context.client.render(context.event, decision.output.merge(output))
            return HookReply(OK, answer.exit_code, answer.stdout, verdict="said", undo_id=undo_id)
    verdict, steps = verdict_of(decision.output), steps or b""
    code = BLOCKED if is_blocking else 0
    receipt = undo_id if request.receipts else ""
    return HookReply(
        PLAN, code, steps + document, verdict=verdict, undo_id=undo_id, receipt=receipt, steps_size=len(steps)
    )


def _condition() -> Callable[[Step], bool]:
    """Return a function that returns whether a step has no `when`, or its `when` matches a changed file."""
    changes = FileChanges(inf, CancellationToken())
    return lambda step: not step.when or changes.match(step.folder, step.when, loose=step.loose_when)


class PlanSettler:
    """Turns the report of a launcher into its answer, and records it."""

    def __init__(self, recorder: EventRecorder, errors: ErrorLog, resume: Resume) -> None:
        self._recorder = recorder
        self._errors = errors
        self._resume = resume

    def settle_in_loop(self, request: HookRequest, data: bytes) -> HookReply | None:
        """Settle a report in the event loop; return `None` if that takes a thread (`settle`).

        It takes one if the user has to be notified or the hook has to wait. Raises `FairleadError` like `settle`.
        """
        report = read_report(data)
        is_slow = report.decision.waits or report.decision.notifications is not None
        return None if is_slow else self._settle(request, report)

    def settle(self, request: HookRequest, data: bytes) -> HookReply:
        """Settle a report. Raises `FairleadError` if it cannot be read; the caller's process then settles the plan."""
        return self._settle(request, read_report(data))

    def _settle(self, request: HookRequest, report: Report) -> HookReply:
        decision, client = report.decision, request.known_client or client_named(request.client)
        event = client.parse(report.payload, request.event)
        cancelled = CANCELLED if report.cancelled else None
        settled = settle(event, decision, report.results, cancelled=cancelled)
        answer = client.render(event, settled.output)
        self._notify(settled)
        self._recorder.write(commands_record(request.id, settled, answer.exit_code, _seconds(decision.plan, settled)))
        if decision.waits and settled.verdict != "blocked":
            return self._resume(report.payload, request, answer.stdout)
        lines = [*settled.log, answer.stderr] if answer.stderr else settled.log
        stderr = "".join(f"{line}\n" for line in lines).encode(errors="replace")
        return HookReply(OK, answer.exit_code, answer.stdout, stderr, settled.verdict, settled.reason)

    def _notify(self, settled: Settled) -> None:
        if not settled.notes:
            return
        from fairlead.notify import send

        for note in settled.notes:
            try:
                send(note, settled.channels)
            except OSError as error:
                self._errors.report(f"a notification could not be sent: {error}")


def _seconds(plan: Plan | None, settled: Settled) -> float:
    """Return how long the steps took, one after the other or in parallel."""
    times = [result.seconds for result in settled.results]
    return max(times, default=0.0) if plan is not None and plan.parallel else sum(times)
