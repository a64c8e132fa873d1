"""The names of the events, in every spelling."""

from __future__ import annotations

import pytest

from fairlead.errors import UnknownEventError
from fairlead.events import Event, HookEvent

GATES = {
    "ConfigChange",
    "Elicitation",
    "ElicitationResult",
    "PermissionRequest",
    "PreModelSwitch",
    "PreToolUse",
    "SessionStart",
    "SubagentStart",
    "TaskCompleted",
    "TaskCreated",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
}
KEEP_GOING = {"Stop", "SubagentStop", "TeammateIdle"}


def test_there_are_33_events() -> None:
    assert len(HookEvent) == 33


@pytest.mark.parametrize(
    "spelling",
    [
        "PostToolUseFailure",
        "postToolUseFailure",
        "post_tool_use_failure",
        "post-tool-use-failure",
        "POST_TOOL_USE_FAILURE",
    ],
)
def test_a_name_is_read_in_any_case(spelling: str) -> None:
    assert HookEvent.parse(spelling) is HookEvent.PostToolUseFailure


def test_every_event_is_found_by_each_of_its_spellings() -> None:
    for event in HookEvent:
        camel = event.value[0].lower() + event.value[1:]
        kebab = event.snake.replace("_", "-")
        assert {HookEvent.parse(name) for name in (event.value, camel, event.snake, kebab)} == {event}


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (HookEvent.PreToolUse, "pre_tool_use"),
        (HookEvent.PostToolUseFailure, "post_tool_use_failure"),
        (HookEvent.Stop, "stop"),
        (HookEvent.CwdChanged, "cwd_changed"),
    ],
)
def test_an_event_is_shown_in_snake_case(event: HookEvent, shown: str) -> None:
    assert str(event) == f"{event}" == event.snake == shown


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PreTolUse", "unknown event 'PreTolUse'; did you mean PreToolUse?"),
        ("sub_agent_strat", "unknown event 'sub_agent_strat'; did you mean SubagentStart?"),
        ("xyz", "unknown event 'xyz'"),
        ("", "unknown event ''"),
        ("PreToolUse ", "unknown event 'PreToolUse '; did you mean PreToolUse?"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_that_is_known(name: str, message: str) -> None:
    with pytest.raises(UnknownEventError) as caught:
        HookEvent.parse(name)

    assert str(caught.value) == message


def test_finding_an_unknown_name_returns_none() -> None:
    assert HookEvent.find("PreTolUse") is None


def test_every_event_has_its_own_type() -> None:
    for event in HookEvent:
        assert issubclass(event.type, Event)
        assert (event.type.__name__, event.type.event_type) == (event.value, event)


def test_the_gates_are_these_and_no_others() -> None:
    assert {event.value for event in HookEvent if event.can_block} == GATES


def test_the_events_that_a_block_keeps_going_are_these_and_no_gates() -> None:
    assert {event.value for event in HookEvent if event.type.keeps_going} == KEEP_GOING
    assert GATES.isdisjoint(KEEP_GOING)
