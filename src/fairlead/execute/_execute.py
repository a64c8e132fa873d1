"""Carries out a decision: runs its commands in this process's environment, and sends its notifications."""

from __future__ import annotations

from time import time

from fairlead.decide import settle
from fairlead.errors import HookCancelled
from fairlead.journal import MAX_REASON_LENGTH, CommandResult, CommandsRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.decide import Decision, Settled, StepResult
    from fairlead.events import Event
    from fairlead.notify import CommandStatus
    from fairlead.policy import Notifications, Plan, Step
    from fairlead.process import CancellationToken


def execute(
    event: Event,
    payload: bytes,
    decision: Decision,
    *,
    cancellation: CancellationToken | None = None,
    deadline: float | None = None,
) -> Settled:
    """Run the commands of a decision, unless it blocks already, and send its notifications.

    `payload` is the stdin of the commands, `deadline` (`time.monotonic()`) applies to all of them together.
    """
    settled = _settled(event, payload, decision, cancellation, deadline)
    if settled.notes:
        from fairlead.notify import send

        for note in settled.notes:
            send(note, settled.channels)
    return settled


def commands_record(event_id: str, settled: Settled, exit_code: int, seconds: float) -> CommandsRecord:
    """Return the journal's record of the results of an event's commands, which took `seconds` in all."""
    return CommandsRecord(
        id=event_id,
        at=time(),
        verdict=settled.verdict,
        exit=exit_code,
        reason=settled.reason[:MAX_REASON_LENGTH],
        seconds=seconds,
        steps=tuple(
            CommandResult(r.step.run if r.step.show_command else "", r.status, r.exit_code, r.seconds)
            for r in settled.results
        ),
    )


def _settled(
    event: Event,
    payload: bytes,
    decision: Decision,
    cancellation: CancellationToken | None,
    deadline: float | None,
) -> Settled:
    plan = decision.plan
    if plan is None or not plan.steps or decision.output.blocked:
        return settle(event, decision)
    from fairlead.execute._commands import run_commands

    watch = _notifier(event, plan, decision.notifications)
    try:
        results = run_commands(plan, payload, deadline=deadline, cancellation=cancellation, watch=watch)
    except HookCancelled as error:
        return settle(event, decision, cancelled=str(error))
    return settle(event, decision, results)


def _notifier(
    event: Event, plan: Plan, notifications: Notifications | None
) -> Callable[[Step, StepResult | None], None] | None:
    """Return a function that notifies the user of commands with `notifyPerCommand`; `None` if there are none."""
    if notifications is None or not any(step.notify for step in plan.steps):
        return None
    from fairlead.notify import command_note, send

    def notify(step: Step, result: StepResult | None) -> None:
        if step.notify:
            status: CommandStatus = "running" if result is None else "failure" if result.failed else "success"
            send(command_note(event, step.run if step.show_command else None, status), notifications.channels)

    return notify
