"""The fast path for hooks that return no opinion, as nearly all do: a simple loop, whose report is created on demand.

It ends at the first hook that answers or fails. The call loop (`_call`), which has all the rules, continues from there.
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
"""Seconds for which a computed deadline is used for the next hooks, too."""


class NoOpinionRuns(Sequence[HookRun]):
    """The runs of hooks that returned no opinion. The entries are created when they are first read."""

    __slots__ = ("_hooks", "_made", "_times")

    def __init__(self, hooks: Sequence[RegisteredHook], times: Sequence[float]) -> None:
        """`times` has the time before the first hook, then the time after each hook."""
        self._hooks = hooks
        self._times = times
        self._made: tuple[HookRun, ...] | None = None

    def as_tuple(self) -> tuple[HookRun, ...]:
        """Return the entries."""
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
    """The time before the first hook, then the time after each hook that returned no opinion."""
    called: CallResult | None = None
    """The result of the next hook; `None` if it was not called."""


class FirstStep(NamedTuple):
    """The first step of an async hook: it returned, raised, or waits."""

    running: Any = None
    """The hook's coroutine, if it waits for `answer`."""
    answer: Any = None
    raised: BaseException | None = None
    seconds: float = 0.0


class QuickSteps(NamedTuple):
    """The result of the fast path for async hooks."""

    times: list[float]
    first_step: FirstStep | None = None
    """The result of the next hook; `None` if it was not called."""


def is_quick(hook: RegisteredHook) -> bool:
    """Return whether a hook can be called directly: without a thread, an event loop, or a matcher function."""
    return hook.on_subject and not hook.is_async and (hook.inline or hook.keeps_deadline)


def is_quick_async(hook: RegisteredHook) -> bool:
    """Return whether a hook can be called directly in an event loop: it is async, and has no matcher function."""
    return hook.on_subject and hook.is_async


def call_quickly(calls: Sequence[Handler], event: Event, ctx: HookContext, timeout: float) -> QuickRun:
    """Call quick hooks that have the same timeout, up to the first one that answers or fails."""
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
    """Call async hooks that have the same timeout, up to the first one that waits, answers or fails.

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
