"""How each output is written for Claude Code, at each of its events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import Event, HookEvent, HookOutput, parse
from fairlead.clients.claude._render import render, to_json
from fairlead.clients.protocol import NO_REASON, ClientAnswer
from fairlead.hooks._answer import read_answer
from fairlead.testing import make_payload

EVENTS = [event.value for event in HookEvent]

INPUT = {"command": "ls -l"}
QUIET = ClientAnswer()


def event_of(event: str) -> Event:
    return parse(make_payload(event))


def printed(document: dict[str, Any], exit_code: int = 0, stderr: str = "") -> ClientAnswer:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return ClientAnswer(exit_code, f"{text}\n".encode(), stderr)


def specific(event: str, **keys: Any) -> ClientAnswer:
    return printed({"hookSpecificOutput": {"hookEventName": event, **keys}})


# -- what the client understands, event by event -------------------------------------------------------

TAKE_CONTEXT = [
    "SessionStart",
    "Setup",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "PostModelSwitch",
]

STDOUT_IS_INPUT = ["PreCompact", "WorktreeCreate"]
"""Whatever is printed here becomes part of the summary's instructions, or the worktree's path."""

USER_MESSAGE = printed({"systemMessage": "no"})

BLOCKED = {
    "SessionStart": USER_MESSAGE,
    "Setup": USER_MESSAGE,
    "SessionEnd": USER_MESSAGE,
    "UserPromptSubmit": printed({"decision": "block", "reason": "no"}, 2, "no"),
    "UserPromptExpansion": printed({"decision": "block", "reason": "no"}, 2, "no"),
    "PreToolUse": printed(
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "no",
            }
        },
        2,
        "no",
    ),
    "PermissionRequest": specific("PermissionRequest", decision={"behavior": "deny", "message": "no"}),
    "PermissionDenied": USER_MESSAGE,
    "PostToolUse": printed({"decision": "block", "reason": "no"}),
    "PostToolUseFailure": specific("PostToolUseFailure", additionalContext="no"),
    "PostToolBatch": printed({"decision": "block", "reason": "no"}),
    "SubagentStart": USER_MESSAGE,
    "SubagentStop": printed({"decision": "block", "reason": "no"}),
    "TeammateIdle": ClientAnswer(2, b"", "no"),
    "Stop": printed({"decision": "block", "reason": "no"}),
    "StopFailure": USER_MESSAGE,
    "Notification": USER_MESSAGE,
    "MessageDisplay": USER_MESSAGE,
    "TaskCreated": printed({"decision": "block", "reason": "no"}, 2, "no"),
    "TaskCompleted": ClientAnswer(2, b"", "no"),
    "PreCompact": ClientAnswer(2, b"", "no"),
    "PostCompact": USER_MESSAGE,
    "PreModelSwitch": printed(
        {
            "hookSpecificOutput": {
                "hookEventName": "PreModelSwitch",
                "permissionDecision": "deny",
                "permissionDecisionReason": "no",
            }
        },
        2,
        "no",
    ),
    "PostModelSwitch": USER_MESSAGE,
    "Elicitation": ClientAnswer(2, b"", "no"),
    "ElicitationResult": ClientAnswer(2, b"", "no"),
    "ConfigChange": printed({"decision": "block", "reason": "no"}, 2, "no"),
    "InstructionsLoaded": USER_MESSAGE,
    "CwdChanged": USER_MESSAGE,
    "FileChanged": USER_MESSAGE,
    "DirectoryAdded": USER_MESSAGE,
    "WorktreeCreate": ClientAnswer(2, b"", "no"),
    "WorktreeRemove": ClientAnswer(2, b"", "no"),
}

UNBLOCKABLE = [event for event, answer in BLOCKED.items() if answer == USER_MESSAGE]
BLOCKABLE = [event for event in EVENTS if event not in {*UNBLOCKABLE, "PostToolUseFailure"}]

PERMISSIONS = {
    "PreToolUse": {"permissionDecision", "permissionDecisionReason", "updatedInput"},
    "PreModelSwitch": {"permissionDecision", "permissionDecisionReason"},
}


def test_every_event_has_its_row() -> None:
    assert sorted(BLOCKED) == sorted(EVENTS)


@pytest.mark.parametrize("event", EVENTS)
def test_an_empty_output_prints_nothing(event: str) -> None:
    assert render(event_of(event), HookOutput.allow()) == QUIET


@pytest.mark.parametrize("event", EVENTS)
def test_context_goes_to_the_model_where_the_client_takes_it(event: str) -> None:
    answer = render(event_of(event), HookOutput(additional_context="mind the gap"))

    if event == "PreCompact":
        assert answer == ClientAnswer(0, b"mind the gap\n", "")
    elif event in TAKE_CONTEXT:
        assert answer == specific(event, additionalContext="mind the gap")
    else:
        assert answer == QUIET


@pytest.mark.parametrize("event", EVENTS)
def test_a_system_message_is_printed_unless_stdout_is_input(event: str) -> None:
    answer = render(event_of(event), HookOutput(system_message="hello"))

    assert answer == (QUIET if event in STDOUT_IS_INPUT else printed({"systemMessage": "hello"}))


@pytest.mark.parametrize("event", EVENTS)
def test_suppressed_logging_is_printed_unless_stdout_is_input(event: str) -> None:
    answer = render(event_of(event), HookOutput(suppress_logging=True))

    assert answer == (QUIET if event in STDOUT_IS_INPUT else printed({"suppressOutput": True}))


@pytest.mark.parametrize("event", EVENTS)
def test_a_block_has_the_form_of_its_event(event: str) -> None:
    assert render(event_of(event), HookOutput.block("no")) == BLOCKED[event]


@pytest.mark.parametrize("event", EVENTS)
def test_a_denial_is_written_as_a_block(event: str) -> None:
    assert render(event_of(event), HookOutput.deny("no")) == BLOCKED[event]


@pytest.mark.parametrize("event", EVENTS)
def test_a_question_is_asked_about_a_call_or_a_switch(event: str) -> None:
    answer = render(event_of(event), HookOutput.ask("sure?"))

    if event in PERMISSIONS:
        assert answer == specific(event, permissionDecision="ask", permissionDecisionReason="sure?")
    else:
        assert answer == QUIET


@pytest.mark.parametrize("event", EVENTS)
def test_a_grant_is_given_to_a_call_a_switch_or_a_request(event: str) -> None:
    answer = render(event_of(event), HookOutput.grant("known"))

    if event in PERMISSIONS:
        assert answer == specific(event, permissionDecision="allow", permissionDecisionReason="known")
    elif event == "PermissionRequest":
        assert answer == specific(event, decision={"behavior": "allow"})
    else:
        assert answer == QUIET


@pytest.mark.parametrize("event", [event for event in EVENTS if event != "PreModelSwitch"])
def test_only_a_call_is_deferred(event: str) -> None:
    answer = render(event_of(event), HookOutput.defer())

    assert answer == (specific(event, permissionDecision="defer") if event == "PreToolUse" else QUIET)


def test_a_switch_of_the_model_is_never_deferred() -> None:
    """The client knows allow, deny and ask here; any other word makes it ignore the answer and switch."""
    answer = render(event_of("PreModelSwitch"), HookOutput.defer("later"))

    decision = json.loads(answer.stdout)["hookSpecificOutput"]["permissionDecision"]
    assert decision in {"ask", "deny"}


@pytest.mark.parametrize("event", EVENTS)
def test_a_new_input_is_given_to_a_call_alone(event: str) -> None:
    answer = render(event_of(event), HookOutput(updated_input=INPUT))

    assert answer == (specific(event, updatedInput=INPUT) if event == "PreToolUse" else QUIET)


NOTHING_SPECIFIC = {
    *("SessionEnd", "StopFailure", "PostCompact", "TaskCreated", "TaskCompleted", "TeammateIdle"),
    *("ConfigChange", "InstructionsLoaded", "DirectoryAdded", "WorktreeRemove"),
}
"""The client's schema has no `hookSpecificOutput` for these, and refuses an answer that has one."""


@pytest.mark.parametrize("event", EVENTS)
def test_what_we_have_no_field_for_is_passed_on_as_it_came(event: str) -> None:
    answer = render(event_of(event), HookOutput(extra={"newKey": [1]}))

    if event in {*STDOUT_IS_INPUT, *NOTHING_SPECIFIC, "PermissionRequest"}:
        assert answer == QUIET
    else:
        assert answer == specific(event, newKey=[1])


# -- single events -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["terminalSequence", "stopReason"])
def test_keys_of_the_top_level_stay_there(key: str) -> None:
    assert render(event_of("Stop"), HookOutput(extra={key: "x"})) == printed({key: "x"})


@pytest.mark.parametrize("event", ["UserPromptSubmit", "UserPromptExpansion"])
def test_whether_the_prompt_is_shown_again_is_the_events_own_key(event: str) -> None:
    """In the client's schema `suppressOriginalPrompt` stands in `hookSpecificOutput`."""
    output = HookOutput(continue_execution=False, stop_reason="no", extra={"suppressOriginalPrompt": True})

    document = {
        "decision": "block",
        "reason": "no",
        "hookSpecificOutput": {"hookEventName": event, "suppressOriginalPrompt": True},
    }
    assert json.loads(render(event_of(event), output).stdout) == document


def test_an_end_of_the_turn_brings_its_reason() -> None:
    output = HookOutput(continue_execution=False, stop_reason="enough", extra={"continue": False})

    assert to_json(event_of("PostToolUse"), output) == {
        "continue": False,
        "stopReason": "enough",
        "decision": "block",
        "reason": "enough",
    }


def test_an_end_of_the_turn_does_not_let_the_call_pass() -> None:
    """To the client alone `continue: false` is no block at PreToolUse: the tool would still run."""
    output = HookOutput(continue_execution=False, stop_reason="enough", extra={"continue": False})

    answer = render(event_of("PreToolUse"), output)

    document = json.loads(answer.stdout)
    assert (answer.exit_code, answer.stderr) == (2, "enough")
    assert document["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert (document["continue"], document["stopReason"]) == (False, "enough")


def test_context_goes_with_a_denial() -> None:
    answer = render(event_of("PreToolUse"), HookOutput.deny("no").with_context("use trash instead"))

    assert json.loads(answer.stdout)["hookSpecificOutput"]["additionalContext"] == "use trash instead"


def test_a_new_input_does_not_go_with_a_denial() -> None:
    assert render(event_of("PreToolUse"), HookOutput.deny("no").with_updated_input(INPUT)) == BLOCKED["PreToolUse"]


@pytest.mark.parametrize("event", EVENTS)
def test_a_block_without_a_reason_says_so(event: str) -> None:
    answer = render(event_of(event), HookOutput(continue_execution=False))

    assert answer == render(event_of(event), HookOutput.block(NO_REASON))
    assert NO_REASON == "blocked by a hook that gave no reason"


@pytest.mark.parametrize("event", UNBLOCKABLE)
def test_where_the_client_cannot_block_the_reason_stands_before_the_message(event: str) -> None:
    answer = render(event_of(event), HookOutput.block("no").with_system_message("hello"))

    assert answer == printed({"systemMessage": "no\nhello"})


def test_after_a_failure_the_reason_stands_before_the_context() -> None:
    answer = render(event_of("PostToolUseFailure"), HookOutput.block("no").with_context("mind the gap"))

    assert answer == specific("PostToolUseFailure", additionalContext="no\nmind the gap")


def test_a_permission_request_is_granted_with_a_new_input_and_rules() -> None:
    output = HookOutput(permission="allow", updated_input=INPUT, extra={"updatedPermissions": [{"type": "setMode"}]})

    decision = {"behavior": "allow", "updatedInput": INPUT, "updatedPermissions": [{"type": "setMode"}]}
    assert render(event_of("PermissionRequest"), output) == specific("PermissionRequest", decision=decision)


def test_a_permission_request_is_denied_and_the_agent_interrupted() -> None:
    output = HookOutput(continue_execution=False, stop_reason="no", extra={"interrupt": True})

    decision = {"behavior": "deny", "message": "no", "interrupt": True}
    assert render(event_of("PermissionRequest"), output) == specific("PermissionRequest", decision=decision)


def test_no_unknown_key_turns_a_denied_permission_request_around() -> None:
    output = HookOutput(continue_execution=False, stop_reason="no", extra={"behavior": "allow", "message": "fine"})

    assert render(event_of("PermissionRequest"), output) == BLOCKED["PermissionRequest"]


def test_no_unknown_key_turns_a_denied_call_around() -> None:
    extra = {"permissionDecision": "allow", "hookEventName": "PostToolUse", "decision": "approve"}

    answer = render(event_of("PreToolUse"), HookOutput(continue_execution=False, stop_reason="no", extra=extra))

    document = json.loads(answer.stdout)["hookSpecificOutput"]
    assert (document["permissionDecision"], document["hookEventName"]) == ("deny", "PreToolUse")


def test_a_worktrees_path_is_printed_as_it_is() -> None:
    output = HookOutput(system_message="hello", extra={"worktreePath": "/home/user/ümläut"})

    assert render(event_of("WorktreeCreate"), output) == ClientAnswer(0, "/home/user/ümläut\n".encode(), "")


def test_to_the_sdk_a_compaction_is_blocked_in_json() -> None:
    assert to_json(event_of("PreCompact"), HookOutput.block("no")) == {"decision": "block", "reason": "no"}


def test_an_event_of_a_newer_client_is_answered_as_most_events_are() -> None:
    event = parse({"hook_event_name": "PreTeleport", "session_id": "s1"})

    assert render(event, HookOutput.block("no")) == printed({"decision": "block", "reason": "no"}, 2, "no")
    assert render(event, HookOutput.allow()) == QUIET


def test_half_a_surrogate_pair_is_printed_as_json_escapes_it() -> None:
    answer = render(event_of("PreToolUse"), HookOutput(system_message="\ud83d"))

    assert answer.stdout == b'{"systemMessage":"\\ud83d"}\n'


# -- there and back ------------------------------------------------------------------------------------


def read_back(event: Event, output: HookOutput) -> HookOutput:
    answer = render(event, output)
    return read_answer(event, answer.exit_code, answer.stdout, answer.stderr.encode())


@pytest.mark.parametrize("event", BLOCKABLE)
@pytest.mark.parametrize("output", [HookOutput.block("no"), HookOutput.deny("no")], ids=["block", "deny"])
def test_a_block_is_read_back_as_a_block(event: str, output: HookOutput) -> None:
    read = read_back(event_of(event), output)

    assert (read.blocked, read.reason) == (True, "no")


@pytest.mark.parametrize("event", UNBLOCKABLE)
def test_a_block_that_the_client_cannot_do_is_read_back_as_a_message(event: str) -> None:
    assert read_back(event_of(event), HookOutput.block("no")) == HookOutput(system_message="no")


def test_a_block_after_a_failure_is_read_back_as_context() -> None:
    assert read_back(event_of("PostToolUseFailure"), HookOutput.block("no")) == HookOutput(additional_context="no")


@pytest.mark.parametrize("event", TAKE_CONTEXT)
def test_context_is_read_back(event: str) -> None:
    output = HookOutput(additional_context="mind the gap", system_message="hello", suppress_logging=True)

    assert read_back(event_of(event), output) == output


@pytest.mark.parametrize("event", PERMISSIONS)
@pytest.mark.parametrize("output", [HookOutput.ask("sure?"), HookOutput.grant("known"), HookOutput.grant()])
def test_a_verdict_is_read_back(event: str, output: HookOutput) -> None:
    assert read_back(event_of(event), output) == output


@pytest.mark.parametrize(
    "output",
    [
        HookOutput.grant(),
        HookOutput(permission="allow", updated_input=INPUT, extra={"updatedPermissions": []}),
        HookOutput.allow(),
    ],
    ids=["granted", "granted with changes", "no opinion"],
)
def test_a_granted_permission_request_is_read_back(output: HookOutput) -> None:
    assert read_back(event_of("PermissionRequest"), output) == output


TEXT = st.text(st.characters(codec="utf-8"))
SAID = TEXT.filter(str.strip)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
VERDICTS = st.one_of(
    st.just(HookOutput.allow()),
    SAID.map(HookOutput.block),
    SAID.map(HookOutput.deny),
    SAID.map(HookOutput.ask),
    st.none().map(HookOutput.grant) | TEXT.map(HookOutput.grant),
    st.none().map(HookOutput.defer) | TEXT.map(HookOutput.defer),
)
BESIDES = st.builds(
    HookOutput,
    suppress_logging=st.booleans(),
    system_message=st.none() | TEXT,
    updated_input=st.none() | st.dictionaries(TEXT, JSON, max_size=3),
    additional_context=st.none() | TEXT,
)
CALL = event_of("PreToolUse")


@given(VERDICTS, BESIDES)
def test_an_output_on_a_tool_call_is_read_back_with_the_same_verdict(verdict: HookOutput, besides: HookOutput) -> None:
    output = verdict.merge(besides)

    read = read_back(CALL, output)

    if output.blocked:
        assert read == HookOutput(
            continue_execution=False,
            stop_reason=(output.reason or "").strip(),
            system_message=output.system_message,
            additional_context=output.additional_context,
        )
    else:
        assert read == output


@given(VERDICTS, BESIDES)
def test_only_a_block_ends_with_exit_2_and_text_on_stderr(verdict: HookOutput, besides: HookOutput) -> None:
    output = verdict.merge(besides)

    answer = render(CALL, output)

    assert (answer.exit_code, answer.stderr) == ((2, output.reason) if output.blocked else (0, ""))
    assert answer.stdout == b"" or answer.stdout.startswith(b"{")
