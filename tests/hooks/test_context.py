"""What a hook may know about its caller, and how the caller says that it no longer waits."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import pytest

from fairlead.events import Event, HookOutput, PreToolUse, Stop, pre_tool_use
from fairlead.hooks import CancellationToken, HookContext, HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import Callable

BASH = pre_tool_use("s", "Bash", {"command": "ls"})


def test_a_token_starts_uncancelled_and_stays_cancelled() -> None:
    token = CancellationToken()
    states = [token.cancelled]

    token.cancel()
    states.append(token.cancelled)
    token.cancel()
    states.append(token.cancelled)

    assert states == [False, True, True]


def test_a_token_calls_back_once_in_the_order_of_registration() -> None:
    out: list[str] = []
    token = CancellationToken()
    token.on_cancel(lambda: out.append("a"))
    token.on_cancel(lambda: out.append("b"))

    token.cancel()
    token.cancel()

    assert out == ["a", "b"]


def test_a_token_that_is_cancelled_calls_back_at_once() -> None:
    out: list[str] = []
    token = CancellationToken()
    token.cancel()

    token.on_cancel(lambda: out.append("a"))

    assert out == ["a"]


def test_a_callback_can_be_taken_back() -> None:
    out: list[str] = []
    token = CancellationToken()
    undo = token.on_cancel(lambda: out.append("a"))
    token.on_cancel(lambda: out.append("b"))

    undo()
    undo()
    token.cancel()
    undo()

    assert out == ["b"]


def test_a_callback_may_use_the_token() -> None:
    out: list[bool] = []
    token = CancellationToken()
    token.on_cancel(lambda: out.append(token.cancelled))
    token.on_cancel(token.cancel)

    token.cancel()

    assert out == [True]


def test_a_token_is_seen_by_every_thread() -> None:
    token = CancellationToken()

    other = Thread(target=token.cancel)
    other.start()
    other.join()

    assert HookContext("s", token).cancelled


def test_each_context_has_a_token_and_an_environment_of_its_own() -> None:
    one, two = HookContext("s"), HookContext("s")

    one.cancellation.cancel()
    one.env["A"] = "1"

    assert (two.cancelled, two.env) == (False, {})


def test_a_context_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        HookContext("s").cwd = "/elsewhere"  # type: ignore[misc]


# -- in a hook -----------------------------------------------------------------------------------------


def test_hooks_get_the_callers_context(fire: Callable[..., HookResult]) -> None:
    seen: list[HookContext] = []
    hooks = HookManager()
    ctx = HookContext("mine", cwd="/here", env={"A": "1"})

    @hooks.on(PreToolUse)
    def plain(event: PreToolUse, ctx: HookContext) -> None:
        seen.append(ctx)

    @hooks.on(PreToolUse)
    async def waits(event: PreToolUse, ctx: HookContext) -> None:
        seen.append(ctx)

    fire(hooks, BASH, ctx)

    assert [(c.session_id, c.cwd, c.env) for c in seen] == [("mine", "/here", {"A": "1"})] * 2


def test_without_one_the_context_is_made_of_the_event(fire: Callable[..., HookResult]) -> None:
    seen: list[HookContext] = []
    hooks = HookManager()
    hooks.add(lambda _, ctx: seen.append(ctx), Event)

    fire(hooks, Stop(session_id="s1", cwd="/there"))

    assert [(c.session_id, c.cwd, c.env, c.cancelled) for c in seen] == [("s1", "/there", {}, False)]


def test_a_hook_that_is_called_after_the_cancellation_is_not_called(fire: Callable[..., HookResult]) -> None:
    out: list[str] = []
    hooks = HookManager()
    ctx = HookContext("s")
    ctx.cancellation.cancel()
    hooks.add(lambda _: out.append("plain"), Event, name="plain")
    hooks.add(lambda _: out.append("inline"), Event, name="inline", inline=True)

    @hooks.on(Event)
    async def waits(event: Event) -> None:
        out.append("async")

    result = fire(hooks, Stop(session_id="s"), ctx)

    assert out == []
    assert [(run.name, run.outcome) for run in result.runs] == [
        ("plain", "cancelled"),
        ("inline", "cancelled"),
        ("waits", "cancelled"),
    ]


def test_a_gate_that_is_cancelled_is_denied(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    ctx = HookContext("s")
    ctx.cancellation.cancel()
    hooks.add(lambda _: HookOutput.grant(), PreToolUse, name="guard")

    result = fire(hooks, BASH, ctx)

    assert result.output == HookOutput.deny("hook 'guard' failed, so this is denied: the caller no longer waits")
