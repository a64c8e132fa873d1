"""The hook-system document on usage: its three examples, agents and tools that fire hooks, and where each type is."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

import fairlead
from fairlead import (
    Event,
    ExecutionContext,
    Hook,
    HookContext,
    HookEvent,
    HookManager,
    HookOutput,
    PayloadError,
    PreToolUse,
    SubagentStart,
    load_rules,
    pre_tool_use,
    stop,
    subagent_start,
)
from fairlead.sdk import sdk_hooks
from fairlead.testing import Recorder, assert_allows, assert_blocks

if TYPE_CHECKING:
    from claude_agent_sdk.types import HookEvent as SdkEvent

EXAMPLES = Path(__file__).parents[2] / "examples"


def decide(example: str, event: str, **payload: Any) -> tuple[int, str, str]:
    """Run an example as its user would: by the command line, in a process of its own."""
    command = [sys.executable, "-m", "fairlead", event, "--hooks", str(EXAMPLES / example)]
    text = json.dumps({"session_id": "s1", **payload})
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stdout, done.stderr


def security_hook() -> Hook:
    """The example's class, with the document's patterns."""
    hook = runpy.run_path(str(EXAMPLES / "security.py"))["SecurityHook"](["rm -rf", "sudo"])
    assert isinstance(hook, Hook)
    return hook


# -- Usage Example: Custom Security Hook ---------------------------------------------------------------


class TestCustomSecurityHook:
    def test_its_name_events_and_priority(self) -> None:
        hook = security_hook()

        assert (hook.name, hook.events, hook.priority) == ("security-hook", (PreToolUse,), 100)

    @pytest.mark.parametrize(("command", "pattern"), [("rm -rf /", "rm -rf"), ("sudo ls", "sudo")])
    def test_it_blocks_a_command_with_a_blocked_pattern(self, command: str, pattern: str) -> None:
        event = pre_tool_use("s1", "Bash", {"command": command})

        assert_blocks(security_hook(), event, f"Blocked: contains '{pattern}'")

    @pytest.mark.parametrize(
        ("tool", "tool_input"),
        [("Bash", {"command": "ls"}), ("Read", {"command": "sudo"}), ("Bash", {}), ("Bash", {"command": None})],
        ids=["harmless", "no Bash", "no command", "no text"],
    )
    def test_it_allows_everything_else(self, tool: str, tool_input: dict[str, Any]) -> None:
        assert_allows(security_hook(), pre_tool_use("s1", tool, tool_input))

    def test_usage(self) -> None:
        exit_code, stdout, stderr = decide(
            "security.py", "PreToolUse", tool_name="Bash", tool_input={"command": "sudo make me a sandwich"}
        )

        reason = "Blocked: contains 'sudo'"
        verdict = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
        assert (exit_code, stderr) == (2, f"{reason}\n")
        assert json.loads(stdout) == {"hookSpecificOutput": verdict}

    def test_usage_where_nothing_is_blocked(self) -> None:
        assert decide("security.py", "PreToolUse", tool_name="Bash", tool_input={"command": "ls"}) == (0, "", "")


# -- Usage Example: Logging Hook -----------------------------------------------------------------------


class TestLoggingHook:
    @pytest.mark.parametrize(
        ("event", "payload", "name"),
        [
            ("PreToolUse", {"tool_input": {"command": "ls"}}, "pre_tool_use"),
            ("PostToolUse", {"tool_response": "done"}, "post_tool_use"),
            ("PostToolUseFailure", {"error": "boom"}, "post_tool_use_failure"),
        ],
    )
    def test_it_logs_the_event_and_the_tool(self, event: str, payload: dict[str, Any], name: str) -> None:
        logged = decide("logging_hook.py", event, tool_name="Bash", **payload)

        assert logged == (0, "", f"audit: hook event {name}, tool Bash\n")

    def test_it_does_not_log_other_events(self) -> None:
        assert decide("logging_hook.py", "Stop") == (0, "", "")


# -- Usage Example: Subagent Monitoring Hook -----------------------------------------------------------


class TestSubagentMonitoringHook:
    def test_subagent_started(self) -> None:
        told = decide(
            "subagent_monitor.py", "SubagentStart", agent_id="a1", agent_type="Explore", description="look around"
        )

        assert told == (0, "", "INFO subagent started: id=a1 type=Explore desc=look around\n")

    def test_subagent_started_by_the_documents_names(self) -> None:
        told = decide(
            "subagent_monitor.py", "SubagentStart", subagent_id="a1", subagent_type="Explore", description="look around"
        )

        assert told == (0, "", "INFO subagent started: id=a1 type=Explore desc=look around\n")

    @pytest.mark.parametrize("payload", [{"success": True}, {}], ids=["success", "the client does not say"])
    def test_subagent_completed_successfully(self, payload: dict[str, Any]) -> None:
        told = decide("subagent_monitor.py", "SubagentStop", agent_id="a1", **payload)

        assert told == (0, "", "INFO subagent completed: id=a1\n")

    def test_subagent_failed(self) -> None:
        told = decide("subagent_monitor.py", "SubagentStop", agent_id="a1", success=False, error="boom")

        assert told == (0, "", "WARNING subagent failed: id=a1 error=boom\n")


# -- Integration with Agent ----------------------------------------------------------------------------


async def call(options: ClaudeAgentOptions, event: SdkEvent, **payload: Any) -> Any:
    """Call the callback of an event as the SDK does."""
    assert options.hooks is not None
    (matcher,) = options.hooks[event]
    (callback,) = matcher.hooks
    base = {"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/", "hook_event_name": event}
    return await callback({**base, **payload}, "toolu_1", {"signal": None})  # type: ignore[arg-type]


class TestIntegrationWithAgent:
    """The builder is `claude-agent-sdk`'s own: `ClaudeAgentOptions(hooks=sdk_hooks(manager))`."""

    @pytest.fixture
    def recorder(self) -> Recorder:
        return Recorder(PreToolUse)

    @pytest.fixture
    def options(self, tmp_path: Path, recorder: Recorder) -> ClaudeAgentOptions:
        settings = tmp_path / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text('{"hooks": {"PreToolUse": {"no-writing": {"command": "exit 2", "matcher": "Write"}}}}')
        manager = HookManager()
        load_rules(settings).register(manager)
        manager.register(security_hook())
        manager.register(recorder)
        return ClaudeAgentOptions(hooks=sdk_hooks(manager))

    async def test_from_claude_code_the_projects_own_hooks_are_called(self, options: ClaudeAgentOptions) -> None:
        answer = await call(options, "PreToolUse", tool_name="Write", tool_input={}, tool_use_id="toolu_1")

        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"

    async def test_hook_the_security_hook_is_called(self, options: ClaudeAgentOptions) -> None:
        answer = await call(options, "PreToolUse", tool_name="Bash", tool_input={"command": "sudo ls"})

        verdict = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "Blocked: contains 'sudo'",
        }
        assert answer == {"hookSpecificOutput": verdict}

    async def test_hook_the_logging_hook_is_called(self, options: ClaudeAgentOptions, recorder: Recorder) -> None:
        answer = await call(options, "PreToolUse", tool_name="Bash", tool_input={"command": "ls"})

        assert answer == {}
        assert [(event.event_name, event.tool_name) for event in recorder.recorded] == [("PreToolUse", "Bash")]

    def test_build_one_callback_for_each_event_that_has_a_hook(self, options: ClaudeAgentOptions) -> None:
        assert {name: len(matchers) for name, matchers in (options.hooks or {}).items()} == {"PreToolUse": 1}


# -- ExecutionContext Integration ----------------------------------------------------------------------


class TestExecutionContextIntegration:
    """`ExecutionContext::new(security)` is the constructor; `fire_hook` gives the answer back, not `()`."""

    async def test_fire_hook_from_within_a_tool(self) -> None:
        recorder, manager, security = Recorder(SubagentStart), HookManager(), object()
        manager.register(recorder)
        ctx = ExecutionContext(security).hooks(manager, "session-1")

        result = await ctx.fire_hook(
            HookEvent.SubagentStart, subagent_start("session-1", "agent-1", "Explore", "look around")
        )

        assert ctx.security is security
        assert recorder.recorded == [subagent_start("session-1", "agent-1", "Explore", "look around")]
        assert (result.blocked, [run.name for run in result.runs]) == (False, ["recorder"])

    async def test_a_hook_can_keep_the_subagent_from_starting(self) -> None:
        manager = HookManager()

        @manager.on(SubagentStart)
        async def enough(event: SubagentStart) -> HookOutput:
            return HookOutput.block(f"no more {event.agent_type}")

        ctx = ExecutionContext().hooks(manager, "session-1")
        result = await ctx.fire_hook(HookEvent.SubagentStart, subagent_start("session-1", "a1", "Explore", "look"))

        assert (result.blocked, result.reason) == (True, "no more Explore")

    async def test_hooks_get_the_session_id(self) -> None:
        manager, heard = HookManager(), []

        @manager.on(Event)
        async def listen(event: Event, ctx: HookContext) -> None:
            heard.append(ctx.session_id)

        await ExecutionContext().hooks(manager, "session-1").fire_hook(HookEvent.Stop, stop("another"))

        assert heard == ["session-1"]

    async def test_without_hooks_support_nothing_objects(self) -> None:
        result = await ExecutionContext().fire_hook(HookEvent.Stop, stop("s"))

        assert (result.output, result.event, result.runs) == (HookOutput.allow(), stop("s"), ())

    async def test_the_event_must_be_of_the_kind_that_is_fired(self) -> None:
        with pytest.raises(PayloadError, match=r"^expected SubagentStart, got Stop$"):
            await ExecutionContext().fire_hook(HookEvent.SubagentStart, stop("s"))


# -- File Locations ------------------------------------------------------------------------------------

TYPES = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "SessionStart",
    "SessionEnd",
]
FACTORIES = [HookEvent[name].snake for name in TYPES]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["HookEvent"], id="HookEvent"),
        pytest.param(TYPES, id="HookEventData: one type per event"),
        pytest.param(["Event", *FACTORIES], id="HookInput: Event and its factories"),
        pytest.param(["HookOutput"], id="HookOutput"),
        pytest.param(["HookContext"], id="HookContext"),
        pytest.param(["Hook"], id="Hook trait: a base class"),
        pytest.param(["HookManager"], id="HookManager"),
        pytest.param(["CommandHook"], id="CommandHook"),
        pytest.param(["HookRule"], id="HookRule"),
        pytest.param(["HookAction"], id="HookAction"),
    ],
)
def test_file_locations_every_type_is_a_public_name_of_fairlead(names: list[str]) -> None:
    assert set(names) <= set(fairlead.__all__)
    assert all(callable(getattr(fairlead, name)) for name in names)


async def test_file_locations_fn_hook_is_a_function_given_to_on_or_add() -> None:
    """Name, events, priority, timeout and matcher of Rust's builder are the options of both."""
    manager = HookManager()

    @manager.on(PreToolUse, name="decorated", priority=1, timeout=2, matcher="Bash")
    async def decorated(event: PreToolUse) -> HookOutput:
        return HookOutput.allow().with_context(event.tool_name)

    def added(event: PreToolUse, ctx: HookContext) -> HookOutput:
        return HookOutput.allow().with_context(ctx.session_id)

    manager.add(added, PreToolUse, priority=2)

    result = await manager.fire(pre_tool_use("s1", "Bash", {}))

    assert [run.name for run in result.runs] == ["added", "decorated"]
    assert result.output.additional_context == "s1\nBash"
