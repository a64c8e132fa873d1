"""The quick way through hooks that say nothing, which nearly all do: one loop, and a report only if somebody reads it.

It ends at the first hook that answers or fails. From there on the call loop (`_call`) goes on, which has all the
rules; so this one needs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import msgspec

from fairlead.events import HookOutput
from fairlead.hooks._call import Called, HookRun, freeze
from fairlead.hooks._limits import as_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.events import Event
    from fairlead.hooks._context import HookContext
    from fairlead.hooks._hook import Handler, Registered

_NO_OPINION = HookOutput()
_MAX_AGE = 0.001
"""Seconds after which the deadline of the next hook is computed anew."""


class Silence(Sequence[HookRun]):
    """The report of hooks that said nothing. Its entries are made when it is read."""

    __slots__ = ("_hooks", "_made", "_times")

    def __init__(self, hooks: Sequence[Registered], times: Sequence[float]) -> None:
        """`times` are the moment before the first hook, and that after each of them."""
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
    def __getitem__(self, at: int) -> HookRun: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[HookRun, ...]: ...
    def __getitem__(self, at: int | slice) -> HookRun | tuple[HookRun, ...]:
        return self.as_tuple()[at]

    def __iter__(self) -> Iterator[HookRun]:
        return iter(self.as_tuple())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Silence):
            return self.as_tuple() == other.as_tuple()
        return self.as_tuple() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    def __repr__(self) -> str:
        return repr(self.as_tuple())


class QuickRun(NamedTuple):
    """How far the quick way went."""

    times: list[float]
    """The moment before the first hook, and that after each hook that said nothing."""
    called: Called | None = None
    """What came of the next hook; `None` if it was not called."""


class Stepped(NamedTuple):
    """An async hook that was called: what it returned, raised, or waits for."""

    running: Any = None
    """Its coroutine, if it waits for `answer`."""
    answer: Any = None
    raised: BaseException | None = None
    seconds: float = 0.0


class QuickSteps(NamedTuple):
    """How far the quick way through async hooks went."""

    times: list[float]
    stepped: Stepped | None = None
    """What came of the next hook; `None` if it was not called."""


def is_quick(hook: Registered) -> bool:
    """Return whether a hook can be called directly: it needs no thread, no event loop, and no test of the event."""
    return hook.on_subject and not hook.is_async and (hook.inline or hook.keeps_deadline)


def is_quick_async(hook: Registered) -> bool:
    """Return whether a hook can be called directly in an event loop: it is async, and needs no test of the event."""
    return hook.on_subject and hook.is_async


def call_quickly(calls: Sequence[Handler], event: Event, ctx: HookContext, timeout: float) -> QuickRun:
    """Call the functions of quick hooks that have the same timeout, up to the first that says something."""
    freeze(event)
    now = perf_counter()
    times = [now]
    computed, own = now, msgspec.structs.replace(ctx, deadline=monotonic() + timeout)
    token, silence = ctx.cancellation, None
    for call in calls:
        if token.cancelled:
            return QuickRun(times)
        if now - computed > _MAX_AGE:
            computed, own = now, msgspec.structs.replace(ctx, deadline=monotonic() + timeout)
        try:
            answer = call(event, own)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # noqa: BLE001 - a hook's failure is data
            return QuickRun(times, Called(None, as_failure(raised), perf_counter() - now))
        last, now = now, perf_counter()
        if answer is not None and answer is not silence:
            if answer != _NO_OPINION:
                return QuickRun(times, Called(answer, None, now - last))
            silence = answer  # many hooks return the same object
        times.append(now)
    return QuickRun(times)


def step_quickly(calls: Sequence[Handler], event: Event, ctx: HookContext, timeout: float) -> QuickSteps:
    """Call the functions of async hooks that have the same timeout, up to the first that waits or says something.

    A coroutine that does not wait ends with its first step; it needs no timer.
    """
    freeze(event)
    now = perf_counter()
    times = [now]
    computed, own = now, msgspec.structs.replace(ctx, deadline=monotonic() + timeout)
    token, silence = ctx.cancellation, None
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
        except BaseException as raised:  # noqa: BLE001 - a hook's failure is data
            return QuickSteps(times, Stepped(raised=raised, seconds=perf_counter() - now))
        else:
            return QuickSteps(times, Stepped(running, waits_for, None, perf_counter() - now))
        last, now = now, perf_counter()
        if answer is not None and answer is not silence:
            if answer != _NO_OPINION:
                return QuickSteps(times, Stepped(None, answer, None, now - last))
            silence = answer
        times.append(now)
    return QuickSteps(times)
