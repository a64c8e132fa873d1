"""Every hook has a timeout, capped by the manager's and the caller's; a slower hook blocks no caller."""

from __future__ import annotations

import asyncio
import inspect
import math
import subprocess
import sys
import textwrap
from threading import Event as Flag
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import until

from fairlead.errors import HookTimeout
from fairlead.events import Event, HookOutput, PreToolUse, Stop, pre_tool_use, stop
from fairlead.hooks import Hook, HookContext, HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

BASH = pre_tool_use("s", "Bash", {"command": "ls"})
SHORT = 0.05
LONG = 30.0


@pytest.fixture
def release() -> Iterator[Flag]:
    """A flag that releases the hooks at the end of a test."""
    flag = Flag()
    yield flag
    flag.set()


@pytest.fixture(params=["plain", "async", "returns a coroutine"])
def endless(request: pytest.FixtureRequest, release: Flag) -> Callable[[Event], Any]:
    """A hook that does not return in time."""

    def plain(event: Event) -> None:
        release.wait(LONG)

    async def waits(event: Event) -> None:
        await asyncio.Event().wait()

    def returns(event: Event) -> Coroutine[Any, Any, None]:
        return waits(event)

    return {"plain": plain, "async": waits, "returns a coroutine": returns}[request.param]


def rows(result: HookResult) -> list[tuple[str, str]]:
    return [(run.name, run.outcome) for run in result.runs]


# -- whose time ----------------------------------------------------------------------------------------


def test_a_hook_that_takes_too_long_denies_on_a_gate(
    fire: Callable[..., HookResult], endless: Callable[[Event], Any]
) -> None:
    hooks = HookManager()
    hooks.add(endless, PreToolUse, name="slow", timeout=SHORT)
    hooks.add(lambda _: None, PreToolUse, name="later")

    result = fire(hooks, BASH)

    assert result.output == HookOutput.deny("hook 'slow' failed, so this is denied: no answer within 0.05 s")
    assert rows(result) == [("slow", "timed out"), ("later", "skipped")]
    assert isinstance(result.runs[0].error, HookTimeout)


def test_a_hook_that_takes_too_long_elsewhere_is_reported_and_the_next_runs(
    fire: Callable[..., HookResult], endless: Callable[[Event], Any], caplog: pytest.LogCaptureFixture
) -> None:
    hooks = HookManager()
    hooks.add(endless, Stop, name="slow", timeout=SHORT)
    hooks.add(lambda _: None, Stop, name="later")

    result = fire(hooks, stop("s"))

    assert (result.blocked, rows(result)) == (False, [("slow", "timed out"), ("later", "allowed")])
    assert [record.getMessage() for record in caplog.records if record.name == "fairlead.hooks"] == [
        "hook 'slow' failed on Stop: no answer within 0.05 s"
    ]


def test_a_coroutine_that_a_hook_returns_too_late_is_closed(fire: Callable[..., HookResult]) -> None:
    late, returned = Flag(), Flag()
    made: list[Coroutine[Any, Any, None]] = []

    async def answer() -> None:
        await asyncio.Event().wait()

    def returns(_event: Stop) -> Coroutine[Any, Any, None]:
        late.wait(LONG)
        made.append(answer())
        returned.set()
        return made[0]

    hooks = HookManager()
    hooks.add(returns, Stop, name="slow", timeout=SHORT)
    result = fire(hooks, stop("s"))
    late.set()
    returned.wait(LONG)

    assert rows(result) == [("slow", "timed out")]
    until(lambda: inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED, "it is closed")


def test_the_managers_time_is_a_cap_on_every_hooks_own(
    fire: Callable[..., HookResult], endless: Callable[[Event], Any]
) -> None:
    hooks = HookManager(timeout=SHORT)
    hooks.add(endless, Stop, name="asks for more", timeout=LONG)
    hooks.add(endless, Stop, name="asks for nothing")

    assert [run.outcome for run in fire(hooks, stop("s")).runs] == ["timed out", "timed out"]


def test_the_managers_time_is_a_cap_on_objects_too(fire: Callable[..., HookResult], release: Flag) -> None:
    class Slow(Hook):
        events = (Stop,)
        timeout = LONG

        def execute(self, _event: Stop, _ctx: HookContext) -> None:
            release.wait(LONG)

    hooks = HookManager(timeout=SHORT)
    hooks.register(Slow())

    assert rows(fire(hooks, stop("s"))) == [("Slow", "timed out")]


def test_a_hook_that_is_included_keeps_the_cap_of_the_manager_it_came_from(
    fire: Callable[..., HookResult], endless: Callable[[Event], Any]
) -> None:
    careful, hooks = HookManager(timeout=SHORT), HookManager(timeout=LONG)
    careful.add(endless, Stop, name="slow", timeout=LONG)

    hooks.include(careful)

    assert rows(fire(hooks, stop("s"))) == [("slow", "timed out")]


def test_the_callers_deadline_is_a_cap_on_all_of_them_together(
    fire: Callable[..., HookResult], endless: Callable[[Event], Any]
) -> None:
    hooks = HookManager()
    hooks.add(endless, Stop, name="first")
    hooks.add(endless, Stop, name="second")

    result = fire(hooks, stop("s"), HookContext("s", deadline=monotonic() + SHORT))

    assert rows(result) == [("first", "timed out"), ("second", "timed out")]
    assert str(result.runs[1].error) == "no time was left to call it"


@pytest.mark.parametrize("inline", [False, True])
def test_a_hook_is_not_called_after_the_deadline(
    fire: Callable[..., HookResult],
    inline: bool,
) -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda _: out.append("called"), PreToolUse, name="guard", inline=inline)

    result = fire(hooks, BASH, HookContext("s", deadline=monotonic() - 1))

    assert out == []
    assert result.reason == "hook 'guard' failed, so this is denied: no time was left to call it"


def test_a_hook_is_told_when_it_must_have_answered(fire: Callable[..., HookResult]) -> None:
    deadlines: dict[str, float | None] = {}
    hooks = HookManager(timeout=LONG)

    @hooks.on(Stop, timeout=10)
    def plain(event: Stop, ctx: HookContext) -> None:
        deadlines["plain"] = ctx.deadline

    @hooks.on(Stop, timeout=10, inline=True)
    def inline(event: Stop, ctx: HookContext) -> None:
        deadlines["inline"] = ctx.deadline

    @hooks.on(Stop, timeout=10)
    async def waits(event: Stop, ctx: HookContext) -> None:
        deadlines["async"] = ctx.deadline

    before = monotonic()
    fire(hooks, stop("s"))
    after = monotonic()

    assert deadlines.keys() == {"plain", "inline", "async"}
    assert [before + 10 <= (deadline or 0) <= after + 10 for deadline in deadlines.values()] == [True] * 3


def test_a_hook_is_told_the_callers_deadline_if_that_is_sooner(fire: Callable[..., HookResult]) -> None:
    deadlines: list[float | None] = []
    hooks = HookManager()
    hooks.add(lambda _, ctx: deadlines.append(ctx.deadline), Stop, timeout=10)
    soon = monotonic() + 5

    fire(hooks, stop("s"), HookContext("s", deadline=soon))

    assert deadlines == [pytest.approx(soon, abs=0.5)]


def test_a_hook_may_have_all_the_time_there_is(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager(timeout=math.inf)

    @hooks.on(Stop, timeout=math.inf)
    def plain(event: Stop) -> None:
        """Answer at once."""

    @hooks.on(Stop, timeout=1e12)
    async def waits(event: Stop) -> None:
        await asyncio.sleep(0)

    assert rows(fire(hooks, stop("s"))) == [("plain", "allowed"), ("waits", "allowed")]


# -- what a timeout is not -----------------------------------------------------------------------------


def raises_one(event: Event) -> None:
    raise TimeoutError("the server did not answer")


async def raises_one_async(event: Event) -> None:
    raise TimeoutError("the server did not answer")


async def raises_one_after_waiting(event: Event) -> None:
    await asyncio.sleep(0)
    raise TimeoutError("the server did not answer")


async def has_a_timeout_of_its_own(event: Event) -> None:
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        raise TimeoutError("the server did not answer") from None


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("function", [raises_one, raises_one_async, raises_one_after_waiting, has_a_timeout_of_its_own])
def test_a_timeout_error_of_the_hooks_own_is_a_failure(
    fire: Callable[..., HookResult],
    function: Callable[..., Any],
    inline: bool,
) -> None:
    hooks = HookManager()
    hooks.add(function, PreToolUse, name="guard", inline=inline)

    result = fire(hooks, BASH)

    assert rows(result) == [("guard", "failed")]
    assert result.reason == ("hook 'guard' failed, so this is denied: TimeoutError: the server did not answer")


# -- what becomes of the hook --------------------------------------------------------------------------


def test_an_async_hook_can_clean_up(fire: Callable[..., HookResult]) -> None:
    cleaned = Flag()
    hooks = HookManager()

    @hooks.on(Stop, timeout=SHORT)
    async def slow(event: Stop) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    result = fire(hooks, stop("s"))

    assert cleaned.wait(LONG)
    assert rows(result) == [("slow", "timed out")]


def test_a_plain_hook_that_answers_too_late_answers_nobody(fire: Callable[..., HookResult], release: Flag) -> None:
    ended = Flag()
    hooks = HookManager()

    @hooks.on(PreToolUse, timeout=SHORT)
    def slow(event: PreToolUse) -> HookOutput:
        release.wait(LONG)
        ended.set()
        return HookOutput.grant()

    first = fire(hooks, BASH)
    release.set()
    assert ended.wait(LONG)
    second = fire(hooks, BASH)

    assert (rows(first), rows(second)) == ([("slow", "timed out")], [("slow", "allowed")])


def test_the_next_firing_has_a_thread_although_the_last_one_is_stuck(
    fire: Callable[..., HookResult], release: Flag
) -> None:
    hooks = HookManager()
    hooks.add(lambda _: release.wait(LONG) and None, Stop, name="stuck", timeout=0.01)
    hooks.add(lambda _: HookOutput.allow().with_context("fine"), Stop, name="fine")

    results = [fire(hooks, stop("s")) for _ in range(10)]

    assert {tuple(rows(result)) for result in results} == {(("stuck", "timed out"), ("fine", "allowed"))}


SCRIPT = """
import asyncio, time
from fairlead import HookManager, PreToolUse, pre_tool_use

hooks = HookManager()

@hooks.on(PreToolUse, timeout=0.1)
{hook}
    {nap}(60)

event = pre_tool_use("s", "Bash", {{}})
result = {fire}
print(result.runs[0].outcome)
"""


@pytest.mark.parametrize("fire", ["hooks.fire_sync(event)", "asyncio.run(hooks.fire(event))"])
@pytest.mark.parametrize(
    ("hook", "nap"),
    [("def slow(event):", "time.sleep"), ("async def slow(event):", "await asyncio.sleep")],
    ids=["plain", "async"],
)
def test_a_hook_that_outlives_its_time_does_not_hold_the_process(fire: str, hook: str, nap: str) -> None:
    script = textwrap.dedent(SCRIPT).format(fire=fire, hook=hook, nap=nap)

    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=20)

    assert (done.stdout, done.stderr) == ("timed out\n", "")


def test_a_blocking_call_in_an_async_hook_does_not_hold_a_plain_program() -> None:
    script = textwrap.dedent(SCRIPT).format(
        fire="hooks.fire_sync(event)", hook="async def slow(event):", nap="time.sleep"
    )

    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=20)

    assert (done.stdout, done.stderr) == ("timed out\n", "")
