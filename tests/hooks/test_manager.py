"""Firing events: which hooks are called, in which order, and the result. With `fire` and `fire_sync`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, Mock

import pytest

from fairlead.events import (
    Event,
    HookEvent,
    HookOutput,
    PostToolUse,
    PreToolUse,
    SessionStart,
    Stop,
    UserPromptSubmit,
    parse,
    post_tool_use,
    pre_tool_use,
    stop,
    user_prompt_submit,
)
from fairlead.hooks import Hook, HookContext, HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

BASH = pre_tool_use("s", "Bash", {"command": "ls"})
NO = HookOutput.block("no")


def rows(result: HookResult) -> list[tuple[str, str]]:
    return [(run.name, run.outcome) for run in result.runs]


# -- order ---------------------------------------------------------------------------------------------


def test_higher_priority_runs_first_and_a_tie_runs_in_order_of_registration(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda _: out.append("a"), Stop, name="a")
    hooks.add(lambda _: out.append("b"), Stop, name="b", priority=100)
    hooks.add(lambda _: out.append("c"), Stop, name="c", priority=-100)
    hooks.add(lambda _: out.append("d"), Stop, name="d")
    hooks.add(lambda _: out.append("e"), Stop, name="e", priority=100)

    result = fire(hooks, stop("s"))

    assert out == ["b", "e", "a", "d", "c"]
    assert [run.name for run in result.runs] == out


def test_phases_go_before_priorities(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda _: out.append("observe"), PreToolUse, name="o", phase="observe", priority=100)
    hooks.add(lambda _: out.append("check"), PreToolUse, name="c")
    hooks.add(lambda _: out.append("rewrite"), PreToolUse, name="r", phase="rewrite", priority=-100)

    fire(hooks, BASH)

    assert out == ["rewrite", "check", "observe"]


def test_plain_and_async_hooks_share_one_order(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()

    @hooks.on(Stop)
    def a(event: Stop) -> None:
        out.append("a")

    @hooks.on(Stop)
    async def b(event: Stop) -> None:
        await asyncio.sleep(0)
        out.append("b")

    @hooks.on(Stop, inline=True)
    def c(event: Stop) -> None:
        out.append("c")

    @hooks.on(Stop)
    async def d(event: Stop) -> None:
        out.append("d")

    fire(hooks, stop("s"))

    assert out == ["a", "b", "c", "d"]


# -- which hooks are called ----------------------------------------------------------------------------


def test_without_hooks_everything_is_allowed(fire: Callable[..., HookResult]) -> None:
    result = fire(HookManager(), BASH)

    assert (result.output, result.runs) == (HookOutput.allow(), ())
    assert result.event is BASH


def test_a_hook_is_called_for_its_events_only(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()

    @hooks.on(PreToolUse, PostToolUse)
    def tools(event: PreToolUse | PostToolUse) -> None:
        out.append(event.event_name)

    for event in (BASH, stop("s"), post_tool_use("s", "Bash", "ok"), user_prompt_submit("s", "hi")):
        fire(hooks, event)

    assert out == ["PreToolUse", "PostToolUse"]


def test_a_hook_of_all_events_is_also_called_for_unknown_ones(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda event: out.append(event.event_name), Event)

    fire(hooks, parse({"hook_event_name": "BrandNew", "session_id": "s"}))
    fire(hooks, stop("s"))

    assert out == ["BrandNew", "Stop"]


@pytest.mark.parametrize(
    ("tool", "called"), [("Bash", ["exact", "both", "pattern"]), ("Write", ["both"]), ("BashOutput", ["pattern"])]
)
def test_a_matcher_decides_by_the_tool(fire: Callable[..., HookResult], tool: str, called: list[str]) -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda _: out.append("exact"), PreToolUse, name="exact", matcher="Bash")
    hooks.add(lambda _: out.append("both"), PreToolUse, name="both", matcher="Bash|Write")
    hooks.add(lambda _: out.append("pattern"), PreToolUse, name="pattern", matcher="^Ba")

    result = fire(hooks, pre_tool_use("s", tool, {}))

    assert out == called
    assert [run.name for run in result.runs] == called


def test_a_matcher_decides_by_the_source_of_a_session(fire: Callable[..., HookResult]) -> None:
    out: list[str | None] = []
    hooks = HookManager()

    @hooks.on(SessionStart, matcher="startup|clear")
    def greet(event: SessionStart) -> None:
        out.append(event.source)

    for source in ("startup", "resume", "clear", None, "startup"):
        fire(hooks, SessionStart(session_id="s", source=source))

    assert out == ["startup", "clear", "startup"]


def test_a_function_as_matcher_is_called_for_every_event(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()

    @hooks.on(PreToolUse, matcher=lambda event: "rm" in event.tool_input["command"])
    def guard(event: PreToolUse) -> None:
        out.append(event.tool_input["command"])

    for command in ("ls", "rm -rf x", "ls", "rm y"):
        fire(hooks, pre_tool_use("s", "Bash", {"command": command}))

    assert out == ["rm -rf x", "rm y"]


def test_thousands_of_subjects_are_each_matched_right(fire: Callable[..., HookResult]) -> None:
    """More than the manager caches."""
    hooks = HookManager()
    hooks.add(lambda _: NO, PreToolUse, matcher="[02468]$", inline=True)

    wrong = [
        n for n in [*range(5000), *range(10)] if hooks.fire_sync(pre_tool_use("s", f"t{n}", {})).blocked != (n % 2 == 0)
    ]

    assert wrong == []
    assert fire(hooks, pre_tool_use("s", "t4", {})).blocked


# -- the result ----------------------------------------------------------------------------------------


def test_a_block_skips_the_checks_after_it_but_no_observer(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()

    @hooks.on(PreToolUse, priority=100)
    def guard(event: PreToolUse) -> HookOutput:
        out.append("guard")
        return NO

    @hooks.on(PreToolUse)
    async def later(event: PreToolUse) -> None:
        out.append("later")

    @hooks.on(PreToolUse, phase="observe")
    async def audit(event: PreToolUse) -> None:
        out.append("audit")

    result = fire(hooks, BASH)

    assert out == ["guard", "audit"]
    assert rows(result) == [("guard", "blocked"), ("later", "skipped"), ("audit", "allowed")]
    assert (result.blocked, result.reason) == (True, "no")


def test_an_observer_sees_the_outcome_of_a_rewrite_and_changes_nothing(fire: Callable[..., HookResult]) -> None:
    seen: list[dict[str, Any]] = []
    hooks = HookManager()

    @hooks.on(PreToolUse, phase="observe")
    def audit(event: PreToolUse) -> HookOutput:
        seen.append(event.tool_input)
        return HookOutput.deny("me").with_updated_input({}).with_context("mine")

    @hooks.on(PreToolUse, phase="rewrite")
    async def rewrite(event: PreToolUse) -> HookOutput:
        return HookOutput.allow().with_updated_input({"command": "ls -l"})

    result = fire(hooks, BASH)

    assert seen == [{"command": "ls -l"}]
    assert result.output == HookOutput(updated_input={"command": "ls -l"})
    assert isinstance(result.event, PreToolUse)
    assert result.event.tool_input == {"command": "ls -l"}


def test_a_guard_checks_what_was_rewritten_not_what_was_asked(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()

    @hooks.on(PreToolUse, priority=100)
    def guard(event: PreToolUse) -> HookOutput | None:
        return NO if "rm" in event.tool_input["command"] else None

    @hooks.on(PreToolUse, phase="rewrite", priority=-100)
    def rewrite(event: PreToolUse) -> HookOutput:
        return HookOutput.allow().with_updated_input({"command": "rm"})

    assert fire(hooks, BASH).blocked


def test_answers_are_merged(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    hooks.add(lambda _: HookOutput.grant("known").with_context("a"), PreToolUse, name="a")
    hooks.add(lambda _: HookOutput.ask("sure?"), PreToolUse, name="b")
    hooks.add(lambda _: None, PreToolUse, name="c")
    hooks.add(lambda _: HookOutput.allow().with_context("d").with_suppressed_logging(), PreToolUse, name="d")

    assert fire(hooks, BASH).output == HookOutput(
        permission="ask", permission_reason="sure?", additional_context="a\nd", suppress_logging=True
    )


def test_a_block_on_an_event_that_has_happened_skips_no_hook(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    hooks.add(lambda _: NO, PostToolUse, name="a")
    hooks.add(lambda _: None, PostToolUse, name="b")

    result = fire(hooks, post_tool_use("s", "Bash", "ok"))

    assert rows(result) == [("a", "blocked"), ("b", "allowed")]


def test_a_block_of_a_stop_keeps_going_and_skips_the_rest(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    hooks.add(lambda _: HookOutput.block("go on"), Stop, name="a")
    hooks.add(lambda _: None, Stop, name="b")

    result = fire(hooks, stop("s"))

    assert rows(result) == [("a", "blocked"), ("b", "skipped")]
    assert result.reason == "go on"


def test_a_row_says_how_long_the_hook_took(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    hooks.add(lambda _: None, Stop)

    (run,) = fire(hooks, stop("s")).runs

    assert 0 < run.seconds < 30


def test_the_event_reaches_the_hook_as_it_is(fire: Callable[..., HookResult]) -> None:
    seen: list[Event] = []
    hooks = HookManager()

    @hooks.on(Event)
    def look(event: Event) -> None:
        seen.append(event)

    fire(hooks, BASH)

    assert seen[0] is BASH


# -- whatever can be called ----------------------------------------------------------------------------


def two(event: PreToolUse, ctx: HookContext) -> HookOutput:
    return HookOutput.block(f"{event.tool_name} in {ctx.session_id}")


def one(event: PreToolUse) -> HookOutput:
    return HookOutput.block(f"{event.tool_name} in {event.session_id}")


async def async_two(event: PreToolUse, ctx: HookContext) -> HookOutput:
    return two(event, ctx)


async def async_one(event: PreToolUse) -> HookOutput:
    return one(event)


async def async_that_waits(event: PreToolUse) -> HookOutput:
    await asyncio.sleep(0)
    return one(event)


def returns_a_coroutine(event: PreToolUse) -> Coroutine[Any, Any, HookOutput]:
    return async_that_waits(event)


def configured(limit: int, event: PreToolUse, ctx: HookContext, *, strict: bool = False) -> HookOutput:
    assert (limit, strict) in {(3, False), (3, True)}
    return two(event, ctx)


def configured_one(limit: int, event: PreToolUse) -> HookOutput:
    assert limit == 3
    return one(event)


async def async_configured(limit: int, event: PreToolUse, ctx: HookContext) -> HookOutput:
    return configured(limit, event, ctx)


class Callables:
    def __call__(self, event: PreToolUse, ctx: HookContext) -> HookOutput:
        return two(event, ctx)

    def method(self, event: PreToolUse, ctx: HookContext) -> HookOutput:
        return two(event, ctx)

    def method_one(self, event: PreToolUse) -> HookOutput:
        return one(event)

    async def async_method(self, event: PreToolUse) -> HookOutput:
        return one(event)

    @classmethod
    def of_the_class(cls, event: PreToolUse, ctx: HookContext) -> HookOutput:
        return two(event, ctx)

    @staticmethod
    def static(event: PreToolUse) -> HookOutput:
        return one(event)


class OneCallable:
    def __call__(self, event: PreToolUse) -> HookOutput:
        return one(event)


class AsyncCallable:
    async def __call__(self, event: PreToolUse, ctx: HookContext) -> HookOutput:
        return two(event, ctx)


class Wrapper:
    """A usual decorator: it keeps the wrapped function in `func`."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def __call__(self, event: PreToolUse, ctx: HookContext) -> HookOutput:
        return two(event, ctx)


def anything(*args: Any) -> HookOutput:
    return two(*args)


CALLABLES: dict[str, Callable[..., Any]] = {
    "two parameters": two,
    "one parameter": one,
    "async, two parameters": async_two,
    "async, one parameter": async_one,
    "async that waits": async_that_waits,
    "lambda": lambda event: HookOutput.block(f"{event.tool_name} in s"),
    "lambda with two parameters": lambda event, ctx: configured(3, event, ctx),
    "lambda that returns a coroutine": lambda event, ctx: async_configured(3, event, ctx),
    "plain function that returns a coroutine": returns_a_coroutine,
    "callable object": Callables(),
    "callable object, one parameter": OneCallable(),
    "async callable object": AsyncCallable(),
    "bound method": Callables().method,
    "bound method, one parameter": Callables().method_one,
    "async bound method": Callables().async_method,
    "class method": Callables.of_the_class,
    "static method": Callables.static,
    "partial": partial(configured, 3),
    "partial with a keyword": partial(configured, 3, strict=True),
    "partial that leaves one parameter": partial(configured_one, 3),
    "partial of a partial": partial(partial(configured, 3), strict=True),
    "async partial": partial(async_configured, 3),
    "partial of a bound method": partial(Callables().method),
    "star": anything,
    "wrapper around a plain function": Wrapper(two),
    "wrapper around an async function": Wrapper(async_two),
}


@pytest.mark.parametrize("function", CALLABLES.values(), ids=CALLABLES)
def test_any_callable_that_takes_an_event_can_be_a_hook(
    fire: Callable[..., HookResult], function: Callable[..., Any]
) -> None:
    for inline in (False, True):
        hooks = HookManager()
        hooks.add(function, PreToolUse, name="it", inline=inline)

        result = fire(hooks, BASH)

        assert result.output == HookOutput.block("Bash in s")
        assert rows(result) == [("it", "blocked")]


@pytest.mark.timeout(5)
@pytest.mark.parametrize("mock", [Mock, AsyncMock])
def test_a_mock_can_be_a_hook(fire: Callable[..., HookResult], mock: type[Mock]) -> None:
    hooks = HookManager()
    double = mock(return_value=NO)
    hooks.add(double, PreToolUse, name="it")

    assert fire(hooks, BASH).output == NO
    assert double.call_args.args[0] is BASH


def test_a_method_of_a_builtin_can_be_an_observer(fire: Callable[..., HookResult]) -> None:
    seen: list[Event] = []
    hooks = HookManager()
    hooks.add(seen.append, Event, phase="observe")

    result = fire(hooks, BASH)

    assert (seen, rows(result)) == ([BASH], [("append", "allowed")])


def test_a_parameter_with_a_default_is_not_mistaken_for_the_context(fire: Callable[..., HookResult]) -> None:
    """`lambda event, n=n: …` is how a loop makes functions."""
    out: list[int] = []
    hooks = HookManager()
    for n in range(3):
        hooks.add(lambda _, n=n: out.append(n), Stop, name=f"hook {n}")

    fire(hooks, stop("s"))

    assert out == [0, 1, 2]


def test_a_parameter_named_ctx_gets_the_context_whatever_its_default(fire: Callable[..., HookResult]) -> None:
    out: list[HookContext | None] = []
    hooks = HookManager()

    @hooks.on(Stop)
    def note(event: Stop, ctx: HookContext | None = None) -> None:
        out.append(ctx)

    fire(hooks, stop("s"))

    assert isinstance(out[0], HookContext)


# -- hook objects --------------------------------------------------------------------------------------


class Guard(Hook):
    name = "guard"
    events = (PreToolUse, UserPromptSubmit)
    priority = 10

    def execute(self, event: PreToolUse | UserPromptSubmit, _: HookContext) -> HookOutput:
        return HookOutput.block(event.event_name)


class AsyncGuard(Hook):
    name = "async guard"
    priority = 20
    matcher = "Bash"
    events = (PreToolUse,)

    async def execute(self, event: PreToolUse, _: HookContext) -> HookOutput:
        await asyncio.sleep(0)
        return HookOutput.ask(event.event_name)


class Audit(Hook):
    events = (Event,)
    phase = "observe"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def execute(self, event: Event, _: HookContext) -> None:
        self.seen.append(event.event_name)


def test_objects_are_hooks_with_all_that_they_ask_for(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    audit = Audit()
    for hook in (audit, Guard(), AsyncGuard()):
        hooks.register(hook)

    results = [fire(hooks, event) for event in (BASH, pre_tool_use("s", "Write", {}), stop("s"))]

    assert [rows(result) for result in results] == [
        [("async guard", "allowed"), ("guard", "blocked"), ("Audit", "allowed")],
        [("guard", "blocked"), ("Audit", "allowed")],
        [("Audit", "allowed")],
    ]
    assert audit.seen == ["PreToolUse", "PreToolUse", "Stop"]


def test_an_object_that_answers_nothing_denies_on_a_gate(fire: Callable[..., HookResult]) -> None:
    class Forgotten(Hook):
        events = (PreToolUse,)

    hooks = HookManager()
    hooks.register(Forgotten())

    assert fire(hooks, BASH).reason == "hook 'Forgotten' failed, so this is denied: NotImplementedError"


# -- execute -------------------------------------------------------------------------------------------


async def test_execute_gives_the_merged_output_alone() -> None:
    hooks = HookManager()
    hooks.register(Guard())

    output = await hooks.execute(HookEvent.PreToolUse, BASH, HookContext("s"))

    assert output == HookOutput.block("PreToolUse")


async def test_execute_refuses_an_event_of_another_kind() -> None:
    with pytest.raises(ValueError, match=r"^expected Stop, got PreToolUse$"):
        await HookManager().execute(HookEvent.Stop, BASH)
