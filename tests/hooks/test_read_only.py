"""A hook changes a tool's input by answering so, and in no other way."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.events import HookOutput, PreToolUse, encode, parse, pre_tool_use, to_payload
from fairlead.hooks import HookManager, HookResult
from fairlead.hooks._read_only import read_only

if TYPE_CHECKING:
    from collections.abc import Callable

INPUT = {"command": "ls", "edits": [{"old": "a", "new": "b"}], "options": {"deep": {"er": [1, [2]]}}}


def dicts(value: Any) -> list[Callable[[], Any]]:
    return [
        lambda: value.__setitem__("x", 1),
        lambda: value.__delitem__("command"),
        lambda: value.update(x=1),
        lambda: value.setdefault("x", 1),
        lambda: value.pop("command"),
        value.popitem,
        value.clear,
        lambda: value.__ior__({"x": 1}),
    ]


def lists(value: Any) -> list[Callable[[], Any]]:
    return [
        lambda: value.__setitem__(0, 1),
        lambda: value.__delitem__(0),
        lambda: value.append(1),
        lambda: value.extend([1]),
        lambda: value.insert(0, 1),
        lambda: value.remove(value[0]),
        value.pop,
        value.clear,
        value.sort,
        value.reverse,
        lambda: value.__iadd__([1]),
        lambda: value.__imul__(2),
    ]


def test_nothing_in_it_can_be_changed_at_any_depth() -> None:
    sealed = read_only(INPUT)
    changes = [
        *dicts(sealed),
        *dicts(sealed["edits"][0]),
        *dicts(sealed["options"]["deep"]),
        *lists(sealed["edits"]),
        *lists(sealed["options"]["deep"]["er"][1]),
    ]

    for change in changes:
        with pytest.raises(TypeError, match=r"^an event is read-only; return HookOutput"):
            change()

    assert sealed == INPUT


def test_it_is_a_copy_and_leaves_the_original_alone() -> None:
    original = copy.deepcopy(INPUT)

    sealed = read_only(original)
    original["command"] = "rm"

    assert sealed["command"] == "ls"
    assert type(original["options"]) is dict


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value)), lambda value: json.loads(json.dumps(value))],  # noqa: S301 - our own
    ids=["deepcopy", "pickle", "json"],
)
def test_its_deep_copies_are_plain(copied: Callable[[Any], Any]) -> None:
    plain = copied(read_only(INPUT))
    plain["edits"][0]["new"] = "c"

    assert type(plain) is dict
    assert plain["edits"] == [{"old": "a", "new": "c"}]


def test_a_guard_that_changes_the_input_in_place_denies(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()

    @hooks.on(PreToolUse)
    def sneaky(event: PreToolUse) -> None:
        event.tool_input["command"] = "rm"

    result = fire(hooks, pre_tool_use("s", "Bash", INPUT))

    assert result.reason == (
        "hook 'sneaky' failed, so this is denied: TypeError: an event is read-only; "
        "return HookOutput.allow().with_updated_input({...}) to change the input"
    )


def test_a_rewritten_input_cannot_be_changed_in_place_either(fire: Callable[..., HookResult]) -> None:
    hooks = HookManager()
    mine = {"command": "pwd"}
    hooks.add(lambda _: HookOutput.allow().with_updated_input(mine), PreToolUse, name="a", phase="rewrite")
    hooks.add(lambda event: event.tool_input.clear(), PreToolUse, name="b")

    result = fire(hooks, pre_tool_use("s", "Bash", INPUT))

    assert [run.outcome for run in result.runs] == ["allowed", "failed"]
    assert mine == {"command": "pwd"}


def test_a_fired_event_is_encoded_and_compared_as_before(fire: Callable[..., HookResult]) -> None:
    payload = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": INPUT}
    hooks = HookManager()
    hooks.add(lambda _: None, PreToolUse)

    fired = fire(hooks, parse(payload)).event

    assert fired == parse(payload)
    assert to_payload(fired) == payload
    assert json.loads(encode(fired)) == payload


@pytest.mark.parametrize("phase", ["check", "observe"])
def test_a_strict_manager_lets_only_rewriters_rewrite(fire: Callable[..., HookResult], phase: Any) -> None:
    hooks = HookManager(strict=True)
    hooks.add(
        lambda _: HookOutput.allow().with_updated_input({"command": "pwd"}), PreToolUse, name="a", phase="rewrite"
    )
    hooks.add(lambda _: HookOutput.allow().with_updated_input({}), PreToolUse, name="b", phase=phase)

    result = fire(hooks, pre_tool_use("s", "Bash", INPUT))

    assert [run.outcome for run in result.runs] == ["allowed", "failed"]
    assert result.output.updated_input == {"command": "pwd"}
    assert result.blocked is (phase == "check")


@pytest.mark.parametrize("depth", [10, 300, 600, 800])
def test_whatever_parses_can_be_fired_however_deep(fire: Callable[..., HookResult], depth: int) -> None:
    deep = "[" * depth + "]" * depth
    hooks = HookManager()
    hooks.add(lambda _: HookOutput.block("no"), PreToolUse)

    event = parse(
        f'{{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {{"a": {deep}}}}}'
    )

    assert fire(hooks, event).blocked


def test_a_rewrite_without_end_denies_like_any_failure(fire: Callable[..., HookResult]) -> None:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    hooks = HookManager()
    hooks.add(lambda _: HookOutput.allow().with_updated_input(ring), PreToolUse, name="a")
    hooks.add(lambda _: None, PreToolUse, name="audit", phase="observe")

    result = fire(hooks, pre_tool_use("s", "Bash", INPUT))

    assert [(run.name, run.outcome) for run in result.runs] == [("a", "failed"), ("audit", "allowed")]
    assert result.blocked
