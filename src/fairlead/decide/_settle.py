"""Computes the final output, log and notifications from a decision and the results of its commands. Runs nothing.

Also describes in words how a command failed.
"""

from __future__ import annotations

import os

from fairlead.events import NO_OPINION, HookOutput
from fairlead.structs import LIGHT, Struct, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.decide._decision import Decision
    from fairlead.events import Event
    from fairlead.notify import Note, Status
    from fairlead.policy import Notifications
if TYPE_CHECKING or not LIGHT:
    from typing import Literal, TypeAlias

    from fairlead.journal import Verdict
    from fairlead.policy import Plan, Step

    StepStatus: TypeAlias = Literal["passed", "failed", "timed out", "not started", "skipped"]

BLOCK_EXIT_CODE = 2
"""The exit code by which a command blocks."""
_UNCHECKED_EXIT_CODES = range(126, 193)
"""Exit codes of shells: 126 and 127 if a program cannot be started, 128 + N if signal N ended it."""

_LABELS = {"SubagentStart": "Subagent start", "SubagentStop": "Subagent stop"}


class StepResult(Struct, frozen=True, kw_only=True):
    """The result of one command."""

    step: Step
    status: StepStatus
    exit_code: int | None = None
    """As a shell reports it: 128 plus the signal's number if a signal ended it. `None` if it did not run to its end."""
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    """How long it ran; the time limit if it timed out."""
    error: str = ""
    """Why it could not be started."""

    @property
    def failed(self) -> bool:
        """Whether the command failed: it was not skipped and did not pass."""
        return self.status not in {"passed", "skipped"}


def blocks(plan: Plan, result: StepResult) -> bool:
    """Return whether a result blocks the event, by the plan's rule for failures."""
    if not result.failed or result.step.observes or plan.on_failure == "never":
        return False
    if is_unchecked(result):
        return not result.step.passes_unchecked
    return plan.on_failure == "block-first" or result.exit_code == BLOCK_EXIT_CODE


def would_block(plan: Plan) -> bool:
    """Return whether the event is blocked if none of a plan's commands can be run."""
    blocking = [step for step in plan.steps if not (step.observes or step.passes_unchecked)]
    return plan.on_failure != "never" and bool(blocking)


def is_unchecked(result: StepResult) -> bool:
    """Return whether a command could not be run to its end, so that its result is unknown."""
    return result.status in {"not started", "timed out"} or result.exit_code in _UNCHECKED_EXIT_CODES


def failure(result: StepResult) -> str:
    """Describe in one line how a command failed."""
    command = _command(result.step)
    if result.status == "timed out":
        return f"Command timed out after {result.seconds:g} seconds{command}"
    if result.status == "not started":
        return f"Command could not be started ({result.error}){command}"
    return f"Command failed with exit code {result.exit_code}{command}"


def failure_log(plan: Plan, result: StepResult) -> str:
    """Describe a failure for the log, with the message that the policy has for it."""
    line = f"{_LABELS.get(plan.event_name, plan.event_name)} command failed: {failure(result)}"
    return f"{line}\nMessage: {result.step.message}" if result.step.message else line


def block_reason(plan: Plan, result: StepResult) -> str:
    """Return why a command blocks: the policy's message or the failure, then the output that is to be shown."""
    if is_unchecked(result):
        cause = f"This could not be checked, so it is blocked: {failure(result)}"
        return "\n".join((*filter(None, (result.step.message, cause)), *shown_streams(result)))
    if plan.on_failure == "block-first":
        cause = failure(result)
    elif plan.event_name == "UserPromptSubmit":
        cause = f"Slash command blocked by hook (exit code: {BLOCK_EXIT_CODE}){_command(result.step)}"
    else:
        cause = f"{plan.event_name} hook blocked by command"
    return "\n".join((result.step.message or cause, *shown_streams(result)))


def shown_streams(result: StepResult) -> tuple[str, ...]:
    """Return the streams of a command that are to be shown and are not empty."""
    step = result.step
    streams = (
        ("Stdout", step.show_stdout, result.stdout),
        ("Stderr", step.show_stderr, result.stderr),
    )
    return tuple(f"{name}: {text}" for name, wanted, text in streams if wanted and text.strip())


def _command(step: Step) -> str:
    """Return the first line of the command after a colon; "" if it must not be shown."""
    if not step.show_command:
        return ""
    first, *more = step.run.strip().splitlines() or [""]
    return f": {first}{' …' if more else ''}"


# -- what they mean for the event ------------------------------------------------------------------------


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
    """The channels to which the notes are sent."""
    results: tuple[StepResult, ...] = ()


def settle(
    event: Event, decision: Decision, results: tuple[StepResult, ...] = (), *, cancelled: str | None = None
) -> Settled:
    """Merge the results of a decision's commands into its output.

    `cancelled` is the reason if the commands were ended early, else `None`. If they were, a gate denies.
    """
    output, log = decision.output, tuple(f"fairlead: {line}" for line in decision.log)
    status: Status = "success"
    if cancelled is not None:
        output = output.merge(HookOutput.deny(cancelled)) if event.can_block else output
        status = "failure"
    elif decision.plan is not None and (output == NO_OPINION or not output.blocked):
        added, lines = plan_outcome(decision.plan, results)
        output = added if output == NO_OPINION else output.merge(added)
        log = (*log, *lines)
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
    if output == NO_OPINION:
        return "none"
    if output.blocked:
        return "blocked"
    if output.permission in {"ask", "defer"}:
        return "asked"
    return "allowed" if output.permission == "allow" else "said"


def plan_outcome(plan: Plan, results: tuple[StepResult, ...]) -> tuple[HookOutput, tuple[str, ...]]:
    """Return the output and the lines for stderr that follow from the results of a plan's commands.

    If several commands that ran in parallel block, the first of them in the plan decides. The client reads the reason
    of a block from stderr, so a block has no lines. At `Stop` the reason is in the JSON, so there may be lines.
    """
    log = [*plan.log, *(failure_log(plan, result) for result in results if result.failed)]
    blocking = next((result for result in results if blocks(plan, result)), None)
    if plan.event_name == "Stop":
        log += _shown(result for result in results if result is not blocking)
        output = _stop_output(plan, blocking, log)
        return output, tuple(log)
    if blocking is not None:
        return HookOutput.block(block_reason(plan, blocking)), ()
    output = _worktree_output(results) if plan.gives_path else _passed_output(plan, results, log)
    return output, () if output.blocked else tuple(log)


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
    """Return a block while a check fails, up to `maxBlocks` times in a row, then a message to the user.

    Without a failed check, only `infinite` blocks. The blocks are counted in a file of the session; if that cannot be
    written, a line is added to `log`.
    """
    from fairlead.decide import _stop_counter

    session = plan.session_id
    if blocking is None:
        _stop_counter.reset(_unchecked(session), session)
        return HookOutput.block(plan.infinite) if plan.infinite is not None else NO_OPINION
    _stop_counter.reset(_unchecked(session))
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
    """Count a plan of `Stop` that another process has to run and settle.

    Returns an output that lets the agent stop if `maxBlocks` plans in a row were never settled, else `None`. So an
    agent whose check can never be run is prevented from stopping `maxBlocks` times. Settling a plan resets the count.
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
    """Return the output with the path of the worktree, the last line that its command printed. Blocks without one."""
    (result,) = results
    lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    if not lines:
        return HookOutput.block("WorktreeCreate command printed no path")
    return HookOutput(extra={"worktreePath": os.path.join(result.step.cwd, lines[-1])})


def _notes(event: Event, output: HookOutput, status: Status, notifications: Notifications) -> tuple[Note, ...]:
    from fairlead.notify import event_note, is_system_event

    statuses: list[Status] = ["blocked" if output.blocked else status]
    if is_system_event(event.event_name) and not output.blocked:
        statuses.append("success")  # that the subagent has stopped is true even if a command failed
    for shown in statuses:
        note = event_note(
            event,
            status=shown,
            detail=output.reason,
            enabled=notifications.enabled,
            events=notifications.hooks,
            show_errors=notifications.show_errors,
            show_success=notifications.show_success,
            show_system_events=notifications.show_system_events,
        )
        if note is not None:
            return (note,)
    return ()
