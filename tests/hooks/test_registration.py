"""Hooks are validated once, at registration, and errors are raised there."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.errors import MatcherError, RegistrationError
from fairlead.events import (
    Event,
    HookEvent,
    HookOutput,
    OtherEvent,
    PostToolUse,
    PreToolUse,
    SessionStart,
    Stop,
    ToolEvent,
    pre_tool_use,
)
from fairlead.hooks import Hook, HookContext, HookManager

if TYPE_CHECKING:
    from collections.abc import Iterable


def allow(event: Event, ctx: HookContext) -> None:
    """Have no opinion."""


class Guard(Hook):
    events: Iterable[type[Event] | HookEvent] = (PreToolUse,)

    def execute(self, event: PreToolUse, _: HookContext) -> HookOutput:
        return HookOutput.block(f"no {event.tool_name}")


# -- names ---------------------------------------------------------------------------------------------


def test_a_function_is_registered_under_its_own_name_and_stays_itself() -> None:
    hooks = HookManager()

    @hooks.on(Stop)
    def notice(event: Stop) -> None:
        """Notice."""

    assert hooks.hook_names() == ["notice"]
    assert notice.__name__ == "notice"


def test_a_name_may_be_given() -> None:
    hooks = HookManager()

    assert hooks.add(allow, Stop, name="mine").name == "mine"
    assert hooks.hook_names() == ["mine"]


def test_an_object_is_registered_under_its_name_or_its_class() -> None:
    class Named(Guard):
        name = "security-hook"

    hooks = HookManager()

    assert [hooks.register(Guard()).name, hooks.register(Named()).name] == ["Guard", "security-hook"]


def test_a_name_is_taken_once() -> None:
    hooks = HookManager()
    hooks.register(Guard())

    with pytest.raises(RegistrationError) as caught:
        hooks.add(allow, Stop, name="Guard")

    assert str(caught.value) == "a hook named 'Guard' is registered; give another name, or replace=True"
    assert hooks.hooks_for_event(HookEvent.Stop) == []


def test_a_hook_may_take_the_place_of_another() -> None:
    hooks = HookManager()
    hooks.register(Guard())

    hooks.add(allow, Stop, name="Guard", replace=True)

    assert hooks.hook_names() == ["Guard"]
    assert (hooks.hooks_for_event(PreToolUse), hooks.hooks_for_event(Stop)) == ([], ["Guard"])


def test_replacing_nobody_is_registering() -> None:
    hooks = HookManager()

    hooks.register(Guard(), replace=True)

    assert hooks.has_hook("Guard")


def test_two_managers_know_nothing_of_each_other() -> None:
    one, two = HookManager(), HookManager()

    one.add(allow, Stop)

    assert (one.hook_names(), two.hook_names()) == (["allow"], [])


# -- looking -------------------------------------------------------------------------------------------


def test_names_are_listed_in_the_order_in_which_the_hooks_run() -> None:
    hooks = HookManager()
    hooks.add(allow, Stop, name="observer", phase="observe", priority=100)
    hooks.add(allow, Stop, name="check")
    hooks.add(allow, Stop, name="late check", priority=-1)
    hooks.add(allow, Stop, name="early check", priority=1)
    hooks.add(allow, Stop, name="rewriter", phase="rewrite", priority=-100)

    assert hooks.hook_names() == ["rewriter", "early check", "check", "late check", "observer"]


@pytest.mark.parametrize(
    ("event", "names"),
    [
        (HookEvent.PreToolUse, ["all", "tools", "pre"]),
        (PreToolUse, ["all", "tools", "pre"]),
        (PostToolUse, ["all", "tools"]),
        (HookEvent.Stop, ["all"]),
        (OtherEvent, ["all"]),
    ],
)
def test_the_hooks_of_an_event_are_those_that_name_it_or_a_family_it_is_of(
    event: HookEvent | type[Event], names: list[str]
) -> None:
    hooks = HookManager()
    hooks.add(allow, Event, name="all")
    hooks.add(allow, ToolEvent, name="tools")
    hooks.add(allow, PreToolUse, name="pre", matcher="Write")

    assert hooks.hooks_for_event(event) == names


def test_an_event_may_be_named_by_its_enum_in_a_hook_object() -> None:
    class Both(Guard):
        events = (HookEvent.PreToolUse, SessionStart)

    hooks = HookManager()
    hooks.register(Both())

    assert [hooks.hooks_for_event(event) for event in (PreToolUse, SessionStart, Stop)] == [["Both"], ["Both"], []]


def test_a_hook_that_names_an_event_and_its_family_is_called_once() -> None:
    out: list[str] = []
    hooks = HookManager()
    hooks.add(lambda _: out.append("called"), PreToolUse, ToolEvent, Event)

    hooks.fire_sync(pre_tool_use("s", "Bash", {}))

    assert out == ["called"]


# -- taking away ---------------------------------------------------------------------------------------


def test_a_hook_is_taken_away_by_its_name() -> None:
    hooks = HookManager()
    hooks.add(allow, Stop, name="a")
    hooks.add(allow, Stop, name="b")

    assert [hooks.unregister("a"), hooks.unregister("a"), hooks.unregister("nobody")] == [True, False, False]
    assert (hooks.hook_names(), hooks.has_hook("a"), hooks.has_hook("b")) == (["b"], False, True)


def test_a_hook_is_taken_away_by_its_handle() -> None:
    hooks = HookManager()
    handle = hooks.add(allow, Stop)

    assert [handle.remove(), handle.remove()] == [True, False]
    assert hooks.hook_names() == []


def test_a_handle_takes_its_own_hook_away_and_no_other_of_that_name() -> None:
    hooks = HookManager()
    old = hooks.add(allow, Stop)
    hooks.add(allow, Stop, replace=True)

    assert old.remove() is False
    assert hooks.hook_names() == ["allow"]


def test_a_handle_is_a_context_manager() -> None:
    hooks = HookManager()

    with hooks.register(Guard()) as handle:
        inside = hooks.fire_sync(pre_tool_use("s", "Bash", {})).blocked

    assert (handle.name, inside, hooks.hook_names()) == ("Guard", True, [])


def test_a_handle_takes_its_hook_away_also_after_an_error() -> None:
    hooks = HookManager()

    with pytest.raises(KeyError), hooks.register(Guard()):
        raise KeyError

    assert hooks.hook_names() == []


def test_a_hook_that_was_taken_away_is_not_called_again() -> None:
    out: list[str] = []
    hooks = HookManager()
    handle = hooks.add(lambda _: out.append("called"), Stop)

    hooks.fire_sync(Stop(session_id="s"))
    handle.remove()
    hooks.fire_sync(Stop(session_id="s"))

    assert out == ["called"]


def test_a_name_that_was_taken_away_is_free_again() -> None:
    hooks = HookManager()
    hooks.add(allow, Stop).remove()

    hooks.add(allow, Stop)

    assert hooks.hook_names() == ["allow"]


# -- one manager in another ----------------------------------------------------------------------------


def test_a_manager_may_include_the_hooks_of_another_under_a_prefix() -> None:
    team, hooks = HookManager(), HookManager()
    team.add(allow, Stop, name="late", priority=-1)
    team.add(allow, Stop, name="early", priority=1)
    hooks.add(allow, Stop, name="early")

    handles = hooks.include(team, prefix="team:")

    assert [handle.name for handle in handles] == ["team:early", "team:late"]
    assert hooks.hook_names() == ["team:early", "early", "team:late"]


def test_what_the_other_registers_later_is_not_included() -> None:
    team, hooks = HookManager(), HookManager()
    hooks.include(team)

    team.add(allow, Stop)

    assert hooks.hook_names() == []


# -- errors --------------------------------------------------------------------------------------------


def refusal(function: Any = allow, *events: Any, **options: Any) -> str:
    hooks = HookManager()
    with pytest.raises(RegistrationError) as caught:
        hooks.add(function, *events, **{"name": "h", **options})
    assert hooks.hook_names() == []
    return str(caught.value)


def test_a_hook_must_want_an_event() -> None:
    assert refusal() == "hook 'h': it has no event; name at least one, or Event for all"


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        ("PreToolUse", "'PreToolUse'"),
        (Hook, "<class 'fairlead.hooks._hook.Hook'>"),
        (None, "None"),
        (7, "7"),
        (Stop(session_id="s"), repr(Stop(session_id="s"))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_it_wants_must_be_an_event_type(event: Any, shown: str) -> None:
    assert refusal(allow, PreToolUse, event) == f"hook 'h': {shown} is not an event type"


@pytest.mark.parametrize("events", [PreToolUse, HookEvent.Stop, None, 7, "PreToolUse"], ids=repr)
def test_the_events_of_a_hook_object_must_be_several(events: Any) -> None:
    """A lone type instead of a tuple is the mistake that everyone makes once."""
    guard = Guard()
    guard.events = events

    with pytest.raises(RegistrationError):
        HookManager().register(guard)


def test_the_decorator_needs_its_events_and_says_so_before_it_swallows_a_guard() -> None:
    hooks = HookManager()

    with pytest.raises(RegistrationError):

        @hooks.on  # type: ignore[call-overload]
        def guard(event: PreToolUse) -> HookOutput:
            return HookOutput.block("no")


@pytest.mark.parametrize("phase", ["before", "", None, 1, "Check"])
def test_a_phase_is_one_of_three(phase: Any) -> None:
    assert refusal(allow, Stop, phase=phase) == f"hook 'h': phase must be one of rewrite, check, observe, not {phase!r}"


@pytest.mark.parametrize("timeout", [0, 0.0, -1, -math.inf, math.nan, True, False, "2", None, [1]], ids=repr)
def test_a_timeout_is_a_number_of_seconds_above_zero(timeout: Any) -> None:
    assert (
        refusal(allow, Stop, timeout=timeout)
        == f"hook 'h': timeout must be a number of seconds above 0, not {timeout!r}"
    )


@pytest.mark.parametrize("timeout", [0, -1, math.nan, True, "2", None], ids=repr)
def test_the_managers_own_timeout_is_checked_as_well(timeout: Any) -> None:
    with pytest.raises(RegistrationError):
        HookManager(timeout=timeout)


@pytest.mark.parametrize("priority", [1.5, "high", None, math.inf], ids=repr)
def test_a_priority_is_a_whole_number(priority: Any) -> None:
    assert refusal(allow, Stop, priority=priority) == f"hook 'h': priority must be a whole number, not {priority!r}"


@pytest.mark.parametrize(
    ("matcher", "message"),
    [
        ("Bash(", "matcher 'Bash(': not a valid regular expression: missing ), unterminated subpattern at position 4"),
        (7, "matcher: expected a string, a pattern or a function, got int"),
    ],
)
def test_a_bad_matcher_is_refused_at_registration(matcher: Any, message: str) -> None:
    hooks = HookManager()

    with pytest.raises(MatcherError) as caught:
        hooks.add(allow, PreToolUse, matcher=matcher)

    assert (str(caught.value), hooks.hook_names()) == (message, [])


@pytest.mark.parametrize("matcher", ["Bash", re.compile("Bash")], ids=repr)
def test_a_matcher_where_there_is_nothing_to_match_is_refused_at_registration(matcher: Any) -> None:
    assert (
        refusal(allow, SessionStart, Stop, matcher=matcher)
        == f"matcher {matcher!r}: Stop has no subject to match; leave the matcher out"
    )


@pytest.mark.parametrize("function", ["guard", None, 7], ids=repr)
def test_what_cannot_be_called_is_refused(function: Any) -> None:
    assert refusal(function, Stop) == f"hook 'h': {function!r} cannot be called"


class WithoutParameters:
    def __call__(self) -> None:
        """Take nothing."""

    def method(self) -> None:
        """Take nothing."""


async def without_parameters() -> None:
    """Take nothing."""


def with_a_third(event: Stop, ctx: HookContext, more: int) -> None:
    """Require a parameter that is never passed."""


def with_a_keyword(event: Stop, *, more: int) -> None:
    """Require a parameter that is never passed."""


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        without_parameters,
        WithoutParameters(),
        WithoutParameters().method,
        with_a_third,
        with_a_keyword,
        partial(with_a_keyword, Stop(session_id="s"), more=1),
    ],
    ids=["lambda", "async", "object", "method", "a third", "a keyword", "partial"],
)
def test_what_cannot_be_called_with_an_event_and_a_context_is_refused(function: Any) -> None:
    expected = "hook 'h': it must take the event, may take the context, and nothing else"

    assert refusal(function, Stop) == expected


def test_more_parameters_are_fine_if_they_have_defaults() -> None:
    def note(event: Stop, ctx: HookContext, limit: int = 3, *, strict: bool = False) -> HookOutput:
        return HookOutput.block(f"{ctx.session_id} {limit} {strict}")

    hooks = HookManager()
    hooks.add(note, Stop)

    assert hooks.fire_sync(Stop(session_id="s")).reason == "s 3 False"


def test_a_bad_hook_object_is_refused_like_a_bad_function() -> None:
    class Bad(Guard):
        timeout = 0

    hooks = HookManager()

    with pytest.raises(RegistrationError) as caught:
        hooks.register(Bad())

    assert str(caught.value) == "hook 'Bad': timeout must be a number of seconds above 0, not 0"
