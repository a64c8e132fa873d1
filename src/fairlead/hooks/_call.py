"""The call loop, a generator that is independent of managers, clocks and event loops.

It yields the hook to call, and the caller sends the result back. So all rules are the same for sync and async callers:
the order, the phases, when to stop, what a failure means, and how outputs are merged.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - msgspec reads the annotation
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fairlead.errors import HookCancelled, HookFailure, HookTimeout
from fairlead.events import Event, HookOutput
from fairlead.hooks._hook import PHASES, RegisteredHook
from fairlead.hooks._read_only import ReadOnlyDict, read_only

if TYPE_CHECKING:
    from collections.abc import Generator

Outcome = Literal["allowed", "blocked", "failed", "timed out", "cancelled", "skipped"]

OBSERVE = PHASES.index("observe")


class HookRun(msgspec.Struct, frozen=True):
    """The outcome of one hook for one event."""

    name: str
    outcome: Outcome
    """`skipped` for a hook that was not called because the event was blocked already."""
    seconds: float = 0.0
    """How long the call took."""
    error: Exception | None = None
    """Why the hook failed; `None` if it did not."""


class HookResult(msgspec.Struct, frozen=True):
    """The result of firing an event."""

    output: HookOutput
    """The merged outputs of all hooks but observers."""
    event: Event
    """The event, with the input that hooks have rewritten."""
    runs: Sequence[HookRun] = ()
    """The outcome of each hook that matched, in order."""

    @property
    def blocked(self) -> bool:
        """Whether the event is blocked."""
        return not self.output.continue_execution

    @property
    def reason(self) -> str | None:
        """The reason for the block or the permission; `None` if there is none."""
        return self.output.reason

    @property
    def failures(self) -> tuple[HookRun, ...]:
        """The runs of the hooks that failed."""
        return tuple(run for run in self.runs if run.error is not None)


class CallResult(msgspec.Struct, frozen=True):
    """The result of calling one hook, which the caller sends to the call loop."""

    answer: Any = None
    """What the hook has returned. It may be invalid."""
    error: Exception | None = None
    """Why the hook failed; `None` if it returned."""
    seconds: float = 0.0


def call_hooks(
    hooks: Sequence[RegisteredHook], event: Event
) -> Generator[tuple[RegisteredHook, Event], CallResult, HookResult]:
    """Yield each hook to call with the event for it, expect its `CallResult` to be sent, and return the merged result.

    `hooks` must be sorted, and match the event; only matchers that are functions are called here.
    """
    freeze(event)
    output = HookOutput.allow()
    runs: list[HookRun] = []
    stops_at_block = event.can_block or event.keeps_going
    for hook in hooks:
        matched: CallResult | Literal[False] | None = None
        observes = hook.phase == OBSERVE
        if not observes and stops_at_block and not output.continue_execution:
            runs.append(HookRun(hook.name, "skipped"))
            continue
        if not hook.on_subject:
            matched = _match(hook, event)
            if matched is False:
                continue
        called = matched or (yield hook, event)
        answer, error = called.answer, called.error
        if error is None and answer is not None:
            error = _unusable(answer, may_rewrite=hook.may_rewrite)
        if error is not None:
            answer = _denial(hook, event, error) if event.can_block else None
        runs.append(HookRun(hook.name, _outcome(answer, error), called.seconds, error))
        if answer is None or observes:
            continue
        output = output.merge(answer)
        if answer.updated_input is not None and hasattr(event, "tool_input"):
            event = msgspec.structs.replace(event, tool_input=read_only(answer.updated_input))
    return HookResult(output, event, tuple(runs))


def _match(hook: RegisteredHook, event: Event) -> CallResult | Literal[False] | None:
    """Call a matcher that is a function.

    Return `None` to call the hook, `False` to skip it, and a `CallResult` with the error if the matcher has raised one.
    """
    try:
        return None if hook.matches is None or hook.matches(event) else False
    except Exception as error:  # a matcher that fails counts as a hook that fails
        return CallResult(error=error)


def freeze(event: Event) -> None:
    """Replace the tool's input of an event, if it has one, with an equal, read-only copy.

    This changes the event itself.
    """
    tool_input = getattr(event, "tool_input", None)
    if tool_input is not None and type(tool_input) is not ReadOnlyDict:
        try:
            frozen = read_only(tool_input)
        except RecursionError:  # too deep to copy; below the top level it stays mutable
            frozen = ReadOnlyDict(tool_input)
        msgspec.structs.force_setattr(event, "tool_input", frozen)


def _unusable(answer: Any, *, may_rewrite: bool) -> Exception | None:
    if not isinstance(answer, HookOutput):
        return TypeError(f"a hook returns a HookOutput or None, not {type(answer).__name__}")
    if answer.updated_input is None:
        return None
    if not may_rewrite:
        return TypeError("it changed the input after others had checked it; register it with phase='rewrite'")
    try:
        read_only(answer.updated_input)
    except RecursionError:
        return ValueError("updated_input is nested too deeply")
    return None


def _denial(hook: RegisteredHook, event: Event, error: Exception) -> HookOutput:
    """Return the denial because of a hook that failed.

    Its reason states that the event is denied, unless the client only shows the reason of such a denial and goes on.
    """
    from fairlead.clients import client_or_default

    takes_effect = event.event_name in client_or_default(event.client).capabilities.blocks
    effect = ", so this is denied" if takes_effect or event.event_type is None else ""
    return HookOutput.deny(f"hook {hook.name!r} failed{effect}: {describe(error)}")


def describe(error: Exception) -> str:
    """Return an error as a text, with its type unless it is a `HookFailure`."""
    if isinstance(error, HookFailure):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _outcome(answer: HookOutput | None, error: Exception | None) -> Outcome:
    if error is None:
        return "allowed" if answer is None or answer.continue_execution else "blocked"
    if isinstance(error, HookTimeout):
        return "timed out"
    return "cancelled" if isinstance(error, HookCancelled) else "failed"
