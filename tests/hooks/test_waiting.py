"""Async hooks that really wait. The manager steps a coroutine by hand, and nothing of asyncio may notice."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import ContextVar
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.events import Event, HookOutput, PreToolUse, Stop, pre_tool_use, stop
from fairlead.hooks import HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

BASH = pre_tool_use("s", "Bash", {"command": "ls"})
LONG = 30.0


def rows(result: HookResult) -> list[tuple[str, str]]:
    return [(run.name, run.outcome) for run in result.runs]


# -- ways to wait --------------------------------------------------------------------------------------


async def for_nothing() -> str:
    return "done"


async def a_turn_of_the_loop() -> str:
    await asyncio.sleep(0)
    return "done"


async def many_turns_of_the_loop() -> str:
    for _ in range(100):
        await asyncio.sleep(0)
    return "done"


async def a_moment() -> str:
    return await asyncio.sleep(0.001, "done")


async def an_event() -> str:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    await event.wait()
    return "done"


async def a_future() -> str:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, "done")
    return await future


async def a_future_that_is_done() -> str:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    future.set_result("done")
    return await future


async def a_task() -> str:
    return await asyncio.create_task(a_moment())


async def a_task_group() -> str:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(a_moment())
        group.create_task(an_event())
    return task.result()


async def several_at_once() -> str:
    return (await asyncio.gather(an_event(), a_moment(), a_turn_of_the_loop()))[1]


async def a_thread() -> str:
    return await asyncio.to_thread(lambda: "done")


async def a_queue() -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    asyncio.get_running_loop().call_soon(queue.put_nowait, "done")
    return await queue.get()


async def a_lock() -> str:
    lock = asyncio.Lock()
    await lock.acquire()
    asyncio.get_running_loop().call_soon(lock.release)
    async with lock:
        return "done"


async def under_a_timeout_that_holds() -> str:
    async with asyncio.timeout(LONG):
        return await an_event()


async def under_a_timeout_that_expires() -> str:
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        await asyncio.sleep(0)
        return "done"
    return "never"


async def with_wait_for_that_expires() -> str:
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    except TimeoutError:
        return await a_moment()
    return "never"


async def shielded() -> str:
    return await asyncio.shield(a_moment())


async def an_async_generator() -> str:
    async def letters() -> AsyncIterator[str]:
        for letter in "done":
            await asyncio.sleep(0)
            yield letter

    return "".join([letter async for letter in letters()])


async def a_context_manager() -> str:
    @asynccontextmanager
    async def opened() -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield "done"
        await asyncio.sleep(0)

    async with opened() as text:
        return await asyncio.sleep(0, text)


async def an_exception_that_it_catches() -> str:
    try:
        await asyncio.create_task(fails())
    except LookupError:
        return await a_turn_of_the_loop()
    return "never"


async def fails() -> None:
    await asyncio.sleep(0)
    raise LookupError


WAYS = [
    for_nothing,
    a_turn_of_the_loop,
    many_turns_of_the_loop,
    a_moment,
    an_event,
    a_future,
    a_future_that_is_done,
    a_task,
    a_task_group,
    several_at_once,
    a_thread,
    a_queue,
    a_lock,
    under_a_timeout_that_holds,
    under_a_timeout_that_expires,
    with_wait_for_that_expires,
    shielded,
    an_async_generator,
    a_context_manager,
    an_exception_that_it_catches,
]


@pytest.mark.parametrize("way", WAYS)
def test_a_hook_may_wait_for(fire: Callable[..., HookResult], way: Callable[[], Awaitable[str]]) -> None:
    hooks = HookManager()

    @hooks.on(PreToolUse)
    async def direct(event: PreToolUse) -> HookOutput:
        return HookOutput.allow().with_context(await way())

    @hooks.on(PreToolUse)
    def returned(event: PreToolUse) -> Awaitable[HookOutput]:
        return direct(event)

    result = fire(hooks, BASH)

    assert result.output == HookOutput(additional_context="done\ndone")
    assert rows(result) == [("direct", "allowed"), ("returned", "allowed")]


def test_a_hook_may_return_any_awaitable(fire: Callable[..., HookResult]) -> None:
    class Later:
        def __await__(self) -> Any:
            return a_moment().__await__()

    class Answer(Later):
        def __await__(self) -> Any:
            yield from super().__await__()
            return HookOutput.block("no")

    hooks = HookManager()
    hooks.add(lambda _: Answer(), PreToolUse)

    assert fire(hooks, BASH).output == HookOutput.block("no")


async def test_a_hook_runs_in_the_task_that_fires() -> None:
    tasks: list[asyncio.Task[Any] | None] = []
    hooks = HookManager()

    @hooks.on(Stop)
    async def look(event: Stop) -> None:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())

    await hooks.fire(stop("s"))

    assert tasks == [asyncio.current_task()] * 2


async def test_while_a_hook_waits_others_run() -> None:
    out: list[str] = []
    hooks = HookManager()
    turn = asyncio.Event()

    @hooks.on(Stop)
    async def waits(event: Stop) -> None:
        out.append(f"{event.session_id} waits")
        if event.session_id == "a":
            await turn.wait()
        else:
            turn.set()
        out.append(f"{event.session_id} ends")

    await asyncio.gather(hooks.fire(stop("a")), hooks.fire(stop("b")))

    assert out == ["a waits", "b waits", "b ends", "a ends"]


async def test_while_a_plain_hook_runs_the_loop_goes_on() -> None:
    ready, go = Flag(), Flag()
    hooks = HookManager()

    @hooks.on(Stop)
    def plain(event: Stop) -> HookOutput:
        ready.set()
        return HookOutput.allow().with_context("went on" if go.wait(LONG) else "was held")

    firing = asyncio.create_task(hooks.fire(stop("s")))
    await asyncio.to_thread(ready.wait, LONG)
    go.set()

    assert (await firing).output.additional_context == "went on"


async def test_a_plain_program_may_fire_inside_a_loop() -> None:
    hooks = HookManager()

    @hooks.on(Stop)
    async def waits(event: Stop) -> HookOutput:
        return HookOutput.allow().with_context(await a_moment())

    assert hooks.fire_sync(stop("s")).output.additional_context == "done"


# -- context variables ---------------------------------------------------------------------------------

user: ContextVar[str] = ContextVar("user", default="nobody")


def test_every_hook_sees_the_callers_context_variables(fire: Callable[..., HookResult]) -> None:
    seen: list[str] = []
    hooks = HookManager()

    @hooks.on(Stop)
    def plain(event: Stop) -> None:
        seen.append(user.get())

    @hooks.on(Stop, inline=True)
    def inline(event: Stop) -> None:
        seen.append(user.get())

    @hooks.on(Stop)
    async def waits(event: Stop) -> None:
        await asyncio.sleep(0)
        seen.append(user.get())

    token = user.set("alice")
    try:
        fire(hooks, stop("s"))
    finally:
        user.reset(token)

    assert seen == ["alice", "alice", "alice"]


def test_a_worker_remembers_no_context_variable_of_the_firing_before(fire: Callable[..., HookResult]) -> None:
    seen: list[str] = []
    hooks = HookManager()

    @hooks.on(Stop)
    def plain(event: Stop) -> None:
        seen.append(user.get())
        user.set("left over")

    fire(hooks, stop("s"))
    fire(hooks, stop("s"))

    assert seen == ["nobody", "nobody"]


# -- cancellation of asyncio's own ---------------------------------------------------------------------


def test_a_hook_that_waits_for_something_cancelled_fails_and_cancels_nobody(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()

    @hooks.on(PreToolUse)
    async def guard(event: PreToolUse) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    @hooks.on(PreToolUse, phase="observe")
    async def audit(event: PreToolUse) -> None:
        await asyncio.sleep(0)

    result = fire(hooks, BASH)

    assert rows(result) == [("guard", "failed"), ("audit", "allowed")]
    assert result.blocked


def test_a_hook_that_raises_a_cancellation_fails_and_cancels_nobody(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()

    def cancels(event: Event) -> None:
        raise asyncio.CancelledError

    async def cancels_async(event: Event) -> None:
        raise asyncio.CancelledError

    hooks.add(cancels, Stop, name="plain")
    hooks.add(cancels_async, Stop, name="async")
    hooks.add(lambda _: None, Stop, name="later")

    assert rows(fire(hooks, stop("s"))) == [("plain", "failed"), ("async", "failed"), ("later", "allowed")]


async def test_cancelling_the_task_that_fires_cancels_the_async_hook_and_the_task() -> None:
    waits, out = asyncio.Event(), []
    hooks = HookManager()

    @hooks.on(PreToolUse)
    async def guard(event: PreToolUse) -> None:
        try:
            waits.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            out.append("cancelled")
            raise

    @hooks.on(PreToolUse, phase="observe")
    async def audit(event: PreToolUse) -> None:
        out.append("never")

    firing = asyncio.create_task(hooks.fire(BASH))
    await waits.wait()
    firing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await firing
    assert (firing.cancelled(), out) == (True, ["cancelled"])


async def test_cancelling_the_task_that_fires_leaves_a_plain_hook_to_itself() -> None:
    waits, go, ended = Flag(), Flag(), Flag()
    hooks = HookManager()

    @hooks.on(Stop)
    def plain(event: Stop) -> None:
        waits.set()
        go.wait(LONG)
        ended.set()

    firing = asyncio.create_task(hooks.fire(stop("s")))
    await asyncio.to_thread(waits.wait, LONG)
    firing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await firing
    go.set()
    assert await asyncio.to_thread(ended.wait, LONG)


async def test_a_timeout_around_the_firing_is_the_callers() -> None:
    hooks = HookManager()

    @hooks.on(Stop, timeout=LONG)
    async def endless(event: Stop) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await hooks.fire(stop("s"))
