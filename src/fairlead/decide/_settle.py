"""Computes the final output, log and notifications from a decision and the results of its commands. Runs nothing."""

from __future__ import annotations

import os

from fairlead.decide._results import StepResult, block_reason, blocks, failure_log, shown_streams
from fairlead.events import HookOutput
from fairlead.structs import LIGHT, Struct, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.decide._decision import Decision
    from fairlead.events import Event
    from fairlead.notify import Note, Status
    from fairlead.policy import Notifications, Plan

if TYPE_CHECKING or not LIGHT:
    from typing import Literal

    Verdict = Literal["none", "said", "asked", "allowed", "blocked", "failed"]
    """What was answered to the client, as the journal records it."""


class Settled(Struct, frozen=True, kw_only=True):
    """A decision after its commands have run."""

    output: HookOutput
    verdict: Verdict
    """The output in one word, as the journal records it."""
    reason: str
    """Why the output blocks, asks or allows; "" if there is nothing to say."""
    log: tuple[str, ...] = ()
    """Lines for stderr."""
    notes: tuple[Note, ...] = ()
    """Notifications for the user."""
    channels: tuple[str, ...] = ()
    results: tuple[StepResult, ...] = ()


class Outcome(Struct, frozen=True, kw_only=True):
    """What the results of a plan's commands mean for the event."""

    output: HookOutput
    log: tuple[str, ...] = ()
    """Lines for stderr."""


def settle(
    event: Event, decision: Decision, results: tuple[StepResult, ...] = (), *, cancelled: str | None = None
) -> Settled:
    """Merge the results of a decision's commands into its output.

    `cancelled` is the reason if the commands were ended early. A gate then denies.
    """
    output, log = decision.output, tuple(f"fairlead: {line}" for line in decision.log)
    status: Status = "success"
    if cancelled is not None:
        output = output.merge(HookOutput.deny(cancelled) if event.can_block else HookOutput.allow())
        status = "failure"
    elif decision.plan is not None and not output.blocked:
        outcome = plan_outcome(decision.plan, results)
        output, log = output.merge(outcome.output), (*log, *outcome.log)
        status = "failure" if any(result.failed for result in results) else "success"
    notifications = decision.notifications
    if notifications is not None and event.event_name == "Stop" and output.system_message and status == "failure":
        notifications = replace(notifications, show_errors=True)  # a check was given up: the user has to know
    verdict = verdict_of(output)
    return Settled(
        output=output,
        verdict=verdict,
        reason="" if verdict == "none" else output.reason or "",
        log=log,
        notes=_notes(event, output, status, notifications) if notifications else (),
        channels=tuple(notifications.channels) if notifications else (),
        results=results,
    )


def verdict_of(output: HookOutput) -> Verdict:
    """Return the verdict of an output, as the journal records it."""
    if output.blocked:
        return "blocked"
    if output.permission in {"ask", "defer"}:
        return "asked"
    if output.permission == "allow":
        return "allowed"
    return "none" if output == HookOutput() else "said"


def plan_outcome(plan: Plan, results: tuple[StepResult, ...]) -> Outcome:
    """Return what the results of a plan's commands mean for the event.

    If several commands that ran in parallel block, the first of them in the plan decides. The client reads the reason
    of a block from stderr, so nothing is logged there then. At `Stop` the reason is in the JSON, so there is a log.
    """
    log = [*plan.log, *(failure_log(plan, result) for result in results if result.failed)]
    blocking = next((result for result in results if blocks(plan, result)), None)
    if plan.event_name == "Stop":
        log += _shown(result for result in results if result is not blocking)
        output = _stop_output(plan, blocking, log)
        return Outcome(output=output, log=tuple(log))
    if blocking is not None:
        return Outcome(output=HookOutput.block(block_reason(plan, blocking)))
    output = _worktree_output(results) if plan.gives_path else _passed_output(plan, results, log)
    return Outcome(output=output, log=() if output.blocked else tuple(log))


def _passed_output(plan: Plan, results: tuple[StepResult, ...], log: list[str]) -> HookOutput:
    """Return the output with what the commands show. The user also sees how a subagent's commands failed."""
    for_model = [plan.context] if plan.context else []
    for_user: list[str] = []
    if plan.event_name in {"SubagentStart", "SubagentStop"}:
        for_user += [failure_log(plan, result) for result in results if result.failed]
    {"model": for_model, "person": for_user, "log": log}[plan.shown] += _shown(results)
    return HookOutput(
        additional_context="\n\n".join(for_model) or None,
        system_message="\n".join(for_user) or None,
    )


def _shown(results: Iterable[StepResult]) -> list[str]:
    return [text for result in results for text in shown_streams(result)]


def _stop_output(plan: Plan, blocking: StepResult | None, log: list[str]) -> HookOutput:
    """Keep the agent going while a check fails, up to `maxBlocks` times in a row; with `infinite`, always."""
    from fairlead.decide import _stop_counter

    session = plan.session_id
    _stop_counter.reset(_unchecked(session))
    if blocking is None:
        _stop_counter.reset(session)
        return HookOutput.block(plan.infinite) if plan.infinite is not None else HookOutput.allow()
    reason = block_reason(plan, blocking)
    count = 0 if plan.first_stop else _stop_counter.read(session)
    if plan.max_blocks and count >= plan.max_blocks:
        _stop_counter.reset(session)
        return HookOutput(
            system_message=f"Kept going {count} times in a row (stop.maxBlocks), the agent may stop now, "
            f"although a check still fails: {reason}"
        )
    if plan.max_blocks and (problem := _stop_counter.write(session, count + 1)):
        log.append(problem)
    return HookOutput.block(reason)


def begin_unchecked_stop(plan: Plan) -> HookOutput | None:
    """Count a plan that another process has to run and settle. Return the output if too many were never settled.

    Settling a plan resets the count. So an agent whose check can never be run is prevented from stopping `maxBlocks`
    times.
    """
    from fairlead.decide import _stop_counter

    counter = _unchecked(plan.session_id)
    count = 0 if plan.first_stop else _stop_counter.read(counter)
    if plan.max_blocks and count >= plan.max_blocks:
        _stop_counter.reset(counter)
        return HookOutput(
            system_message=f"Kept going {count} times in a row (stop.maxBlocks), the agent may stop now, although its "
            f"check could not be run once: {plan.steps[0].run.strip()}. Reinstall Fairlead if this continues"
        )
    _stop_counter.write(counter, count + 1)
    return None


def _unchecked(session_id: str) -> str:
    return f"{session_id}\0unchecked"


def _worktree_output(results: tuple[StepResult, ...]) -> HookOutput:
    """Take the path of the new worktree from the last line that its command printed."""
    (result,) = results
    lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    if not lines:
        return HookOutput.block("WorktreeCreate command printed no path")
    return HookOutput(extra={"worktreePath": os.path.join(result.step.cwd, lines[-1])})


def _notes(event: Event, output: HookOutput, status: Status, notifications: Notifications) -> tuple[Note, ...]:
    from fairlead.notify import event_note, is_system_event_hook

    statuses: list[Status] = ["blocked" if output.blocked else status]
    if is_system_event_hook(event.event_name) and not output.blocked:
        statuses.append("success")  # that the subagent has stopped is true even if a command failed
    for shown in statuses:
        note = event_note(
            event,
            status=shown,
            detail=output.reason,
            enabled=notifications.enabled,
            hooks=notifications.hooks,
            show_errors=notifications.show_errors,
            show_success=notifications.show_success,
            show_system_events=notifications.show_system_events,
        )
        if note is not None:
            return (note,)
    return ()
