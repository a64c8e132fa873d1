"""The output of hooks, and how several outputs merge into one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.events import HookOutput, Permission

# -- single answers ------------------------------------------------------------------------------------


def test_an_answer_without_an_opinion_does_not_block() -> None:
    output = HookOutput()

    assert (output.blocked, output.reason, output.permission) == (False, None, None)
    assert output == HookOutput.allow()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (HookOutput.allow(), {}),
        (HookOutput.block("no"), {"continue_execution": False, "stop_reason": "no"}),
        (
            HookOutput.deny("no"),
            {"continue_execution": False, "stop_reason": "no", "permission": "deny", "permission_reason": "no"},
        ),
        (HookOutput.ask("sure?"), {"permission": "ask", "permission_reason": "sure?"}),
        (HookOutput.defer("later"), {"permission": "defer", "permission_reason": "later"}),
        (HookOutput.defer(), {"permission": "defer"}),
        (HookOutput.grant("known"), {"permission": "allow", "permission_reason": "known"}),
        (HookOutput.grant(), {"permission": "allow"}),
    ],
)
def test_each_factory_sets_its_fields(output: HookOutput, expected: dict[str, Any]) -> None:
    assert output == HookOutput(**expected)


@pytest.mark.parametrize(
    ("output", "blocked", "reason"),
    [
        (HookOutput.block("no"), True, "no"),
        (HookOutput.deny("no"), True, "no"),
        (HookOutput.ask("sure?"), False, "sure?"),
        (HookOutput.defer("later"), False, "later"),
        (HookOutput.grant("known"), False, "known"),
        (HookOutput(continue_execution=False), True, None),
        (HookOutput(continue_execution=False, permission="deny", permission_reason="why"), True, "why"),
        (HookOutput(stop_reason="not meant"), False, None),
    ],
)
def test_the_reason_belongs_to_the_verdict(output: HookOutput, blocked: bool, reason: str | None) -> None:
    assert (output.blocked, output.reason) == (blocked, reason)


def test_a_denial_blocks_however_it_was_created() -> None:
    assert HookOutput(permission="deny").blocked
    assert HookOutput(permission="deny", continue_execution=True).blocked


@pytest.mark.parametrize("permission", ["allow", "ask", "defer", None])
def test_no_other_permission_blocks(permission: Permission | None) -> None:
    assert not HookOutput(permission=permission).blocked


def test_builders_add_to_an_answer_and_leave_it_as_it_was() -> None:
    plain = HookOutput.block("no")

    built = (
        plain.with_system_message("hey").with_context("see docs").with_updated_input({"a": 1}).with_suppressed_logging()
    )

    assert built == HookOutput(
        continue_execution=False,
        stop_reason="no",
        suppress_logging=True,
        system_message="hey",
        updated_input={"a": 1},
        additional_context="see docs",
    )
    assert plain == HookOutput.block("no")


def test_outputs_share_no_extra() -> None:
    first, built, second = HookOutput.allow(), HookOutput.allow().with_context("mine"), HookOutput.block("no")

    assert len({id(answer.extra) for answer in (first, built, second)}) == 3


# -- the merge table -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_continue_execution_is_and(first: bool, second: bool, merged: bool) -> None:
    output = HookOutput(continue_execution=first).merge(HookOutput(continue_execution=second))

    assert output.continue_execution is merged


@pytest.mark.parametrize(
    ("first", "second", "merged"), [(True, True, True), (True, False, True), (False, True, True), (False, False, False)]
)
def test_suppress_logging_is_or(first: bool, second: bool, merged: bool) -> None:
    output = HookOutput(suppress_logging=first).merge(HookOutput(suppress_logging=second))

    assert output.suppress_logging is merged


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [("a", "b", "b"), ("a", None, "a"), (None, "b", "b"), (None, None, None), ("a", "", "")],
)
@pytest.mark.parametrize("field", ["stop_reason", "system_message"])
def test_stop_reason_and_system_message_are_the_latest_that_is_not_none(
    field: str, first: str | None, second: str | None, merged: str | None
) -> None:
    output = HookOutput(**{field: first}).merge(HookOutput(**{field: second}))  # type: ignore[arg-type]

    assert getattr(output, field) == merged


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [({"a": 1}, {"b": 2}, {"b": 2}), ({"a": 1}, None, {"a": 1}), (None, {"b": 2}, {"b": 2}), ({"a": 1}, {}, {})],
)
def test_updated_input_is_the_latest_as_a_whole(
    first: dict[str, Any] | None, second: dict[str, Any] | None, merged: dict[str, Any]
) -> None:
    assert HookOutput(updated_input=first).merge(HookOutput(updated_input=second)).updated_input == merged


@pytest.mark.parametrize(
    ("first", "second", "merged"), [("a", "b", "a\nb"), ("a", None, "a"), (None, "b", "b"), (None, None, None)]
)
def test_additional_context_is_joined_by_a_newline(first: str | None, second: str | None, merged: str | None) -> None:
    output = HookOutput(additional_context=first).merge(HookOutput(additional_context=second))

    assert output.additional_context == merged


def test_extra_is_joined_and_the_later_wins() -> None:
    output = HookOutput(extra={"a": 1, "b": 1}).merge(HookOutput(extra={"b": 2, "c": 2}))

    assert output.extra == {"a": 1, "b": 2, "c": 2}


STRICTNESS: list[Permission | None] = [None, "allow", "ask", "defer", "deny"]


@pytest.mark.parametrize(("weaker", "stronger"), list(combinations(STRICTNESS, 2)))
def test_the_strictest_permission_wins_with_its_own_reason(weaker: Permission | None, stronger: Permission) -> None:
    weak = HookOutput(permission=weaker, permission_reason="weak")
    strong = HookOutput(permission=stronger, permission_reason="strong")

    for merged in (weak.merge(strong), strong.merge(weak)):
        assert (merged.permission, merged.permission_reason) == (stronger, "strong")


@pytest.mark.parametrize("permission", ["allow", "ask", "defer", "deny"])
def test_a_stricter_permission_without_a_reason_does_not_borrow_one(permission: Permission) -> None:
    merged = HookOutput(permission_reason="of no verdict").merge(HookOutput(permission=permission))

    assert (merged.permission, merged.permission_reason) == (permission, None)


@pytest.mark.parametrize("permission", ["allow", "ask", "defer", "deny"])
def test_equal_permissions_have_the_latest_reason(permission: Permission) -> None:
    first = HookOutput(permission=permission, permission_reason="first")

    assert first.merge(HookOutput(permission=permission, permission_reason="second")).permission_reason == "second"
    assert first.merge(HookOutput(permission=permission)).permission_reason == "first"


def test_a_denial_still_blocks_after_merging() -> None:
    assert HookOutput.grant().merge(HookOutput(permission="deny")).blocked
    assert HookOutput(permission="deny").merge(HookOutput.grant()).blocked


# -- its algebra ---------------------------------------------------------------------------------------

algebra = settings(max_examples=200, deadline=None)  # a busy machine is no bug

texts = st.none() | st.text(max_size=3)
objects = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=2)
outputs = st.builds(
    HookOutput,
    continue_execution=st.booleans(),
    stop_reason=texts,
    suppress_logging=st.booleans(),
    system_message=texts,
    updated_input=st.none() | objects,
    additional_context=texts,
    permission=st.sampled_from(STRICTNESS),
    permission_reason=texts,
    extra=objects,
)


@algebra
@given(outputs, outputs, outputs)
def test_merging_is_associative(a: HookOutput, b: HookOutput, c: HookOutput) -> None:
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


@algebra
@given(outputs)
def test_no_opinion_changes_nothing_on_either_side(output: HookOutput) -> None:
    for nothing in (HookOutput(), HookOutput.allow()):
        assert output.merge(nothing) == output
        assert nothing.merge(output) == output


@algebra
@given(outputs, outputs)
def test_merging_changes_neither_side(a: HookOutput, b: HookOutput) -> None:
    before = repr((a, b))

    a.merge(b)

    assert repr((a, b)) == before


@algebra
@given(st.lists(outputs, min_size=1, max_size=5))
def test_a_block_by_any_is_a_block_of_all(answers: list[HookOutput]) -> None:
    merged = HookOutput.allow()
    for answer in answers:
        merged = merged.merge(answer)

    assert merged.blocked is any(answer.blocked for answer in answers)
