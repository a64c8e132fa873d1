"""The event types: their subject, accessors, equality, and factories."""

from __future__ import annotations

from time import time
from typing import Any

import msgspec
import pytest

from fairlead.events import (
    Event,
    FileChanged,
    HookEvent,
    OtherEvent,
    PostToolUse,
    PreToolUse,
    Stop,
    SubagentStart,
    parse,
    post_tool_use,
    post_tool_use_failure,
    pre_compact,
    pre_tool_use,
    session_end,
    session_start,
    stop,
    subagent_start,
    subagent_stop,
    to_payload,
    user_prompt_submit,
)

SUBJECTS = {
    "SessionStart": "source",
    "Setup": "trigger",
    "SessionEnd": "reason",
    "UserPromptExpansion": "command_name",
    "PreToolUse": "tool_name",
    "PermissionRequest": "tool_name",
    "PermissionDenied": "tool_name",
    "PostToolUse": "tool_name",
    "PostToolUseFailure": "tool_name",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
    "StopFailure": "error",
    "Notification": "notification_type",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "PreModelSwitch": "to_model",
    "PostModelSwitch": "to_model",
    "Elicitation": "mcp_server_name",
    "ElicitationResult": "mcp_server_name",
    "ConfigChange": "source",
    "InstructionsLoaded": "load_reason",
    "FileChanged": "file_path",
    "DirectoryAdded": "source",
}
COMPLETE: dict[str, Any] = {
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {},
    "error": "rate_limit",
    "prompt": "p",
    "agent_id": "a1",
    "agent_type": "coder",
}

# -- subjects ------------------------------------------------------------------------------------------


def test_the_subject_is_the_field_that_the_clients_matcher_tests() -> None:
    for event in HookEvent:
        field = SUBJECTS.get(event.value)
        changes = {} if field is None else {field: "the subject"}

        parsed = parse({**COMPLETE, "hook_event_name": event.value, **changes})

        assert event.type.subject_field == field
        assert parsed.subject == ("the subject" if field else "")


def test_a_subject_that_the_client_did_not_send_is_empty() -> None:
    assert parse({"hook_event_name": "SessionStart", "session_id": "s"}).subject == ""


@pytest.mark.parametrize(
    ("path", "subject"),
    [("/home/user/project/.env", ".env"), (".envrc", ".envrc"), (r"C:\project\.env", ".env"), (None, ""), ("/a/", "")],
)
def test_the_subject_of_file_changed_is_the_files_bare_name(path: str | None, subject: str) -> None:
    assert FileChanged(session_id="s", file_path=path).subject == subject


# -- accessors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transcript", "own", "expected"),
    [
        ("/p/s1.jsonl", None, "/p/s1/subagents/agent-a1.jsonl"),
        ("/p/s1", None, "/p/s1/subagents/agent-a1.jsonl"),
        ("/p/s1.jsonl", "/elsewhere/a1.json", "/elsewhere/a1.json"),
        (None, "/elsewhere/a1.json", "/elsewhere/a1.json"),
        (None, None, None),
    ],
)
def test_the_transcript_of_a_subagent_is_as_sent_or_where_the_client_writes_it(
    transcript: str | None, own: str | None, expected: str | None
) -> None:
    event = SubagentStart(
        session_id="s", transcript_path=transcript, agent_id="a1", agent_type="coder", agent_transcript_path=own
    )

    assert event.agent_transcript == expected


def test_a_derived_transcript_is_not_put_into_the_payload() -> None:
    event = SubagentStart(session_id="s", transcript_path="/p/s1.jsonl", agent_id="a1", agent_type="coder")

    assert "agent_transcript_path" not in to_payload(event)


def test_only_tool_events_have_the_name_of_a_tool() -> None:
    for event in HookEvent:
        parsed = parse({**COMPLETE, "hook_event_name": event.value})
        assert parsed.tool_name == ("Bash" if SUBJECTS.get(event.value) == "tool_name" else None)


def test_a_tools_answer_has_the_name_of_the_client_and_of_the_document() -> None:
    event = PostToolUse(session_id="s", tool_name="Bash", tool_response={"stdout": "hi"})

    assert event.tool_result is event.tool_response


# -- equality ------------------------------------------------------------------------------------------


def test_the_time_of_receipt_and_the_metadata_are_not_compared() -> None:
    assert Stop(session_id="s", received=1.0, metadata={"a": 1}) == Stop(session_id="s", received=2.0, metadata=None)


@pytest.mark.parametrize(
    "other",
    [
        Stop(session_id="t"),
        Stop(session_id="s", stop_hook_active=False),
        Stop(session_id="s", extra={"new": 1}),
        OtherEvent(session_id="s", event_name="Stop"),
        "Stop",
        None,
    ],
    ids=repr,
)
def test_two_events_that_differ_in_anything_else_are_not_equal(other: object) -> None:
    assert Stop(session_id="s") != other


def test_two_unknown_events_differ_by_their_names() -> None:
    assert OtherEvent(session_id="s", event_name="A") != OtherEvent(session_id="s", event_name="B")


def test_an_event_cannot_be_changed() -> None:
    event = pre_tool_use("s", "Bash", {})

    with pytest.raises(AttributeError):
        event.tool_name = "Write"  # type: ignore[misc]


def test_an_event_is_not_hashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(stop("s"))


# -- factories -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        (
            pre_tool_use("s", "Bash", {"command": "ls"}),
            {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        ),
        (
            post_tool_use("s", "Bash", {"stdout": "hi"}),
            {
                "hook_event_name": "PostToolUse",
                "tool_name": "Bash",
                "tool_input": {},
                "tool_response": {"stdout": "hi"},
            },
        ),
        (
            post_tool_use_failure("s", "Bash", "exit 1"),
            {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {}, "error": "exit 1"},
        ),
        (user_prompt_submit("s", "hello"), {"hook_event_name": "UserPromptSubmit", "prompt": "hello"}),
        (session_start("s"), {"hook_event_name": "SessionStart"}),
        (session_end("s"), {"hook_event_name": "SessionEnd"}),
        (stop("s"), {"hook_event_name": "Stop"}),
        (pre_compact("s"), {"hook_event_name": "PreCompact"}),
        (
            subagent_start("s", "a1", "coder", "writes code"),
            {
                "hook_event_name": "SubagentStart",
                "agent_id": "a1",
                "agent_type": "coder",
                "description": "writes code",
            },
        ),
        (
            subagent_stop("s", "a1", success=True),
            {"hook_event_name": "SubagentStop", "agent_id": "a1", "success": True},
        ),
        (
            subagent_stop("s", "a1", success=False, error="lost"),
            {"hook_event_name": "SubagentStop", "agent_id": "a1", "success": False, "error": "lost"},
        ),
    ],
    ids=lambda value: value.event_name if isinstance(value, Event) else "",
)
def test_a_factory_creates_the_event_of_a_payload(event: Event, payload: dict[str, Any]) -> None:
    assert to_payload(event) == {"session_id": "s", **payload}
    assert parse(to_payload(event)) == event


def test_a_factory_sets_the_time() -> None:
    before = time()

    received = stop("s").received

    assert received is not None
    assert before <= received <= time()


def test_a_factory_keeps_its_own_copy_of_the_input() -> None:
    tool_input = {"command": "ls"}
    event = pre_tool_use("s", "Bash", tool_input)

    tool_input["command"] = "rm"

    assert event.tool_input == {"command": "ls"}


def test_metadata_is_not_encoded() -> None:
    event = msgspec.structs.replace(pre_tool_use("s", "Bash", {}), metadata={"team": "blue"})

    assert event.metadata == {"team": "blue"}
    assert "metadata" not in to_payload(event)


def test_an_event_can_be_matched_by_a_pattern() -> None:
    match pre_tool_use("s", "Bash", {"command": "ls"}):
        case PreToolUse(tool_name="Bash", tool_input={"command": str(command)}):
            assert command == "ls"
        case _:
            pytest.fail("it did not match")
