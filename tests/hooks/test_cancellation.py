"""The caller says through the context that it no longer waits: running hooks end, later ones are not called."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from threading import Event as Flag
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.events import Event, HookOutput, PreToolUse, Stop, pre_tool_use, stop
from fairlead.hooks import HookContext, HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

BASH = pre_tool_use("s", "Bash", {"command": "ls"})
LONG = 30.0
GONE = "the caller no longer waits"


class Runner:
    """Hooks that say when they run, and never answer."""

    def __init__(self) -> None:
        self.runs = Flag()
        self.release = Flag()

    def plain(self, _: Event) -> None:
        self.runs.set()
        self.release.wait(LONG)

    async def waits(self, _: Event) -> None:
        self.runs.set()
        await asyncio.Event().wait()

    def returns(self, event: Event) -> Coroutine[Any, Any, None]:
        return self.waits(event)


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.release.set()


@pytest.fixture(params=["plain", "waits", "returns"])
def endless(request: pytest.FixtureRequest, runner: Runner) -> Callable[..., Any]:
    """A hook that never answers."""
    hook: Callable[..., Any] = getattr(runner, request.param)
    return hook


def rows(result: HookResult) -> list[tuple[str, str]]:
    return [(run.name, run.outcome) for run in result.runs]


@contextmanager
def cancelled_once(runs: Flag, ctx: HookContext) -> Iterator[None]:
    """Cancel from another thread, as soon as the hook runs."""

    def cancel() -> None:
        runs.wait(LONG)
        ctx.cancellation.cancel()

    thread = Thread(target=cancel)
    thread.start()
    yield
    thread.join()


def test_a_running_hook_ends_and_the_gate_is_denied(
    fire: Callable[..., HookResult], endless: Callable[..., Any], runner: Runner
) -> None:
    hooks = HookManager()
    hooks.add(endless, PreToolUse, name="guard")
    hooks.add(lambda _: HookOutput.grant(), PreToolUse, name="later")
    hooks.add(lambda _: None, PreToolUse, name="audit", phase="observe")
    ctx = HookContext("s")

    with cancelled_once(runner.runs, ctx):
        result = fire(hooks, BASH, ctx)

    assert result.output == HookOutput.deny(f"hook 'guard' failed, so this is denied: {GONE}")
    assert rows(result) == [("guard", "cancelled"), ("later", "skipped"), ("audit", "cancelled")]


def test_elsewhere_the_later_hooks_are_cancelled_too(
    fire: Callable[..., HookResult], endless: Callable[..., Any], runner: Runner
) -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda _: None, Stop, name="first")
    hooks.add(endless, Stop, name="running")
    hooks.add(lambda _: out.append("called"), Stop, name="later")
    ctx = HookContext("s")

    with cancelled_once(runner.runs, ctx):
        result = fire(hooks, stop("s"), ctx)

    assert out == []
    assert rows(result) == [("first", "allowed"), ("running", "cancelled"), ("later", "cancelled")]
    assert [str(run.error) for run in result.failures] == [GONE, GONE]


def test_a_plain_hook_hears_of_it_through_its_context(fire: Callable[..., HookResult]) -> None:
    runs, noticed = Flag(), Flag()
    hooks = HookManager()

    @hooks.on(Stop)
    def listens(event: Stop, ctx: HookContext) -> None:
        cancelled = Flag()
        ctx.cancellation.on_cancel(cancelled.set)
        runs.set()
        if cancelled.wait(LONG) and ctx.cancelled:
            noticed.set()

    ctx = HookContext("s")
    with cancelled_once(runs, ctx):
        result = fire(hooks, stop("s"), ctx)

    assert rows(result) == [("listens", "cancelled")]
    assert noticed.wait(LONG)


async def test_another_task_may_cancel() -> None:
    runs = asyncio.Event()
    hooks = HookManager()

    @hooks.on(PreToolUse)
    async def endless(event: PreToolUse) -> None:
        runs.set()
        await asyncio.Event().wait()

    ctx = HookContext("s")
    firing = asyncio.create_task(hooks.fire(BASH, ctx))
    await runs.wait()
    ctx.cancellation.cancel()
    result = await firing

    assert rows(result) == [("endless", "cancelled")]
    assert result.blocked
    assert not firing.cancelled()


def test_an_async_hook_that_is_cancelled_cleans_up(fire: Callable[..., HookResult]) -> None:
    runs, cleaned = Flag(), Flag()
    hooks = HookManager()

    @hooks.on(Stop, timeout=LONG)
    async def endless(event: Stop) -> None:
        try:
            runs.set()
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    ctx = HookContext("s")
    with cancelled_once(runs, ctx):
        fire(hooks, stop("s"), ctx)

    assert cleaned.wait(5)


@pytest.mark.parametrize("phase", ["check", "observe"])
def test_a_hook_may_cancel_by_itself(fire: Callable[..., HookResult], phase: Any) -> None:
    hooks = HookManager()

    @hooks.on(Stop, phase=phase)
    async def cancels(event: Stop, ctx: HookContext) -> None:
        await asyncio.sleep(0)
        ctx.cancellation.cancel()

    hooks.add(lambda _: None, Stop, name="later", phase=phase)

    result = fire(hooks, stop("s"), HookContext("s"))

    assert rows(result)[1] == ("later", "cancelled")


def test_a_context_that_was_not_cancelled_keeps_no_trace_of_the_firing(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    ctx = HookContext("s")

    @hooks.on(Stop)
    async def waits(event: Stop) -> None:
        await asyncio.sleep(0)

    hooks.add(lambda _: None, Stop, name="plain")
    fire(hooks, stop("s"), ctx)

    assert ctx.cancellation._callbacks == []
