"""The call loop alone: hooks in, results and one merged output out. No manager, no clock, no event loop."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.errors import CommandFailed, HookCancelled, HookFailure, HookTimeout
from fairlead.events import Event, HookEvent, HookOutput, PreToolUse, parse, pre_tool_use, stop, user_prompt_submit
from fairlead.hooks import HookContext, HookResult
from fairlead.hooks._call import CallResult, call_hooks
from fairlead.hooks._hook import Phase, RegisteredHook, validate_hook

COMPLETE: dict[str, Any] = {
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {},
    "error": "e",
    "prompt": "p",
    "agent_id": "a1",
    "agent_type": "coder",
}
EVENTS = [parse({**COMPLETE, "hook_event_name": event.value}) for event in HookEvent]
GATES = [event for event in EVENTS if event.can_block]
KEEP_GOING = [event for event in EVENTS if event.keeps_going]
PLAIN = [event for event in EVENTS if not event.can_block and not event.keeps_going]

BASH = pre_tool_use("s", "Bash", {"command": "ls"})


def hook(
    name: str, answer: Any = None, phase: Phase = "check", *, out: list[str] | None = None, **options: Any
) -> RegisteredHook:
    """Create a hook that returns an answer, or raises it, and records that it was called."""

    def call(event: Event, ctx: HookContext) -> Any:
        if out is not None:
            out.append(name)
        if isinstance(answer, BaseException):
            raise answer
        return answer(event) if callable(answer) else answer

    return validate_hook(call, [Event], name=name, phase=phase, **options)


def run_loop(event: Event, *hooks: RegisteredHook) -> HookResult:
    """Run the loop: call each hook that it yields, and send back the result."""
    calls = call_hooks(hooks, event)
    try:
        wanted, current = next(calls)
        while True:
            wanted, current = calls.send(_called(wanted, current))
    except StopIteration as stop:
        result: HookResult = stop.value
        return result


def _called(wanted: RegisteredHook, event: Event) -> CallResult:
    try:
        return CallResult(wanted.call(event, HookContext("s")))
    except Exception as error:  # noqa: BLE001 - what the loop is sent
        return CallResult(error=error)


def rows(result: HookResult) -> list[tuple[str, str]]:
    return [(run.name, run.outcome) for run in result.runs]


# -- the loop ------------------------------------------------------------------------------------------


def test_without_hooks_there_is_no_opinion() -> None:
    result = run_loop(BASH)

    assert (result.output, result.runs) == (HookOutput.allow(), ())
    assert result.event is BASH


def test_it_yields_each_hook_in_turn_with_the_event() -> None:
    first, second = hook("first"), hook("second")
    calls = call_hooks([first, second], BASH)

    assert next(calls) == (first, BASH)
    assert calls.send(CallResult()) == (second, BASH)
    with pytest.raises(StopIteration) as end:
        calls.send(CallResult())
    assert rows(end.value.value) == [("first", "allowed"), ("second", "allowed")]


def test_a_row_has_the_time_and_the_error_that_were_sent() -> None:
    error = ValueError("broken")
    calls = call_hooks([hook("a")], stop("s"))
    next(calls)

    with pytest.raises(StopIteration) as end:
        calls.send(CallResult(error=error, seconds=1.5))

    (run,) = end.value.value.runs
    assert (run.name, run.outcome, run.seconds, run.error) == ("a", "failed", 1.5, error)


def test_answers_are_merged_in_order() -> None:
    result = run_loop(
        BASH,
        hook("a", HookOutput.ask("a asks").with_context("from a")),
        hook("b"),
        hook("c", HookOutput.grant("c grants").with_context("from c").with_system_message("hey")),
    )

    assert result.output == HookOutput(
        permission="ask", permission_reason="a asks", additional_context="from a\nfrom c", system_message="hey"
    )
    assert rows(result) == [("a", "allowed"), ("b", "allowed"), ("c", "allowed")]


def test_a_result_says_whether_and_why_it_blocks() -> None:
    blocked, free = run_loop(BASH, hook("a", HookOutput.block("no"))), run_loop(BASH, hook("a"))

    assert (blocked.blocked, blocked.reason) == (True, "no")
    assert (free.blocked, free.reason) == (False, None)


def test_a_result_lists_the_hooks_that_did_not_answer() -> None:
    result = run_loop(stop("s"), hook("a"), hook("b", ValueError("x")), hook("c"), hook("d", HookTimeout("y")))

    assert [run.name for run in result.failures] == ["b", "d"]


# -- blocks --------------------------------------------------------------------------------------------


def test_a_block_skips_the_checks_after_it() -> None:
    for event in GATES + KEEP_GOING:
        out: list[str] = []

        result = run_loop(
            event,
            hook("a", out=out),
            hook("b", HookOutput.block("no"), out=out),
            hook("c", out=out),
        )

        assert out == ["a", "b"]
        assert rows(result) == [("a", "allowed"), ("b", "blocked"), ("c", "skipped")], event.event_name
        assert (result.blocked, result.reason) == (True, "no")


def test_a_block_where_it_has_no_effect_skips_nothing() -> None:
    for event in PLAIN:
        out: list[str] = []

        result = run_loop(
            event,
            hook("a", HookOutput.block("no"), out=out),
            hook("b", HookOutput.block("still no"), out=out),
            hook("c", out=out),
        )

        assert out == ["a", "b", "c"]
        assert rows(result) == [("a", "blocked"), ("b", "blocked"), ("c", "allowed")], event.event_name
        assert (result.blocked, result.reason) == (True, "still no")


def test_a_block_by_a_rewriter_skips_the_checks() -> None:
    result = run_loop(BASH, hook("a", HookOutput.block("no"), "rewrite"), hook("b"))

    assert rows(result) == [("a", "blocked"), ("b", "skipped")]


def test_a_denial_is_a_block() -> None:
    result = run_loop(BASH, hook("a", HookOutput.deny("no")), hook("b"))

    assert rows(result) == [("a", "blocked"), ("b", "skipped")]
    assert result.output == HookOutput.deny("no")


@pytest.mark.parametrize("answer", [HookOutput.ask("?"), HookOutput.defer(), HookOutput.grant()])
def test_a_permission_that_does_not_block_skips_nothing(answer: HookOutput) -> None:
    result = run_loop(BASH, hook("a", answer), hook("b"))

    assert rows(result) == [("a", "allowed"), ("b", "allowed")]


# -- observers -----------------------------------------------------------------------------------------


def test_an_observer_runs_also_after_a_block() -> None:
    for event in EVENTS:
        result = run_loop(event, hook("guard", HookOutput.block("no")), hook("audit", phase="observe"))

        assert rows(result) == [("guard", "blocked"), ("audit", "allowed")], event.event_name


@pytest.mark.parametrize(
    "answer",
    [
        HookOutput.block("me too"),
        HookOutput.deny("me too"),
        HookOutput.grant("mine"),
        HookOutput.allow().with_context("mine").with_system_message("mine").with_suppressed_logging(),
        HookOutput.allow().with_updated_input({"command": "mine"}),
        ValueError("broken"),
        HookTimeout("too late"),
        HookCancelled("nobody waits"),
        "not an answer",
    ],
    ids=repr,
)
def test_an_observer_cannot_change_the_outcome(answer: Any) -> None:
    decided = HookOutput.ask("sure?").with_context("from the guard")
    for event in (BASH, stop("s")):
        result = run_loop(event, hook("guard", decided), hook("audit", answer, "observe"), hook("log", phase="observe"))

        assert result.output == decided
        assert result.event is event
        assert rows(result)[2] == ("log", "allowed")


def test_the_result_of_an_observer_is_reported() -> None:
    error = ValueError("broken")

    result = run_loop(
        BASH, hook("a", HookOutput.block("x"), "observe"), hook("b", error, "observe"), hook("c", phase="observe")
    )

    assert rows(result) == [("a", "blocked"), ("b", "failed"), ("c", "allowed")]
    assert result.failures == (result.runs[1],)
    assert result.failures[0].error is error


# -- rewrites ------------------------------------------------------------------------------------------


def test_a_rewrite_is_seen_by_the_hooks_after_it() -> None:
    seen: list[Any] = []

    def look(event: PreToolUse) -> None:
        seen.append(event.tool_input)

    result = run_loop(
        BASH,
        hook("before", look, "rewrite"),
        hook("rewrite", HookOutput.allow().with_updated_input({"command": "ls -l"}), "rewrite"),
        hook("check", look),
        hook("again", lambda e: HookOutput.allow().with_updated_input({**e.tool_input, "timeout": 5})),
        hook("observe", look, "observe"),
    )

    assert seen == [{"command": "ls"}, {"command": "ls -l"}, {"command": "ls -l", "timeout": 5}]
    assert result.output.updated_input == {"command": "ls -l", "timeout": 5}


def test_a_rewritten_event_differs_in_its_input_alone() -> None:
    event = parse({**COMPLETE, "hook_event_name": "PreToolUse", "tool_use_id": "t1"})

    result = run_loop(event, hook("a", HookOutput.allow().with_updated_input({"command": "pwd"})))

    assert isinstance(result.event, PreToolUse)
    assert isinstance(event, PreToolUse)
    assert (result.event.tool_input, result.event.tool_use_id, result.event.extra) == (
        {"command": "pwd"},
        "t1",
        {"error": "e", "prompt": "p"},
    )
    assert event.tool_input == {}


def test_an_event_without_an_input_stays_as_it_is() -> None:
    event = user_prompt_submit("s", "hello")

    result = run_loop(event, hook("a", HookOutput.allow().with_updated_input({"prompt": "bye"})))

    assert result.event is event
    assert result.output.updated_input == {"prompt": "bye"}


# -- failures ------------------------------------------------------------------------------------------

FAILURES = [
    (ValueError("broken"), "failed", "ValueError: broken"),
    (KeyError(), "failed", "KeyError"),
    (HookFailure("it gave up"), "failed", "it gave up"),
    (CommandFailed("exit 127"), "failed", "exit 127"),
    (HookTimeout("no answer within 2 s"), "timed out", "no answer within 2 s"),
    (TimeoutError("of its own"), "failed", "TimeoutError: of its own"),
    (HookCancelled("the caller no longer waits"), "cancelled", "the caller no longer waits"),
]


@pytest.mark.parametrize(("error", "outcome", "message"), FAILURES, ids=repr)
def test_a_failure_denies_on_a_gate_and_names_the_hook(error: Exception, outcome: str, message: str) -> None:
    for event in GATES:
        result = run_loop(event, hook("a", HookOutput.grant()), hook("guard", error), hook("c"))

        effect = "" if event.event_name in {"SessionStart", "SubagentStart"} else ", so this is denied"
        assert result.output == HookOutput.deny(f"hook 'guard' failed{effect}: {message}"), event.event_name
        assert rows(result) == [("a", "allowed"), ("guard", outcome), ("c", "skipped")]


@pytest.mark.parametrize(("error", "outcome", "_message"), FAILURES, ids=repr)
def test_a_failure_elsewhere_decides_nothing(error: Exception, outcome: str, _message: str) -> None:
    for event in PLAIN + KEEP_GOING:
        result = run_loop(event, hook("a", HookOutput.allow().with_context("x")), hook("b", error), hook("c"))

        assert result.output == HookOutput(additional_context="x"), event.event_name
        assert rows(result) == [("a", "allowed"), ("b", outcome), ("c", "allowed")]
        assert result.runs[1].error is error


UNUSABLE = [
    (True, "TypeError: a hook returns a HookOutput or None, not bool"),
    ("deny", "TypeError: a hook returns a HookOutput or None, not str"),
    ({"decision": "block"}, "TypeError: a hook returns a HookOutput or None, not dict"),
    (HookOutput, "TypeError: a hook returns a HookOutput or None, not StructMeta"),
]


@pytest.mark.parametrize(("answer", "message"), UNUSABLE, ids=repr)
def test_an_answer_that_is_no_output_is_a_failure(answer: Any, message: str) -> None:
    result = run_loop(BASH, hook("guard", lambda _: answer), hook("audit", phase="observe"))

    assert result.reason == f"hook 'guard' failed, so this is denied: {message}"
    assert rows(result) == [("guard", "failed"), ("audit", "allowed")]
    assert result.event is BASH


@pytest.mark.parametrize(
    "fields",
    [
        {"permission": "Deny"},
        {"permission": True},
        {"continue_execution": "no"},
        {"continue_execution": None},
        {"additional_context": ["a"]},
        {"stop_reason": 7},
        {"updated_input": "ls"},
        {"updated_input": [1]},
        {"extra": None},
    ],
    ids=repr,
)
def test_an_output_with_invalid_fields_is_a_failure_and_never_opens_a_gate(fields: dict[str, Any]) -> None:
    guard = hook("guard", lambda _: HookOutput(**fields))

    for result in (run_loop(BASH, guard), run_loop(BASH, hook("a", HookOutput.ask("?")), guard)):
        assert result.blocked
        assert rows(result)[-1] == ("guard", "failed")


# -- matchers that are functions -----------------------------------------------------------------------


def test_a_hook_whose_matcher_says_no_is_not_called_and_has_no_row() -> None:
    out: list[str] = []

    result = run_loop(
        BASH,
        hook("a", out=out, matcher=lambda event: event.tool_name == "Write"),
        hook("b", out=out, matcher=lambda event: event.tool_name == "Bash"),
    )

    assert out == ["b"]
    assert rows(result) == [("b", "allowed")]


def test_a_matcher_sees_the_event_as_rewritten() -> None:
    result = run_loop(
        BASH,
        hook("rewrite", HookOutput.allow().with_updated_input({"command": "rm"}), "rewrite"),
        hook("guard", HookOutput.block("no"), matcher=lambda event: event.tool_input["command"] == "rm"),
    )

    assert result.reason == "no"


@pytest.mark.parametrize("error", [KeyError("command"), StopIteration()], ids=repr)
def test_a_matcher_that_raises_is_a_hook_that_fails_and_is_not_called(error: Exception) -> None:
    out: list[str] = []

    def broken(event: Event) -> bool:
        raise error

    result = run_loop(BASH, hook("guard", out=out, matcher=broken), hook("b"))

    assert out == []
    assert rows(result) == [("guard", "failed"), ("b", "skipped")]
    assert result.blocked


def test_a_matcher_that_raises_elsewhere_is_reported() -> None:
    def broken(event: Event) -> bool:
        raise ValueError("broken")

    result = run_loop(stop("s"), hook("a", matcher=broken), hook("b"))

    assert rows(result) == [("a", "failed"), ("b", "allowed")]
    assert not result.blocked
