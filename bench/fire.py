"""`fire`: the cost of ten async hooks above a bare `await` of the same functions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bench._data import ANSWER, HOOKS, PAYLOAD
from bench._table import Row, Target
from fairlead import HookContext, HookManager, PreToolUse, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench._harness import Effort
    from fairlead import Event, HookOutput

    Function = Callable[[PreToolUse, HookContext], Awaitable[HookOutput]]


async def _answers(event: PreToolUse, ctx: HookContext) -> HookOutput:
    return ANSWER


async def _suspends(event: PreToolUse, ctx: HookContext) -> HookOutput:
    await asyncio.sleep(0)
    return ANSWER


async def _nothing() -> None:
    return None


def rows(effort: Effort) -> list[Row]:
    event = parse(PAYLOAD)
    with asyncio.Runner() as runner:
        variants = {
            "fire": _fired(_answers, event),
            "await": _awaited(_answers, event),
            "fire, suspending": _fired(_suspends, event),
            "await, suspending": _awaited(_suspends, event),
            "fire, no match": _fired(_answers, event, matcher="Write"),
            "await, nothing": _nothing,
        }
        timings = effort.compare({name: effort.looped_async(call, runner) for name, call in variants.items()})
    ten = {name: timing.per(HOOKS) for name, timing in timings.items()}
    bare = "bare await, same functions"
    return [
        Row(
            "fire",
            "10 async hooks, per hook",
            "µs",
            ten["fire"],
            bare,
            ten["await"],
            shows="difference",
            target=Target("difference", 5),
        ),
        Row(
            "fire",
            "10 hooks that suspend once, per hook",
            "µs",
            ten["fire, suspending"],
            bare,
            ten["await, suspending"],
            shows="difference",
        ),
        Row(
            "fire",
            "10 hooks, none matches, per event",
            "µs",
            timings["fire, no match"],
            "await of an empty coroutine",
            timings["await, nothing"],
            shows="difference",
        ),
    ]


def _fired(function: Function, event: Event, matcher: str = "Bash") -> Callable[[], Awaitable[object]]:
    hooks = HookManager()
    for number in range(HOOKS):
        hooks.on(PreToolUse, matcher=matcher, name=f"hook {number}")(function)
    return lambda: hooks.fire(event)


def _awaited(function: Function, event: Event) -> Callable[[], Awaitable[object]]:
    assert isinstance(event, PreToolUse)
    ctx = HookContext(event.session_id)

    async def ten() -> None:
        for _ in range(HOOKS):
            await function(event, ctx)

    return ten
