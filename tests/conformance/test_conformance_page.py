"""`docs/conformance.md` names the test for every scenario of the documents that Fairlead was built from.

The page is written from this file: `python tests/conformance/test_conformance_page.py`.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/conformance.md"

INTRODUCTION = """\
# Conformance

Fairlead was built from five documents. Each of their scenarios has a test, and this page lists it: paste its name
after `pytest tests/conformance/`. The page is generated from a list that is itself compared with the tests, so none is
missing.
"""

# -- the subagent specification ------------------------------------------------------------------------

SPECIFICATION = """\
## The subagent specification

How conclaude specifies SubagentStart and SubagentStop. For scenarios about the command line, running commands, their
environment or failures, the test runs `fairlead <Event>` as the client does.
"""

STARTING = {
    "SubagentStartPayload type definition": [
        "Valid SubagentStartPayload deserialization",
        "Missing agent_id field",
        "Empty agent_id value",
        "Missing subagent_type field",
    ],
    "SubagentStart payload validation function": [
        "Complete valid payload passes validation",
        "Empty agent_id fails validation",
        "Empty subagent_type fails validation",
        "Empty agent_transcript_path fails validation",
        "Invalid base payload fails validation",
    ],
    "SubagentStart hook handler function": [
        "Successful SubagentStart hook execution",
        "Invalid payload causes handler failure",
        "Environment variables exported on success",
    ],
    "HookPayload enum includes SubagentStart variant": [
        "SubagentStart variant added to enum",
    ],
    "CLI command for SubagentStart hook": [
        "SubagentStart command processes valid input",
        "SubagentStart command with invalid JSON",
    ],
    "SubagentStart classified as system event hook": [
        "SubagentStart recognized as system event",
        "SubagentStart notifications respect showSystemEvents flag",
    ],
    "Notification support for SubagentStart events": [
        "SubagentStart in hooks list enables notifications",
        "Wildcard hooks config includes SubagentStart",
        "SubagentStart not in hooks list suppresses notifications",
    ],
    "SubagentStart logging includes agent context": [
        "SubagentStart log message includes agent details",
    ],
    "Test coverage for SubagentStart functionality": [
        "Unit tests validate payload fields",
        "Integration tests verify handler execution",
    ],
}
"""Requirement → its scenarios, proved in `test_subagent_hooks.py`."""

STOPPING = {
    "Subagent Stop Command Configuration": [
        "Wildcard pattern configuration",
        "Exact match pattern configuration",
        "Glob pattern configuration",
        "Multiple pattern configuration",
    ],
    "Agent ID from Payload": [
        "Agent ID provided in payload",
        "Agent ID used for all pattern matching",
    ],
    "Glob Pattern Matching": [
        "Wildcard matches all subagents",
        "Exact match pattern",
        "Prefix glob pattern",
        "Suffix glob pattern",
        "Character class glob pattern",
        "Multiple patterns match same subagent",
    ],
    "Command Execution Order": [
        "Wildcard and specific pattern both match",
        "Multiple glob patterns match",
        "No patterns match",
    ],
    "Environment Variable Context": [
        "Environment variables available in commands",
        "Agent ID in environment variable",
        "Agent transcript path in environment variable",
        "Environment variables do not conflict with system",
    ],
    "Command Output Handling": [
        "Command with showStdout enabled",
        "Command with showStderr enabled",
        "Command with output disabled",
    ],
    "Graceful Command Failure Handling": [
        "Command execution fails",
        "Command spawning fails",
        "All commands complete despite individual failures",
    ],
    "Backward Compatibility": [
        "Config without subagentStop section",
        "Empty subagentStop configuration",
        "subagentStop config does not affect other hooks",
    ],
    "Configuration Validation": [
        "Valid subagentStop configuration",
        "Invalid command structure",
        "Invalid maxOutputLines value",
        "Pattern is empty string",
    ],
}
"""Requirement → its scenarios, proved in `test_subagent_hooks_stop.py`."""

# -- the proposal for SubagentStop commands ------------------------------------------------------------

PROPOSAL = """\
## The proposal for SubagentStop commands

It has no scenarios, so its statements are listed. A statement that the specification above already covers refers to
that test.
"""

_OURS = "test_subagent_stop_commands.py::test_"
_STOP = "test_subagent_hooks_stop.py::test_"

PROPOSED: dict[str, dict[str, str | None]] = {
    "Key benefits": {
        "Run cleanup, validation, or logging commands when specific subagents complete": _OURS
        + "for_users_wanting_subagent_commands",
        "Use glob patterns to target groups of subagents": _OURS + "command_execution",
        "Access subagent context via environment variables in commands": _OURS + "environment_variables",
        "Full backward compatibility": _OURS + "backward_compatibility_maintained",
    },
    "What Changes": {
        "Configuration Schema": _OURS + "configuration_schema",
        "Agent ID Usage": _OURS + "agent_id_usage",
        "Environment Variables": _OURS + "environment_variables",
        "Command Execution": _OURS + "command_execution",
        "Matching Logic": _OURS + "matching_logic",
        "Type System": _OURS + "type_system",
        "Documentation": _OURS + "documentation",
    },
    "What's Included: Configuration": {
        "New `subagentStop` section in YAML config (separate from `stop`)": _OURS
        + "new_subagentstop_section_in_yaml_config_separate_from_stop",
        "Support for exact match, wildcard (`*`), and full glob patterns": _OURS + "command_execution",
        "Command configuration per subagent pattern": _OURS + "command_configuration_per_subagent_pattern",
        "Environment variable passing for all commands": _OURS + "environment_variables",
    },
    "What's Included: Execution": {
        "Use `agent_id` field from SubagentStopPayload (no transcript parsing needed)": _STOP
        + "agent_id_used_for_all_pattern_matching",
        "Match agent_id against configured patterns (glob-based)": _OURS + "command_execution",
        "Execute matching commands (both wildcard and specific)": _OURS + "matching_logic",
        "Pass context via environment variables": _OURS + "how_should_commands_access_subagent_context",
    },
    "What's Included: Pattern Matching": {
        "Exact match: `coder` matches only `coder`": _OURS + "exact_match_coder_matches_only_coder",
        "Wildcard: `*` matches all subagents": _OURS + "wildcard_matches_all_subagents",
        "Prefix glob: `test*` matches `tester`, `test-runner`, etc.": _OURS
        + "prefix_glob_matches_tester_test_runner_etc",
        "Suffix glob: `*coder` matches `coder`, `auto-coder`, etc.": _OURS + "suffix_glob_matches_coder_auto_coder_etc",
        "Complex glob: `agent_[0-9]*` matches `agent_1`, `agent_2x`, etc.": _OURS
        + "complex_glob_matches_agent_1_agent_2x_etc",
    },
    "What's NOT Included": {
        "Changes to existing `stop` hook behavior": _OURS + "changes_to_existing_stop_hook_behavior",
        "Subagent lifecycle hooks beyond stop": _OURS + "subagent_lifecycle_hooks_beyond_stop",
        "Subagent execution control (blocking, restarting)": _OURS + "subagent_execution_control_blocking_restarting",
        "Docker container support for subagent hooks": None,
        "Timeout configuration (uses existing command execution timeout logic)": _OURS
        + "timeout_configuration_uses_existing_command_execution_timeout_logic",
    },
    "Questions & Decisions": {
        "How should commands access subagent context?": _OURS + "how_should_commands_access_subagent_context",
        "How to obtain agent identifier from SubagentStop payload?": _OURS
        + "how_to_obtain_agent_identifier_from_subagentstop_payload",
        "When both wildcard and specific commands match, what should happen?": _OURS
        + "when_both_wildcard_and_specific_commands_match_what_should_happen",
        "Should subagent stop hooks support glob patterns beyond exact match and wildcard?": _OURS
        + "should_subagent_stop_hooks_support_glob_patterns_beyond_exact_match_and_wildcard",
        "How should the configuration be structured in YAML?": _OURS
        + "how_should_the_configuration_be_structured_in_yaml",
    },
    "Success Criteria": {
        "Configuration validates": _STOP + "valid_subagentstop_configuration",
        "Agent ID usage works": _OURS + "agent_id_usage",
        "Pattern matching works": _OURS + "command_execution",
        "Environment variables available": _STOP + "environment_variables_available_in_commands",
        "Multiple commands execute": _OURS + "matching_logic",
        "Backward compatibility maintained": _OURS + "backward_compatibility_maintained",
    },
    "Risks & Mitigations": {
        "Missing agent_id field (old Claude Code)": _OURS + "missing_agent_id_field_old_claude_code",
        "Glob pattern performance": _OURS + "glob_pattern_performance",
        "Environment variable conflicts": _STOP + "environment_variables_do_not_conflict_with_system",
        "Command execution failures": _STOP + "all_commands_complete_despite_individual_failures",
    },
    "Migration Path": {
        "For users without subagentStop config": _OURS + "for_users_without_subagentstop_config",
        "For users wanting subagent commands": _OURS + "for_users_wanting_subagent_commands",
        "Breaking changes: None": _OURS + "changes_to_existing_stop_hook_behavior",
    },
}
"""Part of the proposal → its statements → the test; `None` is for what nobody offers."""

# -- the hook-system document --------------------------------------------------------------------------

HOOK_SYSTEM = """\
## The hook-system document

It has no scenarios either. Every statement, row and example under a heading has its own test, most of them in a class
for the heading.
"""

_SYSTEM = "test_agent_hook_system.py::"
_COMMANDS = "test_agent_hook_system_commands.py::"
_USAGE = "test_agent_hook_system_usage.py::"

HEADINGS = {
    "Overview": [
        _SYSTEM + "test_the_hooks_system_allows_intercepting_and_controlling_execution_at_specific_points",
        _SYSTEM + "test_hook_execution_flow_event_trigger_then_hooks_sorted_then_output_merge_then_continue_or_block",
    ],
    "Hook Events": [
        _SYSTEM + "test_10_event_types_for_different_lifecycle_points",
        _SYSTEM + "test_hook_events_event",
        _SYSTEM + "test_hook_events_description",
        _SYSTEM + "test_hook_events_can_block",
        _SYSTEM + "test_hook_events_can_block_is_yes_for_a_hook_that_says_so",
    ],
    "Core Types": [_SYSTEM + "test_every_name_of_the_document_is_public"],
    "Hook Trait": [_SYSTEM + "TestHookTrait"],
    "HookEventData (Type-Safe Event Data)": [_SYSTEM + "TestHookEventData"],
    "HookInput": [_SYSTEM + "TestHookInput"],
    "HookOutput": [_SYSTEM + "TestHookOutput"],
    "HookContext": [_SYSTEM + "TestHookContext"],
    "HookManager": [_SYSTEM + "test_hook_manager_example"],
    "Execution Order": [_SYSTEM + "TestExecutionOrder"],
    "Output Merging Rules": [_SYSTEM + "TestOutputMergingRules"],
    "CommandHook": [_COMMANDS + "TestCommandHook"],
    "Configuration": [_COMMANDS + "TestConfiguration", _COMMANDS + "TestConfigurationAtWork"],
    "Command Interface": [_COMMANDS + "TestCommandInterface"],
    "Usage Example: Custom Security Hook": [_USAGE + "TestCustomSecurityHook"],
    "Usage Example: Logging Hook": [_USAGE + "TestLoggingHook"],
    "Usage Example: Subagent Monitoring Hook": [_USAGE + "TestSubagentMonitoringHook"],
    "Integration with Agent": [_USAGE + "TestIntegrationWithAgent"],
    "ExecutionContext Integration": [_USAGE + "TestExecutionContextIntegration"],
    "File Locations": [
        _USAGE + "test_file_locations_every_type_is_a_public_name_of_fairlead",
        _USAGE + "test_file_locations_fn_hook_is_a_function_given_to_on_or_add",
    ],
    "Shared Types: HookRule & HookAction": [_COMMANDS + "TestHookRule", _COMMANDS + "TestHookAction"],
    "Usage in frontmatter (skills/subagents)": [_COMMANDS + "TestUsageInFrontmatter"],
    "Official hooks.json format (plugins)": [_COMMANDS + "TestOfficialHooksJsonFormat"],
}
"""Heading → the tests and classes of tests of what is under it."""

# -- the monitor's document ----------------------------------------------------------------------------

MONITOR = """\
## The monitor's document

How agent-tmux-monitor maps events to states and tracks subagents. Every row of its tables has a test. Taken literally,
the tables show the wrong state in 21 cases; each of those has a test, too, under the number that a study of the
original gave it.
"""

TABLES = {
    "SessionStatus: The Three Fundamental States": [
        "Idle",
        "Working",
        "AttentionNeeded",
        "Every session is in exactly one of these states",
    ],
    "Staleness (Computed Property)": ["Staleness is not a state"],
    "Tool Execution Events": [
        "PreToolUse, interactive tool",
        "PreToolUse, standard tool",
        "PostToolUse",
        "PostToolUseFailure",
    ],
    "User Interaction Events": ["UserPromptSubmit", "Stop"],
    "Subagent Events": ["SubagentStart", "SubagentStop"],
    "Session Lifecycle Events": ["SessionStart", "SessionEnd"],
    "Context Management Events": ["PreCompact", "Setup"],
    "Notification Events": [
        "Notification, permission_prompt",
        "Notification, idle_prompt",
        "Notification, elicitation_dialog",
        "Notification, auth_success",
        "Notification, unknown/missing",
    ],
    "RawHookEvent Structure": ["Common Fields", "Injected by hook script"],
    "Fields by Event Type": [
        "Fields of PreToolUse",
        "Fields of PostToolUse",
        "Fields of PostToolUseFailure",
        "Fields of UserPromptSubmit",
        "Fields of Stop",
        "Fields of SubagentStart",
        "Fields of SubagentStop",
        "Fields of SessionStart",
        "Fields of SessionEnd",
        "Fields of PreCompact",
        "Fields of Setup",
        "Fields of Notification",
    ],
    "Subagent Tracking": [
        "Subagents as Child Sessions",
        "Hierarchy Example",
        "Lifecycle: SubagentStart",
        "Lifecycle: SubagentStop",
    ],
    "Registry Changes": ["sessions_by_pid", "sessions_by_agent_id"],
    "HookEventType Enum": ["All 12 Claude Code hook events"],
}
"""Heading → the rows under it, proved in `test_agent_tmux_monitor.py`."""

CORNERS = [
    "01 The status line arrives after Stop",
    "02 The user interrupts, and no Stop comes",
    "03 The service fails, and StopFailure comes instead of Stop",
    "04 A permission is asked, and its note comes 6 seconds late",
    "05 A permission is granted, and the tool takes long",
    "06 A permission is denied, or a question dismissed",
    "07 A rule denies a call, and no event closes it",
    "08 Tools run in parallel",
    "09 A subagent's tool events come while the main agent asks",
    "09 A subagent's question is its own",
    "10 The main agent stops while subagents work in the background",
    "10 Nobody wakes the main agent",
    "11 An idle_prompt comes while subagents work",
    "12 A session starts after compaction in mid-turn",
    "13 Clear and resume change the id",
    "14 A rescan finds a known session",
    "15 Another hook keeps the agent from stopping",
    "16 Events arrive in another order",
    "17 Several sessions share a process, or have none",
    "18 The context window has a million tokens",
    "19 A status line is partial",
    "20 A dialog waits at the start, and no event was sent",
    "21 The daemon starts anew",
]
"""What happens in the client, proved in `test_agent_tmux_monitor_corners.py`."""

# -- the mail's document -------------------------------------------------------------------------------

MAIL = """\
## The mail's document

How Subtrate keeps agents running and delivers mail to them. Every row, flow and format has a test with the real
launcher, daemon and commands. The commands `substrate …` of the document are `fairlead …` here.
"""

MAILED = {
    "Hook Types": ["SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact"],
    "Installation": ["hooks install", "hooks status", "hooks uninstall"],
    "Stop Hook (Main Agents)": [
        "Mail exists",
        "Tasks incomplete",
        "No incomplete tasks",
        "Long Poll: New message",
        "Long Poll: Timeout",
        "Ctrl+C to force exit",
        "Always blocks by default",
        "Checks mail before tasks",
        "9.5-minute long poll",
    ],
    "SubagentStop Hook (Task-Spawned Agents)": [
        "stop_hook_active: true",
        "stop_hook_active: false, Mail exists",
        "stop_hook_active: false, No mail",
        "Key Differences",
        "First stop, Second stop",
    ],
    "SessionStart Hook": ["Exports session ID", "Sends heartbeat", "Checks for mail", "Empty: Silent continue"],
    "UserPromptSubmit Hook": ["Silent heartbeat", "Checks for new mail"],
    "PreCompact Hook": ["Saves identity", "Records heartbeat", "Outputs status"],
    "Hook Input Format": ["All hooks receive JSON input via stdin", "session_id"],
    "Agent Lifecycle": ["Agent Lifecycle"],
    "Session ID Flow": ["Session ID Flow"],
    "Troubleshooting and Debugging": [
        "poll --session-id --format hook",
        "identity current --session-id",
        "Manual Hook Testing",
        "Check Hook Registration",
    ],
    "Architecture Notes and Configuration": ["Hook Timeout", "settings.json"],
}
"""Heading → what is under it, proved in `test_subtrate.py`."""


# -- the page ------------------------------------------------------------------------------------------


def page() -> str:
    parts = [INTRODUCTION, SPECIFICATION]
    for file, requirements in SCENARIOS.items():
        parts += titled("scenario", file, requirements)
    parts.append(PROPOSAL)
    for part, statements in PROPOSED.items():
        parts.append(f"### {part}\n")
        parts.append(table("statement", [(said, [node] if node else []) for said, node in statements.items()]))
    parts += [HOOK_SYSTEM, table("heading", list(HEADINGS.items()))]
    parts += [MONITOR, *titled("row", "test_agent_tmux_monitor.py", TABLES)]
    parts += titled("case", "test_agent_tmux_monitor_corners.py", {"Cases that the tables get wrong": CORNERS})
    parts += [MAIL, *titled("row, flow or format", "test_subtrate.py", MAILED)]
    return "\n".join(parts)


def titled(first: str, file: str, headings: dict[str, list[str]]) -> list[str]:
    """Under each heading the tests that are named after what they prove."""
    parts = []
    for heading, titles in headings.items():
        rows = [(title, [f"{file}::{name_of(title)}"]) for title in titles]
        parts += [f"### {heading}\n", table(first, rows)]
    return parts


SCENARIOS = {"test_subagent_hooks.py": STARTING, "test_subagent_hooks_stop.py": STOPPING}


def table(first: str, rows: list[tuple[str, list[str]]]) -> str:
    cells = [(said, "<br>".join(f"`{node}`" for node in nodes) or "not supported here either") for said, nodes in rows]
    return "".join(f"| {left} | {right} |\n" for left, right in [(first, "test"), ("---", "---"), *cells])


def name_of(title: str) -> str:
    """A scenario's test is named after it."""
    return "test_" + "_".join(re.findall(r"\w+", title.lower().replace("'s ", "s ")))


@cache
def declared(file: str) -> list[str]:
    """The tests, and classes of tests, of a file, in its order."""
    body = ast.parse((HERE / file).read_text("utf-8")).body
    named = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return [name for name in named if name.startswith(("test_", "Test"))]


def proposed() -> list[str]:
    return [node for statements in PROPOSED.values() for node in statements.values() if node]


# -- what is checked -----------------------------------------------------------------------------------


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page()


def test_every_scenario_of_the_specification_has_its_test_in_its_order() -> None:
    for file, requirements in SCENARIOS.items():
        assert declared(file) == [name_of(title) for titles in requirements.values() for title in titles]


def test_every_row_and_every_case_of_the_monitor_has_its_test_in_its_order() -> None:
    rows = [name_of(title) for titles in TABLES.values() for title in titles]

    assert declared("test_agent_tmux_monitor.py") == rows
    assert declared("test_agent_tmux_monitor_corners.py") == [name_of(title) for title in CORNERS]


def test_every_row_flow_and_format_of_the_mail_has_its_test_in_its_order() -> None:
    assert declared("test_subtrate.py") == [name_of(title) for titles in MAILED.values() for title in titles]


def test_every_statement_of_the_proposal_has_a_test_that_exists() -> None:
    missing = [node for node in proposed() if node.partition("::")[2] not in declared(node.partition("::")[0])]

    assert missing == []


def test_every_test_of_the_proposal_stands_for_a_statement() -> None:
    file = "test_subagent_stop_commands.py"

    assert {node for node in proposed() if node.startswith(file)} == {f"{file}::{name}" for name in declared(file)}


def test_every_heading_of_the_hook_system_has_its_tests_and_every_test_a_heading() -> None:
    files = sorted(path.name for path in HERE.glob("test_agent_hook_system*.py"))

    listed = [node for nodes in HEADINGS.values() for node in nodes]

    assert sorted(listed) == sorted(f"{file}::{name}" for file in files for name in declared(file))


def test_every_file_of_tests_here_is_on_the_page() -> None:
    assert {path.name for path in HERE.glob("test_*.py")} - {Path(__file__).name} == set(
        re.findall(r"`(test_\w+\.py)::", page())
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
