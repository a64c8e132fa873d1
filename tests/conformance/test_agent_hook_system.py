"""The hook-system document, from its overview to the output merging rules: one test per statement, row and example.

Commands and rules are in `test_agent_hook_system_commands.py`; usage examples, integration and file locations
in `test_agent_hook_system_usage.py`. Two spellings differ from the Rust text throughout: an accessor is an
attribute, and a builder is called `with_…`, because a field and a method cannot share one name in Python.
"""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

import fairlead
from fairlead import (
    CancellationToken,
    Event,
    Hook,
    HookContext,
    HookEvent,
    HookManager,
    HookOutput,
    HookTimeout,
    PostToolUse,
    PostToolUseFailure,
    PreCompact,
    PreToolUse,
    SessionEnd,
    SessionStart,
    Stop,
    SubagentStart,
    SubagentStop,
    UserPromptSubmit,
    post_tool_use,
    post_tool_use_failure,
    pre_compact,
    pre_tool_use,
    session_end,
    session_start,
    stop,
    subagent_start,
    subagent_stop,
    user_prompt_submit,
)
from fairlead.testing import samples

if TYPE_CHECKING:
    from collections.abc import Iterable

LS = pre_tool_use("session-1", "Bash", {"command": "ls"})

ONE_OF_EACH: list[Event] = [
    LS,
    post_tool_use("s", "Bash", {"stdout": "hi"}),
    post_tool_use_failure("s", "Bash", "boom"),
    user_prompt_submit("s", "hello"),
    stop("s"),
    subagent_start("s", "a1", "Explore", "look around"),
    subagent_stop("s", "a1", success=True, error=None),
    pre_compact("s"),
    session_start("s"),
    session_end("s"),
]


class Answering(Hook):
    """Answers every event with one output, and writes its name into a shared list."""

    def __init__(self, output: HookOutput, name: str = "answering", *, heard: list[str] | None = None) -> None:
        self.name = name
        self.events: Iterable[type[Event]] = (Event,)
        self.output = output
        self.heard = [] if heard is None else heard

    async def execute(self, _event: Event, _ctx: HookContext) -> HookOutput:
        self.heard.append(self.name)
        return self.output


def manager_of(*hooks: Hook) -> HookManager:
    manager = HookManager()
    for hook in hooks:
        manager.register(hook)
    return manager


# -- Hooks System: Overview ----------------------------------------------------------------------------


async def test_the_hooks_system_allows_intercepting_and_controlling_execution_at_specific_points() -> None:
    manager = HookManager()

    @manager.on(PreToolUse)
    async def control(event: PreToolUse) -> HookOutput:
        return HookOutput.block("not now").with_updated_input({**event.tool_input, "seen": True})

    assert (await manager.fire(LS)).blocked
    assert not (await manager.fire(stop("s"))).blocked


async def test_hook_execution_flow_event_trigger_then_hooks_sorted_then_output_merge_then_continue_or_block() -> None:
    heard: list[str] = []
    low = Answering(HookOutput.block("from low").with_context("second"), "low", heard=heard)
    high = Answering(HookOutput.allow().with_context("first"), "high", heard=heard)
    high.priority = 1

    result = await manager_of(low, high).fire(LS)

    assert heard == ["high", "low"]
    assert result.output.additional_context == "first\nsecond"
    assert (result.blocked, result.reason) == (True, "from low")


# -- Hook Events ---------------------------------------------------------------------------------------

BY_NAME = {event.event_name: event for event in ONE_OF_EACH}

CAN_BLOCK = {
    "PreToolUse": True,
    "PostToolUse": False,
    "PostToolUseFailure": False,
    "UserPromptSubmit": True,
    "Stop": False,
    "SubagentStart": True,
    "SubagentStop": False,
    "PreCompact": False,
    "SessionStart": True,
    "SessionEnd": False,
}


def test_10_event_types_for_different_lifecycle_points() -> None:
    assert len(BY_NAME) == 10
    assert BY_NAME.keys() < HookEvent.__members__.keys()


@pytest.mark.parametrize("name", BY_NAME)
def test_hook_events_event(name: str) -> None:
    assert HookEvent.parse(name).type is type(BY_NAME[name])
    assert BY_NAME[name].event_type is HookEvent[name]


@pytest.mark.parametrize(
    ("name", "tells"),
    [
        pytest.param("PreToolUse", "tool_input", id="PreToolUse: Before tool execution"),
        pytest.param("PostToolUse", "tool_response", id="PostToolUse: After successful execution"),
        pytest.param("PostToolUseFailure", "error", id="PostToolUseFailure: After failed execution"),
        pytest.param("UserPromptSubmit", "prompt", id="UserPromptSubmit: When user submits prompt"),
        pytest.param("Stop", "stop_hook_active", id="Stop: When agent stops"),
        pytest.param("SubagentStart", "agent_id", id="SubagentStart: When subagent spawns"),
        pytest.param("SubagentStop", "agent_transcript_path", id="SubagentStop: When subagent completes"),
        pytest.param("PreCompact", "trigger", id="PreCompact: Before context compaction"),
        pytest.param("SessionStart", "source", id="SessionStart: When session begins"),
        pytest.param("SessionEnd", "reason", id="SessionEnd: When session ends"),
    ],
)
def test_hook_events_description(name: str, tells: str) -> None:
    """What makes the event what the description says is in every payload that the real client sent."""
    real = list(samples(name))

    assert real
    assert all(getattr(event, tells) is not None for event in real)


@pytest.mark.parametrize("name", CAN_BLOCK)
async def test_hook_events_can_block(name: str) -> None:
    """Where something can be blocked, a hook that fails blocks it; elsewhere its failure decides nothing."""
    manager = HookManager()

    @manager.on(Event)
    def broken(event: Event) -> None:
        raise RuntimeError("broken")

    result = await manager.fire(BY_NAME[name])

    assert (HookEvent[name].can_block, BY_NAME[name].can_block) == (CAN_BLOCK[name], CAN_BLOCK[name])
    assert (result.runs[0].outcome, result.blocked) == ("failed", CAN_BLOCK[name])


@pytest.mark.parametrize("name", [name for name, can_block in CAN_BLOCK.items() if can_block])
async def test_hook_events_can_block_is_yes_for_a_hook_that_says_so(name: str) -> None:
    result = await manager_of(Answering(HookOutput.block("no"))).fire(BY_NAME[name])

    assert (result.blocked, result.reason) == (True, "no")


# -- Core Types: Hook Trait ----------------------------------------------------------------------------


class Minimal(Hook):
    name = "minimal"
    events = (PreToolUse,)

    async def execute(self, _event: PreToolUse, ctx: HookContext) -> HookOutput:
        return HookOutput.allow().with_context(ctx.session_id)


class TestHookTrait:
    def test_name(self) -> None:
        assert manager_of(Minimal()).hook_names() == ["minimal"]

    def test_events(self) -> None:
        manager = manager_of(Minimal())

        assert manager.hooks_for_event(HookEvent.PreToolUse) == ["minimal"]
        assert manager.hooks_for_event(HookEvent.PostToolUse) == []

    def test_events_may_be_names_of_the_enum(self) -> None:
        hook = Minimal()
        hook.events = (HookEvent.PostToolUse,)  # type: ignore[assignment]

        assert manager_of(hook).hooks_for_event(PostToolUse) == ["minimal"]

    def test_tool_matcher_is_none_by_default(self) -> None:
        """Called `matcher`: it holds on other subjects than tools, too."""
        assert Minimal().matcher is None

    async def test_tool_matcher_is_an_optional_regex_filter(self) -> None:
        hook = Minimal()
        hook.matcher = "^mcp__.*__read$"
        manager = manager_of(hook)

        assert (await manager.fire(pre_tool_use("s", "mcp__files__read", {}))).runs
        assert not (await manager.fire(pre_tool_use("s", "Bash", {}))).runs

    def test_timeout_secs_is_60_by_default(self) -> None:
        """Called `timeout`: fractions of a second are welcome."""
        assert Minimal().timeout == 60

    def test_priority_is_0_by_default(self) -> None:
        assert Minimal().priority == 0

    async def test_priority_higher_runs_first(self) -> None:
        heard: list[str] = []
        hooks = [Answering(HookOutput.allow(), str(priority), heard=heard) for priority in (0, 5, -5, 100)]
        for hook in hooks:
            hook.priority = int(hook.name)

        await manager_of(*hooks).fire(LS)

        assert heard == ["100", "5", "0", "-5"]

    async def test_execute_is_async_and_takes_the_input_and_the_context(self) -> None:
        assert inspect.iscoroutinefunction(Minimal.execute)

        result = await manager_of(Minimal()).fire(LS, HookContext("from the context"))

        assert result.output == HookOutput(additional_context="from the context")

    async def test_execute_may_fail_with_an_error(self) -> None:
        class Failing(Minimal):
            async def execute(self, _event: PreToolUse, _ctx: HookContext) -> HookOutput:
                raise ValueError("cannot tell")

        result = await manager_of(Failing()).fire(LS)

        assert str(result.runs[0].error) == "cannot tell"
        assert result.reason == "hook 'minimal' failed, so this is denied: ValueError: cannot tell"

    async def test_send_and_sync_one_hook_serves_several_threads_and_managers(self) -> None:
        hook = Minimal()
        first, second = manager_of(hook), manager_of(hook)

        results = await asyncio.gather(*(asyncio.to_thread(m.fire_sync, LS) for m in (first, second) * 5))

        assert [result.output.additional_context for result in results] == ["session-1"] * 10


# -- Core Types: HookEventData -------------------------------------------------------------------------


class TestHookEventData:
    """The enum is a family of types here, one per event; its variants are told apart by `match` or by type."""

    def test_pre_tool_use(self) -> None:
        event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": "ls"})

        assert (event.tool_name, event.tool_input) == ("Bash", {"command": "ls"})

    def test_post_tool_use(self) -> None:
        """The client's own name for `tool_result` is `tool_response`; both can be read."""
        event = PostToolUse(session_id="s", tool_name="Bash", tool_response={"stdout": "hi"})

        assert (event.tool_name, event.tool_result) == ("Bash", {"stdout": "hi"})

    def test_post_tool_use_failure(self) -> None:
        event = PostToolUseFailure(session_id="s", tool_name="Bash", error="boom")

        assert (event.tool_name, event.error) == ("Bash", "boom")

    def test_user_prompt_submit(self) -> None:
        assert UserPromptSubmit(session_id="s", prompt="hello").prompt == "hello"

    def test_subagent_start(self) -> None:
        """The client's own names for `subagent_id` and `subagent_type` are `agent_id` and `agent_type`."""
        event = SubagentStart(session_id="s", agent_id="a1", agent_type="Explore", description="look around")

        assert (event.subagent_id, event.agent_type, event.description) == ("a1", "Explore", "look around")

    @pytest.mark.parametrize(("success", "error"), [(True, None), (False, "boom")])
    def test_subagent_stop(self, success: bool, error: str | None) -> None:
        event = SubagentStop(session_id="s", agent_id="a1", success=success, error=error)

        assert (event.subagent_id, event.success, event.error) == ("a1", success, error)

    @pytest.mark.parametrize("kind", [Stop, PreCompact, SessionStart, SessionEnd])
    def test_stop_pre_compact_session_start_and_session_end_need_nothing_more(self, kind: type[Event]) -> None:
        assert kind(session_id="s").event_name == kind.__name__

    def test_it_is_type_safe(self) -> None:
        with pytest.raises(TypeError):
            PreToolUse(session_id="s", tool_name="Bash")  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            LS.tool_name = "Read"  # type: ignore[misc]


# -- Core Types: HookInput -----------------------------------------------------------------------------


class TestHookInput:
    """The wrapper and its data are one value here, the event: session, time and metadata are its fields."""

    @pytest.mark.parametrize("event", ONE_OF_EACH[1:], ids=lambda event: event.event_name)
    def test_session_id(self, event: Event) -> None:
        assert event.session_id == "s"

    def test_timestamp_is_now_in_utc(self) -> None:
        timestamp = stop("s").timestamp

        assert timestamp is not None
        assert timestamp.tzinfo is UTC
        assert abs(datetime.now(UTC) - timestamp) < timedelta(seconds=10)

    def test_data(self) -> None:
        match LS:
            case PreToolUse(tool_name=name, tool_input=tool_input):
                assert (name, tool_input) == ("Bash", {"command": "ls"})

    def test_metadata_is_optional(self) -> None:
        assert stop("s").metadata is None
        assert Stop(session_id="s", metadata={"host": "mine"}).metadata == {"host": "mine"}

    def test_factory_pre_tool_use(self) -> None:
        event = pre_tool_use("s", "Bash", {"command": "ls"})

        assert event == PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": "ls"})

    def test_factory_post_tool_use(self) -> None:
        assert post_tool_use("s", "Bash", "done") == PostToolUse(session_id="s", tool_name="Bash", tool_response="done")

    def test_factory_post_tool_use_failure(self) -> None:
        event = post_tool_use_failure("s", "Bash", "boom")

        assert event == PostToolUseFailure(session_id="s", tool_name="Bash", error="boom")

    def test_factory_user_prompt_submit(self) -> None:
        assert user_prompt_submit("s", "hello") == UserPromptSubmit(session_id="s", prompt="hello")

    def test_factory_session_start(self) -> None:
        assert session_start("s") == SessionStart(session_id="s")

    def test_factory_session_end(self) -> None:
        assert session_end("s") == SessionEnd(session_id="s")

    def test_factory_stop(self) -> None:
        assert stop("s") == Stop(session_id="s")

    def test_factory_pre_compact(self) -> None:
        assert pre_compact("s") == PreCompact(session_id="s")

    def test_factory_subagent_start(self) -> None:
        event = subagent_start("s", "a1", "Explore", "look around")

        assert event == SubagentStart(session_id="s", agent_id="a1", agent_type="Explore", description="look around")

    def test_factory_subagent_stop(self) -> None:
        event = subagent_stop("s", "a1", False, "boom")  # noqa: FBT003 - as the document calls it

        assert event == SubagentStop(session_id="s", agent_id="a1", success=False, error="boom")

    @pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.event_name)
    def test_accessor_event_type_gets_the_hook_event(self, event: Event) -> None:
        assert event.event_type is HookEvent[type(event).__name__]

    @pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.event_name)
    def test_accessor_tool_name_is_for_tool_related_events(self, event: Event) -> None:
        assert event.tool_name == ("Bash" if "Tool" in event.event_name else None)

    @pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.event_name)
    def test_accessor_subagent_id_is_for_subagent_events(self, event: Event) -> None:
        assert event.subagent_id == ("a1" if "Subagent" in event.event_name else None)


# -- Core Types: HookOutput ----------------------------------------------------------------------------


class TestHookOutput:
    def test_continue_execution_false_is_block(self) -> None:
        assert HookOutput(continue_execution=False).blocked

    def test_its_fields_and_their_defaults(self) -> None:
        """In Rust a default output blocks, without a reason; here it has no opinion."""
        output = HookOutput()

        assert output.continue_execution is True
        assert output.stop_reason is None
        assert output.suppress_logging is False
        assert output.system_message is None
        assert output.updated_input is None
        assert output.additional_context is None

    def test_factory_allow_continues_execution(self) -> None:
        assert HookOutput.allow() == HookOutput(continue_execution=True)

    def test_factory_block_stops_execution(self) -> None:
        assert HookOutput.block("why") == HookOutput(continue_execution=False, stop_reason="why")

    def test_builder_system_message(self) -> None:
        """Called `with_system_message`: the field has the other name."""
        assert HookOutput.allow().with_system_message("hello") == HookOutput(system_message="hello")

    def test_builder_context(self) -> None:
        """Called `with_context`, like the other builders."""
        assert HookOutput.allow().with_context("mind the gap") == HookOutput(additional_context="mind the gap")

    def test_builder_updated_input(self) -> None:
        """Called `with_updated_input`: the field has the other name."""
        assert HookOutput.allow().with_updated_input({"a": 1}) == HookOutput(updated_input={"a": 1})

    def test_builder_suppress_logging(self) -> None:
        """Called `with_suppressed_logging`: the field has the other name."""
        assert HookOutput.allow().with_suppressed_logging() == HookOutput(suppress_logging=True)

    def test_builders_chain(self) -> None:
        built = HookOutput.block("why").with_context("c").with_system_message("m").with_suppressed_logging()

        expected = HookOutput(
            continue_execution=False,
            stop_reason="why",
            additional_context="c",
            system_message="m",
            suppress_logging=True,
        )
        assert built == expected

    async def test_updated_input_is_the_modified_tool_input(self) -> None:
        result = await manager_of(Answering(HookOutput.allow().with_updated_input({"command": "ls -l"}))).fire(LS)

        assert isinstance(result.event, PreToolUse)
        assert result.event.tool_input == {"command": "ls -l"}


# -- Core Types: HookContext ---------------------------------------------------------------------------


class TestHookContext:
    def test_session_id(self) -> None:
        assert HookContext("session-1").session_id == "session-1"

    async def test_cancellation_token(self) -> None:
        """Called `cancellation`; a hook that still waits is cut short, and the gate stays shut."""
        token = CancellationToken()
        manager = HookManager()

        @manager.on(PreToolUse)
        async def waiting(event: PreToolUse, ctx: HookContext) -> None:
            ctx.cancellation.cancel()
            await asyncio.Event().wait()

        result = await manager.fire(LS, HookContext("s", token))

        assert token.cancelled
        assert (result.blocked, result.runs[0].outcome) == (True, "cancelled")

    def test_cwd_is_optional(self) -> None:
        assert HookContext("s").cwd is None
        assert HookContext("s", cwd="/tmp").cwd == "/tmp"

    def test_env(self) -> None:
        assert HookContext("s").env == {}
        assert HookContext("s", env={"A": "1"}).env == {"A": "1"}

    async def test_it_is_provided_to_hooks(self) -> None:
        ctx, given = HookContext("s", cwd="/", env={"A": "1"}), []
        manager = HookManager()

        @manager.on(PreToolUse)
        async def keep(event: PreToolUse, ctx: HookContext) -> None:
            given.append((ctx.session_id, ctx.cancellation, ctx.cwd, ctx.env))

        await manager.fire(LS, ctx)

        assert given == [("s", ctx.cancellation, "/", {"A": "1"})]


# -- HookManager ---------------------------------------------------------------------------------------


async def test_hook_manager_example(capsys: pytest.CaptureFixture[str]) -> None:
    """`register` takes what Rust needs `register_arc` for: every object is shared."""
    heard: list[str] = []
    security = Answering(HookOutput.block("no ls today"), "security", heard=heard)
    logging_hook = Answering(HookOutput.allow(), "logging", heard=heard)
    logging_hook.phase = "observe"

    manager = HookManager()
    manager.register(security)
    manager.register(logging_hook)

    event = pre_tool_use("session-1", "Bash", {"command": "ls"})
    ctx = HookContext("session-1")
    output = await manager.execute(HookEvent.PreToolUse, event, ctx)

    if not output.continue_execution:
        print(f"Blocked: {output.stop_reason}")
    assert capsys.readouterr().out == "Blocked: no ls today\n"
    assert heard == ["security", "logging"]


# -- HookManager: Execution Order ----------------------------------------------------------------------


class TestExecutionOrder:
    async def test_1_hooks_sorted_by_priority_higher_first(self) -> None:
        heard: list[str] = []
        hooks = [Answering(HookOutput.allow(), name, heard=heard) for name in ("low", "tie 1", "tie 2", "high")]
        for hook, priority in zip(hooks, (-1, 0, 0, 1), strict=True):
            hook.priority = priority

        await manager_of(*hooks).fire(LS)

        assert heard == ["high", "tie 1", "tie 2", "low"]

    async def test_2_tool_matcher_checked_if_defined(self) -> None:
        heard: list[str] = []
        hooks = [Answering(HookOutput.allow(), name, heard=heard) for name in ("Bash|Write", "Read", "none")]
        for hook in hooks[:2]:
            hook.matcher = hook.name
            hook.events = (PreToolUse,)

        await manager_of(*hooks).fire(LS)

        assert heard == ["Bash|Write", "none"]

    async def test_3_execute_with_timeout(self) -> None:
        manager = HookManager()

        @manager.on(PreToolUse, timeout=0.05)
        async def slow(event: PreToolUse) -> None:
            await asyncio.Event().wait()

        start = monotonic()
        result = await manager.fire(LS)

        assert isinstance(result.runs[0].error, HookTimeout)
        assert result.reason == "hook 'slow' failed, so this is denied: no answer within 0.05 s"
        assert monotonic() - start < 20

    async def test_4_merge_outputs_any_block_is_stop(self) -> None:
        heard: list[str] = []
        outputs = {"first": HookOutput.allow(), "second": HookOutput.block("no"), "third": HookOutput.allow()}

        result = await manager_of(*(Answering(o, name, heard=heard) for name, o in outputs.items())).fire(LS)

        assert result.blocked
        assert heard == ["first", "second"]

    async def test_5_return_merged_result(self) -> None:
        first = Answering(HookOutput.allow().with_context("one").with_system_message("m"), "first")
        second = Answering(HookOutput.allow().with_context("two").with_suppressed_logging(), "second")

        output = (await manager_of(first, second).fire(LS)).output

        assert output == HookOutput(additional_context="one\ntwo", system_message="m", suppress_logging=True)


# -- HookManager: Output Merging Rules -----------------------------------------------------------------


def merged(field: str, *values: Any) -> Any:
    """Merge by a manager, on an event that no answer stops: every hook is heard."""
    hooks = (Answering(HookOutput(**{field: value}), str(n)) for n, value in enumerate(values))
    return getattr(manager_of(*hooks).fire_sync(post_tool_use("s", "Bash", "")).output, field)


class TestOutputMergingRules:
    @pytest.mark.parametrize("values", [(True, True), (True, False), (False, True), (False, False)])
    def test_continue_execution_and_any_false_is_false(self, values: tuple[bool, bool]) -> None:
        assert merged("continue_execution", *values) is all(values)

    @pytest.mark.parametrize("values", [(False, False), (True, False), (False, True), (True, True)])
    def test_suppress_logging_or_any_true_is_true(self, values: tuple[bool, bool]) -> None:
        assert merged("suppress_logging", *values) is any(values)

    @pytest.mark.parametrize("field", ["stop_reason", "system_message"])
    @pytest.mark.parametrize(
        ("values", "expected"),
        [(("a", "b"), "b"), (("a", None), "a"), ((None, "b"), "b"), ((None, None), None), (("a", "b", None), "b")],
    )
    def test_stop_reason_and_system_message_latest_non_none(
        self, field: str, values: tuple[str | None, ...], expected: str | None
    ) -> None:
        assert merged(field, *values) == expected

    @pytest.mark.parametrize(
        ("values", "expected"), [(({"a": 1}, {"b": 2}), {"b": 2}), (({"a": 1}, None), {"a": 1}), ((None, None), None)]
    )
    def test_updated_input_latest_non_none(self, values: tuple[Any, ...], expected: Any) -> None:
        assert merged("updated_input", *values) == expected

    @pytest.mark.parametrize(
        ("values", "expected"),
        [(("a", "b"), "a\nb"), (("a", None, "c"), "a\nc"), ((None, "b"), "b"), ((None, None), None)],
    )
    def test_additional_context_concatenate_with_newline(
        self, values: tuple[str | None, ...], expected: str | None
    ) -> None:
        assert merged("additional_context", *values) == expected


def test_every_name_of_the_document_is_public() -> None:
    names = {"Hook", "HookContext", "HookEvent", "HookManager", "HookOutput", *BY_NAME}

    assert names <= set(fairlead.__all__)
