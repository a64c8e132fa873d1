"""Calls one hook from sync code. `asyncio` is imported only if a hook is async."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from fairlead.errors import HookCancelled
from fairlead.hooks._call import CallResult
from fairlead.hooks._limits import as_failure, own_cancellation, skip_reason, timeout_error, with_deadline
from fairlead.hooks._workers import submit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fairlead.events import Event
    from fairlead.hooks._context import HookContext
    from fairlead.hooks._hook import RegisteredHook

    Done = tuple[Any, BaseException | None]

_MAX_WAIT = 0.5  # seconds


def call_sync(hook: RegisteredHook, event: Event, ctx: HookContext, timeout: float) -> CallResult:
    """Call a hook, wait for at most `timeout` seconds, and return its result. Raise nothing but `KeyboardInterrupt`."""
    start = perf_counter()
    answer, error = None, skip_reason(ctx, timeout)
    if error is None:
        try:
            answer = _call(hook, event, with_deadline(ctx, timeout), timeout)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            error = as_failure(raised)
    return CallResult(answer, error, perf_counter() - start)


def await_answer(called: CallResult, ctx: HookContext, timeout: float) -> CallResult:
    """Return the result of a call. If its answer is awaitable, await it first, for at most `timeout` seconds."""
    if not hasattr(called.answer, "__await__"):
        return called
    start = perf_counter()
    try:
        answer, error = _await_in_worker(called.answer, with_deadline(ctx, timeout), timeout), None
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        answer, error = None, as_failure(raised)
    return CallResult(answer, error, called.seconds + perf_counter() - start)


def _call(hook: RegisteredHook, event: Event, ctx: HookContext, timeout: float) -> Any:
    if (hook.inline or hook.keeps_deadline) and not hook.is_async:
        answer: Any = hook.call(event, ctx)
        if not hasattr(answer, "__await__"):
            return answer
        return _await_in_worker(answer, ctx, timeout)
    return _in_worker(lambda own: _await_if_awaitable(hook.call(event, own), own, timeout), ctx, timeout)


def _await_in_worker(answer: Any, ctx: HookContext, timeout: float) -> Any:
    return _in_worker(lambda own: _awaited(answer, own, timeout), ctx, timeout)


def _in_worker(call: Callable[[HookContext], Any], ctx: HookContext, timeout: float) -> Any:
    done: SimpleQueue[Done] = SimpleQueue()
    with own_cancellation(ctx) as own:
        submit(lambda: call(own), lambda answer, error: done.put((answer, error)))
        undo = ctx.cancellation.on_cancel(lambda: done.put((None, HookCancelled("the caller no longer waits"))))
        try:
            answer, error = _first(done, timeout)
        finally:
            undo()
    if error is not None:
        raise as_failure(error)
    return answer


def _first(done: SimpleQueue[Done], timeout: float) -> Done:
    """Return the first result in a queue. Raise `HookTimeout` after `timeout` seconds.

    The wait consists of short ones, because a signal that arrives just before a wait does not interrupt it.
    """
    give_up = monotonic() + timeout
    while True:
        try:
            return done.get(timeout=max(min(_MAX_WAIT, give_up - monotonic()), 0))
        except Empty:
            if monotonic() >= give_up:
                raise timeout_error(timeout) from None


def _await_if_awaitable(answer: Any, ctx: HookContext, timeout: float) -> Any:
    return _awaited(answer, ctx, timeout) if hasattr(answer, "__await__") else answer


def _awaited(answer: Awaitable[Any], ctx: HookContext, timeout: float) -> Any:
    from fairlead.hooks._async import run_bounded

    return run_bounded(answer, ctx, timeout)
