"""`fire_sync`: ten sync hooks, in the caller's thread against pluggy, and in worker threads against a thread pool."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING

from bench._data import ANSWER, HOOKS, PAYLOAD
from bench._table import Row
from fairlead import HookContext, HookManager, PreToolUse, parse

try:
    import pluggy
except ImportError:
    pluggy = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench._harness import Effort
    from fairlead import HookOutput

    Call = Callable[[], object]


def check(event: PreToolUse, ctx: HookContext) -> HookOutput:
    return ANSWER


def rows(effort: Effort) -> list[Row]:
    event = parse(PAYLOAD)
    assert isinstance(event, PreToolUse)
    with ThreadPoolExecutor(1) as pool:
        calls: dict[str, Call] = {
            "inline": _fired(event, inline=True),
            "threaded": _fired(event, inline=False),
            "bare": _called(event),
            "pool": _pooled(event, pool),
        }
        if pluggy is not None:
            calls["pluggy"] = _by_pluggy(event)
        timings = effort.compare({name: effort.looped(call) for name, call in calls.items()})
    ten = {name: timing.per(HOOKS) for name, timing in timings.items()}
    inline = "10 sync hooks, inline, per hook"
    return [
        Row("fire_sync", inline, "µs", ten["inline"], "bare call, same functions", ten["bare"], shows="difference"),
        Row("fire_sync", inline, "µs", ten["inline"], "pluggy 1.7, same functions", ten.get("pluggy")),
        Row(
            "fire_sync",
            "10 sync hooks, threaded, per hook",
            "µs",
            ten["threaded"],
            "ThreadPoolExecutor, same",
            ten["pool"],
        ),
    ]


def _fired(event: PreToolUse, *, inline: bool) -> Call:
    hooks = HookManager()
    for number in range(HOOKS):
        hooks.on(PreToolUse, matcher="Bash", name=f"hook {number}", inline=inline)(check)
    return lambda: hooks.fire_sync(event)


def _called(event: PreToolUse) -> Call:
    ctx = HookContext(event.session_id)

    def ten() -> None:
        for _ in range(HOOKS):
            check(event, ctx)

    return ten


def _pooled(event: PreToolUse, pool: ThreadPoolExecutor) -> Call:
    ctx = HookContext(event.session_id)

    def ten() -> None:
        for _ in range(HOOKS):
            pool.submit(check, event, ctx).result(60)

    return ten


def _by_pluggy(event: PreToolUse) -> Call:
    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(type("Spec", (), {"check": pluggy.HookspecMarker("bench")(_copy())}))
    for _ in range(HOOKS):
        manager.register(SimpleNamespace(check=pluggy.HookimplMarker("bench")(_copy())))
    ctx = HookContext(event.session_id)
    call = manager.hook.check
    assert len(call(event=event, ctx=ctx)) == HOOKS
    return lambda: call(event=event, ctx=ctx)


def _copy() -> FunctionType:
    """Return a copy of `check`: pluggy sets attributes on the function."""
    assert isinstance(check, FunctionType)
    return FunctionType(check.__code__, check.__globals__)
