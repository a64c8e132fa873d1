"""The fast path for hooks that return no opinion, as nearly all do: a simple loop, whose runs are created on demand.

It ends at the first hook that answers or fails. From there the call loop (`_call`), which has all rules, continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import msgspec

from fairlead.events import NO_OPINION
from fairlead.hooks._call import CallResult, HookRun, freeze
from fairlead.hooks._limits import as_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.events import Event
    from fairlead.hooks._context import HookContext
    from fairlead.hooks._hook import Handler, RegisteredHook

_MAX_AGE = 0.001
"""Seconds for which a deadline that was computed for one hook is also used for the next ones."""


class NoOpinionRuns(Sequence[HookRun]):
    """The runs of hooks that returned no opinion. They are created when they are first read."""

    __slots__ = ("_hooks", "_made", "_times")

    def __init__(self, hooks: Sequence[RegisteredHook], times: Sequence[float]) -> None:
        """Use the times (of `perf_counter`) before the first hook and after each hook that returned no opinion.

        `hooks` may go on with further hooks, for which there are no runs.
        """
        self._hooks = hooks
        self._times = times
        self._made: tuple[HookRun, ...] | None = None

    def as_tuple(self) -> tuple[HookRun, ...]:
        """Return the runs, which are created by the first call."""
        if self._made is None:
            times = self._times
            self._made = tuple(
                HookRun(self._hooks[at].name, "allowed", times[at + 1] - times[at]) for at in range(len(times) - 1)
            )
        return self._made

    def __len__(self) -> int:
        return len(self._times) - 1

    @overload
    def __getitem__(self, index: int) -> HookRun: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[HookRun, ...]: ...
    def __getitem__(self, index: int | slice) -> HookRun | tuple[HookRun, ...]:
        return self.as_tuple()[index]

    def __iter__(self) -> Iterator[HookRun]:
        return iter(self.as_tuple())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NoOpinionRuns):
            return self.as_tuple() == other.as_tuple()
        return self.as_tuple() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    def __repr__(self) -> str:
        return repr(self.as_tuple())


class QuickRun(NamedTuple):
    """The result of the fast path for sync hooks."""

    times: list[float]
    """The times (of `perf_counter`) before the first hook and after each hook that returned no opinion."""
    called: CallResult | None = None
    """The result of the hook that answered or failed; `None` if none did."""


class FirstStep(NamedTuple):
    """The first step of an async hook, after which it has returned, has raised, or waits."""

    running: Any = None
    """The hook's coroutine if it waits; else `None`."""
    answer: Any = None
    """What the hook has returned, or if it waits, what its coroutine has yielded to the event loop."""
    raised: BaseException | None = None
    """What the hook has raised; `None` if nothing."""
    seconds: float = 0.0
    """How long the step took."""


class QuickSteps(NamedTuple):
    """The result of the fast path for async hooks."""

    times: list[float]
    """The times (of `perf_counter`) before the first hook and after each hook that returned no opinion."""
    first_step: FirstStep | None = None
    """The first step of the hook that waited, answered or failed; `None` if none did."""


def is_quick(hook: RegisteredHook) -> bool:
    """Return whether a hook can be called by `call_quickly`: it needs no thread, and its matcher is not a function."""
    return hook.on_subject and not hook.is_async and (hook.inline or hook.keeps_deadline)


def is_quick_async(hook: RegisteredHook) -> bool:
    """Return whether a hook can be called by `step_quickly`: it is async, and its matcher is not a function."""
    return hook.on_subject and hook.is_async


def call_quickly(calls: Sequence[Handler], event: Event, ctx: HookContext, timeout: float) -> QuickRun:
    """Call quick hooks with the same timeout, up to the first that answers or fails, or until `ctx` is cancelled."""
    freeze(event)
    now = perf_counter()
    times = [now]
    computed, own = now, msgspec.structs.replace(ctx, deadline=monotonic() + timeout)
    token, no_opinion = ctx.cancellation, None
    for call in calls:
        if token.cancelled:
            return QuickRun(times)
        if now - computed > _MAX_AGE:
            computed, own = now, msgspec.structs.replace(ctx, deadline=monotonic() + timeout)
        try:
            answer = call(event, own)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            return QuickRun(times, CallResult(None, as_failure(raised), perf_counter() - now))
        last, now = now, perf_counter()
        if answer is not None and answer is not no_opinion:
            if answer != NO_OPINION:
                return QuickRun(times, CallResult(answer, None, now - last))
            no_opinion = answer  # many hooks return the same object
        times.append(now)
    return QuickRun(times)


def step_quickly(calls: Sequence[Handler], event: Event, ctx: HookContext, timeout: float) -> QuickSteps:
    """Call async hooks with one timeout, up to the first that waits, answers or fails, or until `ctx` is cancelled.

    A coroutine that does not wait ends with its first step, and needs no timer. The loop is that of `call_quickly`,
    written again: a function for each turn of it would take as long as a hook that returns no opinion.
    """
    freeze(event)
    now = perf_counter()
    times = [now]
    computed, own = now, msgspec.structs.replace(ctx, deadline=monotonic() + timeout)
    token, no_opinion = ctx.cancellation, None
    for call in calls:
        if token.cancelled:
            return QuickSteps(times)
        if now - computed > _MAX_AGE:
            computed, own = now, msgspec.structs.replace(ctx, deadline=monotonic() + timeout)
        running: Any = None
        try:
            running = call(event, own)
            waits_for = running.send(None)
        except StopIteration as stop:
            answer = stop.value
        except BaseException as raised:
            return QuickSteps(times, FirstStep(raised=raised, seconds=perf_counter() - now))
        else:
            return QuickSteps(times, FirstStep(running, waits_for, None, perf_counter() - now))
        last, now = now, perf_counter()
        if answer is not None and answer is not no_opinion:
            if answer != NO_OPINION:
                return QuickSteps(times, FirstStep(None, answer, None, now - last))
            no_opinion = answer
        times.append(now)
    return QuickSteps(times)
