"""Calls one hook from async code. A hook that returns without waiting is as fast as an `await`."""

from __future__ import annotations

import asyncio
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, Any, cast

from fairlead.errors import HookCancelled, HookFailure
from fairlead.hooks._call import CallResult
from fairlead.hooks._limits import as_failure, own_cancellation, skip_reason, timeout_error, with_deadline
from fairlead.hooks._workers import submit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Generator

    from fairlead.events import Event
    from fairlead.hooks._context import HookContext
    from fairlead.hooks._hook import RegisteredHook
    from fairlead.hooks._quick import FirstStep


async def call_async(hook: RegisteredHook, event: Event, ctx: HookContext, timeout: float) -> CallResult:
    """Call a hook, wait for at most `timeout` seconds, and return its result.

    Raise only what is meant for the caller: `KeyboardInterrupt`, `GeneratorExit` and the cancellation of the task.
    """
    start = perf_counter()
    answer, error = None, skip_reason(ctx, timeout)
    if error is None:
        ctx = with_deadline(ctx, timeout)
        try:
            if hook.is_async:
                running: Any = hook.call(event, ctx)
                try:
                    waits_for = running.send(None)
                except StopIteration as stop:
                    answer = stop.value
                else:  # only a hook that waits needs a timer
                    answer = await _bounded(_resumed(running, waits_for), ctx, timeout)
            else:
                answer = await _call_sync(hook, event, ctx, timeout)
        except BaseException as raised:
            error = _as_failure(raised)
    return CallResult(answer, error, perf_counter() - start)


async def finish_async(first_step: FirstStep, ctx: HookContext, timeout: float) -> CallResult:
    """Return the result of an async hook whose first step was run by `step_quickly`.

    If the hook waits, await it for at most `timeout` seconds. Raise what `call_async` raises.
    """
    if first_step.raised is not None:
        return CallResult(None, _as_failure(first_step.raised), first_step.seconds)
    if first_step.running is None:
        return CallResult(first_step.answer, None, first_step.seconds)
    start, answer, error = perf_counter(), None, None
    try:
        rest = _resumed(first_step.running, first_step.answer)
        answer = await _bounded(rest, with_deadline(ctx, timeout), timeout)
    except BaseException as raised:
        error = _as_failure(raised)
    return CallResult(answer, error, first_step.seconds + perf_counter() - start)


def _as_failure(raised: BaseException) -> Exception:
    """Return an `Exception` for what a hook has raised.

    Raise `KeyboardInterrupt`, `GeneratorExit` and a cancellation of the task again, because they are for the caller.
    """
    if isinstance(raised, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise raised
        return HookFailure("it was cancelled by its own code")
    if isinstance(raised, KeyboardInterrupt | GeneratorExit):
        raise raised
    return as_failure(raised)


@coroutine
def _resumed(answer: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Continue a coroutine in the same task after its first step, at which it has yielded `waits_for`."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as thrown:  # cancellation is delivered where the coroutine waits
                waits_for = answer.throw(thrown)
            else:
                waits_for = answer.send(sent)
    except StopIteration as stop:
        return stop.value


async def _bounded(answer: Awaitable[Any], ctx: HookContext, timeout: float) -> Any:
    """Await an answer and return it.

    Raise `HookTimeout` after `timeout` seconds, `HookCancelled` if `ctx` is cancelled.
    """
    timer = _Timer(timeout)
    undo = ctx.cancellation.on_cancel(timer.expire_now)
    try:
        return await answer
    except asyncio.CancelledError:
        if not timer.take_back_cancellation():
            raise
        if ctx.cancelled:
            raise HookCancelled("the caller no longer waits") from None
        raise timeout_error(timeout) from None
    finally:
        undo()
        timer.stop()


class _Timer:
    """Cancels the current task after a timeout, like `asyncio.timeout`, but with half of its overhead."""

    __slots__ = ("_expired", "_handle", "_loop", "_requests", "_task")

    def __init__(self, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._requests = self._task.cancelling()
        self._expired = False
        self._handle: asyncio.TimerHandle | None = self._loop.call_later(timeout, self._expire)

    def _expire(self) -> None:
        if self._handle is not None and not self._expired:
            self._expired = True
            self._task.cancel()

    def expire_now(self) -> None:
        """Cancel the task now. May be called from any thread."""
        self._loop.call_soon_threadsafe(self._expire)

    def take_back_cancellation(self) -> bool:
        """Undo the timer's cancellation of the task, and return whether only the timer has cancelled the task.

        Return `False` if the timer has not cancelled the task.
        """
        if not self._expired:
            return False
        self._expired = False
        return self._task.uncancel() <= self._requests

    def stop(self) -> None:
        """Stop the timer. Undo its cancellation of the task if the hook has swallowed it."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._expired:
            self._expired = False
            self._task.uncancel()


def run_bounded(answer: Awaitable[Any], ctx: HookContext, timeout: float) -> Any:
    """Await an answer in a new event loop, from sync code, and return it.

    Raise `HookTimeout` after `timeout` seconds, `HookCancelled` if `ctx` is cancelled.
    """

    async def run() -> tuple[Any, Exception | None]:
        try:
            return await _bounded(answer, ctx, timeout), None
        except SystemExit as raised:  # raised in a task, it would stop the event loop
            return None, as_failure(raised)

    value, error = asyncio.run(run())
    if error is not None:
        raise error
    return value


async def _call_sync(hook: RegisteredHook, event: Event, ctx: HookContext, timeout: float) -> Any:
    if hook.inline:
        answer: Any = hook.call(event, ctx)
    else:
        with own_cancellation(ctx) as own:
            running = _threaded(hook, event, own)
            answer = await (running if hook.keeps_deadline else _bounded(running, ctx, timeout))
    return await _bounded(answer, ctx, timeout) if hasattr(answer, "__await__") else answer


def _threaded(hook: RegisteredHook, event: Event, ctx: HookContext) -> Awaitable[Any]:
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if future.done():
            _discard(answer)
        elif error is None:
            future.set_result(answer)
        else:
            future.set_exception(as_failure(error))

    def done(answer: Any, error: BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(settle, answer, error)
        except RuntimeError:  # the loop is closed: the hook outlived its timeout and its caller
            _discard(answer)

    submit(lambda: hook.call(event, ctx), done)
    return future


def _discard(answer: Any) -> None:
    """Close a coroutine that a hook returned too late, because Python warns about a coroutine that is never awaited."""
    if asyncio.iscoroutine(answer):
        answer.close()
