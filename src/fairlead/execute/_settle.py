"""Carries out a decision: runs its commands, and says what the client and the person are told in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.errors import HookCancelled
from fairlead.events import HookOutput
from fairlead.execute._results import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.decide import Decision
    from fairlead.events import Event
    from fairlead.execute._results import StepResult
    from fairlead.hooks import CancellationToken
    from fairlead.notify import CommandStatus, Note, Status
    from fairlead.policy import Notifications, Plan, Step

Verdict = Literal["none", "said", "asked", "allowed", "blocked", "failed"]
"""As the journal has it."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a decision."""

    output: HookOutput
    log: tuple[str, ...] = ()
    """Lines for stderr."""
    notes: tuple[Note, ...] = ()
    """What the person is to be told."""
    channels: tuple[str, ...] = ()
    results: tuple[StepResult, ...] = ()


def settle(
    event: Event,
    payload: bytes,
    decision: Decision,
    *,
    cancellation: CancellationToken | None = None,
    deadline: float | None = None,
) -> Settled:
    """Run what is planned, unless the event is blocked already. Sends nothing but what is asked for per command."""
    output, log = decision.output, tuple(f"fairlead: {line}" for line in decision.log)
    results: tuple[StepResult, ...] = ()
    status: Status = "success"
    if decision.plan is not None and not output.blocked:
        outcome = _carry_out(event, payload, decision.plan, decision.notices, cancellation, deadline)
        output, results = output.merge(outcome.output), outcome.results
        log = (*log, outcome.stderr) if outcome.stderr else log
        status = "failure" if outcome.cancelled or any(result.failed for result in results) else "success"
    notes = _notes(event, output, status, decision.notices)
    channels = tuple(decision.notices.channels) if decision.notices else ()
    return Settled(output=output, log=log, notes=notes, channels=channels, results=results)


def tell(settled: Settled) -> None:
    """Tell the person what is to be told."""
    if settled.notes:
        from fairlead.notify import send

        for note in settled.notes:
            send(note, settled.channels)


def verdict_of(output: HookOutput) -> Verdict:
    """Name what the client is told, for the journal."""
    if output.blocked:
        return "blocked"
    if output.permission in {"ask", "defer"}:
        return "asked"
    if output.permission == "allow":
        return "allowed"
    return "none" if output == HookOutput() else "said"


def _carry_out(  # noqa: PLR0913, PLR0917 - what happened, what is planned, and how long there is
    event: Event,
    payload: bytes,
    plan: Plan,
    notices: Notifications | None,
    cancellation: CancellationToken | None,
    deadline: float | None,
) -> Outcome:
    from fairlead.execute._commands import run

    watch = _teller(event, notices) if notices is not None and any(step.notify for step in plan.steps) else None
    try:
        return run(plan, payload, deadline=deadline, cancellation=cancellation, watch=watch)
    except HookCancelled as error:
        output = HookOutput.deny(str(error)) if event.can_block else HookOutput.allow()
        return Outcome(output=output, cancelled=True)


def _teller(event: Event, notices: Notifications) -> Callable[[Step, StepResult | None], None]:
    """Tell the person of each command that asks for it (`notifyPerCommand`), when it begins and when it has ended."""
    from fairlead.notify import command_note, send

    def tell(step: Step, result: StepResult | None) -> None:
        if step.notify:
            status: CommandStatus = "running" if result is None else "failure" if result.failed else "success"
            send(command_note(event, step.run if step.show_command else None, status), notices.channels)

    return tell


def _notes(event: Event, output: HookOutput, status: Status, notices: Notifications | None) -> tuple[Note, ...]:
    if notices is None:
        return ()
    from fairlead.notify import event_note, is_system_event_hook

    statuses: list[Status] = ["blocked" if output.blocked else status]
    if is_system_event_hook(event.event_name) and not output.blocked:
        statuses.append("success")  # that the subagent has stopped is true, whatever a command made of it
    for status_shown in statuses:
        note = event_note(
            event,
            status=status_shown,
            detail=output.reason,
            enabled=notices.enabled,
            hooks=notices.hooks,
            show_errors=notices.show_errors,
            show_success=notices.show_success,
            show_system_events=notices.show_system_events,
        )
        if note is not None:
            return (note,)
    return ()
