"""A hook that fails denies on a gate, is reported elsewhere, and never affects the others."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.errors import HookFailure
from fairlead.events import Event, HookOutput, PostToolUse, PreToolUse, Stop, SubagentStop, post_tool_use, pre_tool_use
from fairlead.events import stop as stop_event
from fairlead.hooks import HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

BASH = pre_tool_use("s", "Bash", {"command": "ls"})
PLAIN = [stop_event("s"), post_tool_use("s", "Bash", "ok"), SubagentStop(session_id="s", agent_id="a1")]


def rows(result: HookResult) -> list[tuple[str, str]]:
    return [(run.name, run.outcome) for run in result.runs]


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(level, message) for name, level, message in caplog.record_tuples if name == "fairlead.hooks"]


def raises(event: Event) -> None:
    raise ValueError("broken")


async def raises_async(event: Event) -> None:
    raise ValueError("broken")


async def raises_after_waiting(event: Event) -> None:
    await asyncio.sleep(0)
    raise ValueError("broken")


def returns_what_raises(event: Event) -> Coroutine[Any, Any, None]:
    return raises_after_waiting(event)


def exits(event: Event) -> None:
    sys.exit(3)


async def exits_async(event: Event) -> None:
    sys.exit(3)


async def exits_after_waiting(event: Event) -> None:
    await asyncio.sleep(0)
    sys.exit(3)


def runs_out(event: Event) -> Any:
    return next(iter([]))


async def runs_out_async(event: Event) -> Any:
    return next(iter([]))


def says_yes(event: Event) -> bool:
    return True


async def says_yes_async(event: Event) -> bool:
    return True


def rewrites_badly(event: Event) -> HookOutput:
    return HookOutput(updated_input="ls")  # type: ignore[arg-type]


BROKEN: list[tuple[Callable[..., Any], str]] = [
    (raises, "ValueError: broken"),
    (raises_async, "ValueError: broken"),
    (raises_after_waiting, "ValueError: broken"),
    (returns_what_raises, "ValueError: broken"),
    (exits, "it raised SystemExit"),
    (exits_async, "it raised SystemExit"),
    (exits_after_waiting, "it raised SystemExit"),
    (says_yes, "TypeError: a hook returns a HookOutput or None, not bool"),
    (says_yes_async, "TypeError: a hook returns a HookOutput or None, not bool"),
    (rewrites_badly, "TypeError: updated_input must be a dict, not str"),
]
broken = pytest.mark.parametrize(("function", "message"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
inline_or_not = pytest.mark.parametrize("inline", [False, True], ids=["worker", "inline"])


@broken
def test_on_a_gate_a_failure_denies_and_names_the_hook(
    fire: Callable[..., HookResult], function: Callable[..., Any], message: str
) -> None:
    for inline in (False, True):
        hooks = HookManager()
        hooks.add(function, PreToolUse, name="guard", inline=inline)
        hooks.add(lambda _: None, PreToolUse, name="later")
        hooks.add(lambda _: None, PreToolUse, name="audit", phase="observe")

        result = fire(hooks, BASH)

        assert result.output == HookOutput.deny(f"hook 'guard' failed, so this is denied: {message}")
        assert rows(result) == [("guard", "failed"), ("later", "skipped"), ("audit", "allowed")]


@broken
def test_elsewhere_a_failure_is_reported_and_the_next_hook_runs(
    fire: Callable[..., HookResult], caplog: pytest.LogCaptureFixture, function: Callable[..., Any], message: str
) -> None:
    hooks = HookManager()
    hooks.add(function, Event, name="a")
    hooks.add(function, Event, name="b", inline=True)
    hooks.add(lambda _: HookOutput.allow().with_context("still here"), Event, name="later")
    for event in PLAIN:
        caplog.clear()

        result = fire(hooks, event)

        assert result.output == HookOutput(additional_context="still here")
        assert rows(result) == [("a", "failed"), ("b", "failed"), ("later", "allowed")]
        assert logged(caplog) == [
            (logging.WARNING, f"hook 'a' failed on {event.event_name}: {message}"),
            (logging.WARNING, f"hook 'b' failed on {event.event_name}: {message}"),
        ]


@inline_or_not
@pytest.mark.parametrize("function", [runs_out, runs_out_async])
def test_a_hook_that_raises_stop_iteration_fails_like_any_other(
    fire: Callable[..., HookResult],
    function: Callable[..., Any],
    inline: bool,
) -> None:
    hooks = HookManager()
    hooks.add(function, PreToolUse, name="guard", inline=inline, timeout=5)

    result = fire(hooks, BASH)

    assert rows(result) == [("guard", "failed")]
    assert "StopIteration" in str(result.reason)


def test_the_error_itself_is_reported(fire: Callable[..., HookResult]) -> None:
    error = ValueError("broken")

    def fails(event: Event) -> None:
        raise error

    hooks = HookManager()
    hooks.add(fails, Stop)

    assert fire(hooks, stop_event("s")).failures[0].error is error


def test_exit_in_a_hook_does_not_end_the_program(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    hooks.add(exits, Stop)

    (run,) = fire(hooks, stop_event("s")).runs

    assert isinstance(run.error, HookFailure)


@pytest.mark.parametrize("function", [exits_async, exits_after_waiting])
def test_exit_in_an_async_hook_leaves_no_task_that_is_reported_later(
    fire: Callable[..., HookResult], caplog: pytest.LogCaptureFixture, function: Callable[..., Any]
) -> None:
    gc.collect()
    caplog.clear()
    hooks = HookManager()
    hooks.add(function, PreToolUse)

    fire(hooks, BASH)
    gc.collect()

    assert [record for record in caplog.record_tuples if record[0] == "asyncio"] == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_ctrl_c_in_the_callers_own_thread_reaches_the_caller(
    fire: Callable[..., HookResult],
    asynchronous: bool,
) -> None:
    def interrupted(event: Event) -> None:
        raise KeyboardInterrupt

    async def interrupted_async(event: Event) -> None:
        raise KeyboardInterrupt

    hooks = HookManager()
    hooks.add(interrupted, Stop, inline=True)
    if asynchronous and fire is not HookManager.fire_sync:
        hooks.add(interrupted_async, Stop, priority=1)

    with pytest.raises(KeyboardInterrupt):
        fire(hooks, stop_event("s"))


# -- what is logged ------------------------------------------------------------------------------------


def test_a_denial_says_it_all_and_nothing_is_logged(
    fire: Callable[..., HookResult], caplog: pytest.LogCaptureFixture
) -> None:
    hooks = HookManager()
    hooks.add(raises, PreToolUse)

    fire(hooks, BASH)

    assert logged(caplog) == []


def test_an_observer_that_fails_on_a_gate_is_logged_for_no_denial_says_it(
    fire: Callable[..., HookResult], caplog: pytest.LogCaptureFixture
) -> None:
    hooks = HookManager()
    hooks.add(raises, PreToolUse, name="audit", phase="observe")

    result = fire(hooks, BASH)

    assert (result.output, rows(result)) == (HookOutput.allow(), [("audit", "failed")])
    assert logged(caplog) == [(logging.WARNING, "hook 'audit' failed on PreToolUse: ValueError: broken")]


def test_what_went_well_is_not_logged(fire: Callable[..., HookResult], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "fairlead")
    hooks = HookManager()
    hooks.add(lambda _: HookOutput.block("no"), Event)

    fire(hooks, stop_event("s"))
    fire(hooks, BASH)

    assert logged(caplog) == []


# -- matchers that are functions -----------------------------------------------------------------------


def test_a_matcher_that_raises_denies_on_a_gate(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    hooks.add(lambda _: None, PreToolUse, name="guard", matcher=lambda event: event.tool_input["path"] == "/")

    assert fire(hooks, BASH).reason == "hook 'guard' failed, so this is denied: KeyError: 'path'"


def test_a_matcher_that_raises_elsewhere_is_reported_and_the_next_hook_runs(
    fire: Callable[..., HookResult], caplog: pytest.LogCaptureFixture
) -> None:
    hooks = HookManager()
    hooks.add(lambda _: None, PostToolUse, name="a", matcher=lambda event: event.tool_response["path"] == "/")
    hooks.add(lambda _: None, PostToolUse, name="b")

    result = fire(hooks, post_tool_use("s", "Bash", {}))

    assert rows(result) == [("a", "failed"), ("b", "allowed")]
    assert logged(caplog) == [(logging.WARNING, "hook 'a' failed on PostToolUse: KeyError: 'path'")]
