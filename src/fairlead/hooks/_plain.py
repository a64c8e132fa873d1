"""Calls one hook from plain code. Imports no asyncio unless a hook is async."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.errors import HookCancelled, HookFailure, HookTimeout
from fairlead.hooks._call import Called
from fairlead.hooks._workers import submit

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from fairlead.events import Event
    from fairlead.hooks._context import HookContext
    from fairlead.hooks._hook import Registered


def call_plain(hook: Registered, event: Event, ctx: HookContext, timeout: float) -> Called:
    """Call the hook and wait for its answer, at most `timeout` seconds."""
    start = perf_counter()
    answer, error = None, refused(ctx, timeout)
    if error is None:
        try:
            answer = _call(hook, event, ctx, timeout)
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - a hook's failure is data
            error = as_failure(raised)
    return Called(answer, error, perf_counter() - start)


def time_left(hook: Registered, ctx: HookContext, cap: float) -> float:
    """Give the hook's own timeout, under the manager's and under the caller's deadline."""
    timeout = min(hook.timeout, cap)
    return timeout if ctx.deadline is None else min(timeout, ctx.deadline - monotonic())


def refused(ctx: HookContext, timeout: float) -> Exception | None:
    """Say why a hook is not even called, if it is not."""
    if ctx.cancelled:
        return HookCancelled("the caller no longer waits")
    if timeout <= 0:
        return HookTimeout("no time was left to call it")
    return None


def as_failure(raised: BaseException) -> Exception:
    """Make an error of whatever a hook raised; `exit()` in a hook must not end the process."""
    if isinstance(raised, Exception):
        return raised
    return HookFailure(f"it raised {type(raised).__name__}")


def out_of_time(timeout: float) -> HookTimeout:
    """Say that a hook took too long."""
    return HookTimeout(f"no answer within {round(timeout, 2):g} s")


def with_deadline(ctx: HookContext, timeout: float) -> HookContext:
    """Tell a hook when it must have answered."""
    return msgspec.structs.replace(ctx, deadline=monotonic() + timeout)


def _call(hook: Registered, event: Event, ctx: HookContext, timeout: float) -> Any:
    ctx = with_deadline(ctx, timeout)
    if (hook.inline or hook.keeps_deadline) and not hook.is_async:
        answer: Any = hook.call(event, ctx)
        if not hasattr(answer, "__await__"):
            return answer
        return _in_worker(lambda: _awaited(answer, timeout), ctx, timeout)
    return _in_worker(lambda: _settled(hook.call(event, ctx), timeout), ctx, timeout)


def _in_worker(call: Any, ctx: HookContext, timeout: float) -> Any:
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    submit(call, lambda answer, error: done.put((answer, error)))
    undo = ctx.cancellation.on_cancel(lambda: done.put((None, HookCancelled("the caller no longer waits"))))
    try:
        answer, error = done.get(timeout=timeout)
    except Empty:
        raise out_of_time(timeout) from None
    finally:
        undo()
    if error is not None:
        raise as_failure(error)
    return answer


def _settled(answer: Any, timeout: float) -> Any:
    return _awaited(answer, timeout) if hasattr(answer, "__await__") else answer


def _awaited(answer: Awaitable[Any], timeout: float) -> Any:
    import asyncio  # noqa: PLC0415 - only an async hook pays for it

    async def bounded() -> Any:
        return await asyncio.wait_for(answer, timeout)

    try:
        return asyncio.run(bounded())
    except TimeoutError:
        raise out_of_time(timeout) from None
