"""Puts an event under the policy that holds where it happened: guards, then commands, then a word to the person."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import HookCancelled
from fairlead.events import HookOutput

if TYPE_CHECKING:
    from fairlead.act import StepResult
    from fairlead.events import Event
    from fairlead.hooks import CancellationToken, HookManager
    from fairlead.notify import Status
    from fairlead.policy import Layer

_GUARDED = frozenset({"PreToolUse", "PermissionRequest"})
_TELLS_THE_PERSON = frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"})


class Policing(msgspec.Struct, frozen=True):
    """The policy files that hold, and what is wrong with them."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()
    broken: str | None = None
    """Why there is no policy, although there is a file."""


def find_policy(event: Event) -> Policing:
    """Load the policy that holds in the event's folder."""
    from fairlead.policy import PolicyError, load  # noqa: PLC0415 - a bad payload does without

    try:
        loaded = load(event.cwd or ".")
    except PolicyError as error:
        return Policing(broken=f"{error}\nRun `fairlead validate`.")
    return Policing(loaded.layers, loaded.warnings)


def first_word(event: Event, policing: Policing) -> HookOutput:
    """Say what is to be said whatever the hooks answer: a policy that cannot be read denies every tool call."""
    if policing.broken is not None:
        if event.event_name == "PreToolUse":
            return HookOutput.deny(f"The policy cannot be read, so nothing is allowed: {policing.broken}")
        print(f"fairlead: {policing.broken}", file=sys.stderr)
    for warning in policing.warnings:
        print(f"fairlead: {warning}", file=sys.stderr)
    if policing.warnings and event.event_name in _TELLS_THE_PERSON:
        return HookOutput(system_message="\n".join(policing.warnings))
    return HookOutput.allow()


def post_guards(event: Event, manager: HookManager, policing: Policing) -> None:
    """Register the guards. They protect the policy and the client's settings also where there is no policy yet."""
    if event.event_name in _GUARDED:
        from fairlead.policy import register_guards  # noqa: PLC0415 - other events do without

        register_guards(manager, policing.layers)


def carry_out(  # noqa: PLR0913, PLR0917 - what happened, what was said, and how long there is
    event: Event,
    payload: bytes,
    output: HookOutput,
    policing: Policing,
    token: CancellationToken,
    deadline: float | None,
) -> HookOutput:
    """Run the commands of the policy, unless the event is blocked already, and tell the person."""
    status: Status = "success"
    if not output.blocked:
        said, status = _run_commands(event, payload, policing, token, deadline)
        output = output.merge(said)
    _tell_the_person(event, output, status, policing)
    return output


def _run_commands(
    event: Event, payload: bytes, policing: Policing, token: CancellationToken, deadline: float | None
) -> tuple[HookOutput, Status]:
    if not policing.layers:
        return HookOutput.allow(), "success"
    from fairlead.policy import plan  # noqa: PLC0415 - as above

    planned = plan(event, policing.layers)
    if not (planned.steps or planned.context or planned.infinite or planned.log):
        return HookOutput.allow(), "success"
    from fairlead.act import run  # noqa: PLC0415 - most events have no command

    try:
        outcome = run(planned, payload, deadline=deadline, cancellation=token)
    except HookCancelled as error:
        return HookOutput.deny(str(error)) if event.can_block else HookOutput.allow(), "failure"
    if outcome.stderr:
        print(outcome.stderr, file=sys.stderr)
    _tell_of_commands(event, outcome.results, policing)
    return outcome.output, "failure" if any(result.failed for result in outcome.results) else "success"


def _tell_of_commands(event: Event, results: tuple[StepResult, ...], policing: Policing) -> None:
    """Tell the person of each command that asked for it (`notifyPerCommand`), where notifications are on."""
    wanted = [result for result in results if result.step.notify and result.status != "skipped"]
    if not wanted or not any(layer.policy.notifications.enabled for layer in policing.layers):
        return
    from fairlead.notify import note_of_command, send  # noqa: PLC0415 - as below
    from fairlead.policy import merged  # noqa: PLC0415

    channels = merged(policing.layers).notifications.channels
    for result in wanted:
        command = result.step.run if result.step.show_command else "(not shown)"
        send(note_of_command(event, command, passed=not result.failed), channels)


def _tell_the_person(event: Event, output: HookOutput, status: Status, policing: Policing) -> None:
    if not any(layer.policy.notifications.enabled for layer in policing.layers):
        return
    from fairlead.notify import is_system_event_hook, note_for, send  # noqa: PLC0415 - hardly any event is notified
    from fairlead.policy import merged  # noqa: PLC0415

    wishes = merged(policing.layers).notifications
    statuses: list[Status] = ["blocked" if output.blocked else status]
    if is_system_event_hook(event.event_name) and not output.blocked:
        statuses.append("success")  # that the subagent has stopped is true, whatever a command made of it
    for status_shown in statuses:
        note = note_for(
            event,
            status=status_shown,
            detail=output.reason,
            enabled=wishes.enabled,
            hooks=wishes.hooks,
            show_errors=wishes.show_errors,
            show_success=wishes.show_success,
            show_system_events=wishes.show_system_events,
        )
        if note is not None:
            send(note, wishes.channels)
            return
