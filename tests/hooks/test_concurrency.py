"""Many threads, many tasks, hooks that register hooks, and a fork: one manager serves them all."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread, get_ident
from threading import Event as Flag
from typing import TYPE_CHECKING

import pytest

from fairlead.errors import RegistrationError
from fairlead.events import HookOutput, PreToolUse, Stop, pre_tool_use, stop
from fairlead.hooks import HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = 30.0

# -- registration while firing -------------------------------------------------------------------------


def test_a_hook_that_is_registered_by_a_hook_is_called_from_the_next_firing_on(
    fire: Callable[..., HookResult],
) -> None:
    out: list[str] = []
    hooks = HookManager()

    @hooks.on(Stop, priority=1)
    def registers(event: Stop) -> None:
        out.append("registers")
        hooks.add(lambda _: out.append("new"), Stop, name="new", replace=True)

    fire(hooks, stop("s"))
    fire(hooks, stop("s"))

    assert out == ["registers", "registers", "new"]


def test_a_hook_that_is_taken_away_by_a_hook_is_not_called_from_the_next_firing_on(
    fire: Callable[..., HookResult],
) -> None:
    out: list[str] = []
    hooks = HookManager()

    @hooks.on(Stop, priority=1)
    def removes(event: Stop) -> None:
        out.append(f"removes: {hooks.unregister('old')}")

    hooks.add(lambda _: out.append("old"), Stop, name="old")

    fire(hooks, stop("s"))
    fire(hooks, stop("s"))

    assert out == ["removes: True", "old", "removes: False"]


def test_a_hook_may_take_itself_away(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()

    @hooks.on(Stop)
    async def once(event: Stop) -> None:
        out.append("once")
        hooks.unregister("once")

    fire(hooks, stop("s"))
    fire(hooks, stop("s"))

    assert out == ["once"]


def test_a_hook_may_fire_another_event(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda event: out.append(event.tool_name), PreToolUse)

    @hooks.on(Stop)
    def nested(event: Stop) -> None:
        hooks.fire_sync(pre_tool_use("s", "Bash", {}))

    @hooks.on(Stop)
    async def nested_async(event: Stop) -> None:
        await hooks.fire(pre_tool_use("s", "Write", {}))

    fire(hooks, stop("s"))

    assert out == ["Bash", "Write"]


def test_registering_in_other_threads_never_disturbs_a_firing(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    hooks.add(lambda _: HookOutput.block("no"), PreToolUse, name="guard", priority=-1)
    over = Flag()

    def come_and_go(name: str) -> None:
        while not over.is_set():
            with hooks.add(lambda _: None, PreToolUse, name=name, inline=True):
                pass

    threads = [Thread(target=come_and_go, args=(f"guest {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        results = [fire(hooks, pre_tool_use("s", f"tool {n % 7}", {})) for n in range(100)]
    finally:
        over.set()
        for thread in threads:
            thread.join()

    assert {result.reason for result in results} == {"no"}
    assert {result.runs[-1].name for result in results} == {"guard"}
    assert hooks.hook_names() == ["guard"]


def test_one_of_many_threads_gets_a_name() -> None:
    hooks = HookManager()
    start = Barrier(8)

    def register(_: int) -> bool:
        start.wait(LONG)
        try:
            hooks.add(lambda _: None, Stop, name="mine")
        except RegistrationError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(register, range(8)))

    assert sorted(won) == [False] * 7 + [True]
    assert hooks.hook_names() == ["mine"]


# -- many at once --------------------------------------------------------------------------------------


def test_many_threads_fire_at_once_and_each_gets_its_own_answer(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()

    @hooks.on(PreToolUse)
    def odd(event: PreToolUse) -> HookOutput | None:
        n = event.tool_input["n"]
        return HookOutput.block(f"{n} is odd") if n % 2 else None

    @hooks.on(PreToolUse)
    async def even(event: PreToolUse) -> HookOutput:
        await asyncio.sleep(0)
        return HookOutput.allow().with_context(f"{event.tool_input['n']} is even")

    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(lambda n: fire(hooks, pre_tool_use("s", "Bash", {"n": n})), range(200)))

    assert [result.reason or result.output.additional_context for result in results] == [
        f"{n} is odd" if n % 2 else f"{n} is even" for n in range(200)
    ]


async def test_plain_hooks_of_firings_in_one_loop_run_side_by_side() -> None:
    """Each waits for all the others, so they pass only if none waits for a free thread."""
    hooks = HookManager()
    meet = Barrier(20)

    @hooks.on(Stop)
    def meets(event: Stop) -> None:
        meet.wait(LONG)

    results = await asyncio.gather(*(hooks.fire(stop(f"s{n}")) for n in range(20)))

    assert {run.outcome for result in results for run in result.runs} == {"allowed"}


async def test_async_hooks_of_firings_in_one_loop_run_side_by_side() -> None:
    hooks = HookManager()
    meet = asyncio.Barrier(20)

    @hooks.on(Stop)
    async def meets(event: Stop) -> None:
        await meet.wait()

    results = await asyncio.gather(*(hooks.fire(stop(f"s{n}")) for n in range(20)))

    assert {run.outcome for result in results for run in result.runs} == {"allowed"}


def test_firings_one_after_the_other_share_their_threads(fire: Callable[..., HookResult]) -> None:
    used: set[int] = set()
    hooks = HookManager()
    hooks.add(lambda _: used.add(get_ident()), Stop)

    for _ in range(50):
        fire(hooks, stop("s"))

    assert get_ident() not in used
    assert len(used) < 10


def test_an_inline_hook_runs_in_the_callers_own_thread(fire: Callable[..., HookResult]) -> None:
    used: list[int] = []
    hooks = HookManager()
    hooks.add(lambda _: used.append(get_ident()), Stop, inline=True)

    fire(hooks, stop("s"))

    assert used == [get_ident()]


# -- processes -----------------------------------------------------------------------------------------

FORK = """
import os, signal, threading
from fairlead import HookManager, HookOutput, PreToolUse, pre_tool_use
from fairlead.hooks import _workers

hooks = HookManager(timeout=5)
hooks.add(lambda event: HookOutput.block("no"), PreToolUse, name="plain")
event = pre_tool_use("s", "Bash", {})
hooks.fire_sync(event)

def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(0 if hooks.fire_sync(event).reason == "no" else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

"""


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", FORK + textwrap.dedent(script)],
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    )
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_child_made_by_fork_can_fire() -> None:
    assert run("print(fork(), hooks.fire_sync(event).reason)") == "0 no\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_child_made_by_fork_while_a_thread_takes_a_worker_can_fire() -> None:
    """The fork happens with the lock held, as it may in a program with threads."""
    script = """
    held, go = threading.Event(), threading.Event()

    def hold():
        with _workers._lock:
            held.set()
            go.wait(30)

    threading.Thread(target=hold, daemon=True).start()
    held.wait(30)
    print(fork())
    go.set()
    """

    assert run(script) == "0\n"


COLD = """
import sys
from fairlead import HookManager, HookOutput, PreToolUse, encode, parse

hooks = HookManager()

@hooks.on(PreToolUse, matcher="Bash|^Wri")
def guard(event, ctx):
    return HookOutput.block("no")

event = parse(b'{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"a": 1}}')
encode(event)
assert hooks.fire_sync(event).reason == "no"
heavy = {"asyncio", "concurrent.futures", "difflib", "json", "logging", "socket", "subprocess"}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_plain_program_imports_nothing_that_it_does_not_need() -> None:
    done = subprocess.run([sys.executable, "-c", COLD], check=True, capture_output=True, text=True, timeout=20)

    assert done.stdout == "[]\n"
