"""The subagent specification, from the payload of SubagentStart to its tests: one test per scenario, in its order.

What it says of SubagentStop commands is in `test_subagent_hooks_stop.py`. The specification is for a Rust program
called conclaude; its `SubagentStartPayload` is our event `SubagentStart`, its `HookPayload` is what `parse` gives,
and `handle_subagent_start()` is `fairlead SubagentStart`, run here as the client runs it. What it logs is on stderr:
stdout is the client's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from conformance.project import START, Note

from fairlead.errors import PayloadError
from fairlead.events import (
    HookEvent,
    SubagentStart,
    encode,
    parse,
    validate_base_payload,
    validate_subagent_start_payload,
)
from fairlead.notify import event_note, is_system_event

if TYPE_CHECKING:
    from conformance.project import Project

VALID = SubagentStart(
    session_id="abc123",
    transcript_path="/tmp/main.json",
    cwd="/home/user/project",
    permission_mode="default",
    agent_id="coder",
    agent_type="coder",
    agent_transcript_path="/tmp/agent_coder.json",
)

SETUP_AND_NOTES = """
subagentStart:
  commands:
    "*":
      - run: env -0 > environment
notifications:
  enabled: true
  hooks: ["SubagentStart"]
  showSystemEvents: true
"""


def but(**changes: Any) -> SubagentStart:
    return msgspec.structs.replace(VALID, **changes)


def without(field: str) -> dict[str, Any]:
    return {key: value for key, value in START.items() if key != field}


def refusal(payload: dict[str, Any]) -> str:
    with pytest.raises(PayloadError) as caught:
        parse(json.dumps(payload))
    return str(caught.value)


def verdict(event: SubagentStart) -> str | None:
    """What validation says: nothing if all is well."""
    try:
        validate_subagent_start_payload(event)
    except PayloadError as error:
        return str(error)
    return None


# -- SubagentStartPayload type definition --------------------------------------------------------------


def test_valid_subagentstartpayload_deserialization() -> None:
    event = parse(json.dumps(START))

    assert isinstance(event, SubagentStart)
    assert event.session_id == "abc123"
    assert event.transcript_path == "/tmp/main.json"
    assert event.event_name == "SubagentStart"
    assert event.cwd == "/home/user/project"
    assert event.permission_mode == "default"
    assert event.agent_id == "coder"
    assert event.agent_type == "coder"
    assert event.agent_transcript_path == "/tmp/agent_coder.json"


def test_missing_agent_id_field() -> None:
    assert refusal(without("agent_id")) == "SubagentStart: missing required field `agent_id` (or `subagent_id`)"


def test_empty_agent_id_value() -> None:
    assert refusal({**START, "agent_id": ""}) == "agent_id cannot be empty"


def test_missing_subagent_type_field() -> None:
    """The real client calls it `agent_type`: either name will do, and both are named where neither is there."""
    told = refusal(without("subagent_type"))

    assert told == "SubagentStart: missing required field `agent_type` (or `subagent_type`)"


# -- SubagentStart payload validation function ---------------------------------------------------------


def test_complete_valid_payload_passes_validation() -> None:
    assert verdict(VALID) is None


@pytest.mark.parametrize("blank", ["", " ", "\t\n"], ids=repr)
def test_empty_agent_id_fails_validation(blank: str) -> None:
    assert verdict(but(agent_id=blank)) == "agent_id cannot be empty"


@pytest.mark.parametrize("blank", ["", " ", "\t\n"], ids=repr)
def test_empty_subagent_type_fails_validation(blank: str) -> None:
    assert verdict(but(agent_type=blank)) == "subagent_type cannot be empty"


@pytest.mark.parametrize("blank", ["", " ", "\t\n"], ids=repr)
def test_empty_agent_transcript_path_fails_validation(blank: str) -> None:
    assert verdict(but(agent_transcript_path=blank)) == "agent_transcript_path cannot be empty"


@pytest.mark.parametrize("field", ["session_id", "transcript_path", "cwd"])
def test_invalid_base_payload_fails_validation(field: str) -> None:
    """Where the subagent's own fields are wrong too, only the base is spoken of: the rest was not looked at."""
    event = but(agent_id="", agent_type="", agent_transcript_path="", **{field: ""})
    with pytest.raises(PayloadError) as caught:
        validate_base_payload(event)

    assert verdict(event) == str(caught.value) == f"{field} cannot be empty"


# -- SubagentStart hook handler function ---------------------------------------------------------------


def test_successful_subagentstart_hook_execution(project: Project) -> None:
    project.policy(SETUP_AND_NOTES)

    done = project.fire("SubagentStart", project.start_payload())

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("Processing SubagentStart hook: session_id=abc123, agent_id=coder")
    assert {"CONCLAUDE_AGENT_ID", "CONCLAUDE_SUBAGENT_TYPE", "CONCLAUDE_AGENT_TRANSCRIPT_PATH"} <= set(
        project.variables()
    )
    assert done.notes == [Note("Fairlead - SubagentStart", "coder: Subagent started")]


def test_invalid_payload_causes_handler_failure(project: Project) -> None:
    project.policy(SETUP_AND_NOTES)
    payload = project.start_payload()
    del payload["agent_id"]

    done = project.fire("SubagentStart", payload)

    told = "fairlead: SubagentStart: missing required field `agent_id` (or `subagent_id`)\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", told)
    assert not (project.folder / "environment").exists()
    assert done.notes == []


def test_environment_variables_exported_on_success(project: Project) -> None:
    project.policy(SETUP_AND_NOTES)
    agent = {"agent_id": "tester", "subagent_type": "tester", "agent_transcript_path": "/tmp/tester.json"}

    assert project.fire("SubagentStart", project.start_payload(**agent)).exit_code == 0

    set_for_it = project.variables()
    for prefix in ("CONCLAUDE", "FAIRLEAD"):
        assert {name: set_for_it[f"{prefix}_{name}"] for name in NAMES} == {
            "AGENT_ID": "tester",
            "SUBAGENT_TYPE": "tester",
            "AGENT_TRANSCRIPT_PATH": "/tmp/tester.json",
            "SESSION_ID": "abc123",
            "TRANSCRIPT_PATH": "/tmp/main.json",
            "CWD": str(project.folder),
            "HOOK_EVENT": "SubagentStart",
        }


NAMES = ["AGENT_ID", "SUBAGENT_TYPE", "AGENT_TRANSCRIPT_PATH", "SESSION_ID", "TRANSCRIPT_PATH", "CWD", "HOOK_EVENT"]


# -- HookPayload enum includes SubagentStart variant ---------------------------------------------------


def test_subagentstart_variant_added_to_enum() -> None:
    event = parse(json.dumps(START))

    assert HookEvent("SubagentStart") is event.event_type
    assert HookEvent.SubagentStart.type is SubagentStart
    assert type(event) is SubagentStart
    assert (event.session_id, event.transcript_path) == (START["session_id"], START["transcript_path"])
    assert event.event_name == START["hook_event_name"]
    assert parse(encode(event)) == event
    assert json.loads(encode(event)).items() >= START.items()


# -- CLI command for SubagentStart hook ----------------------------------------------------------------


def test_subagentstart_command_processes_valid_input(project: Project) -> None:
    """A command that asks for a block gets none: a subagent's start cannot be blocked."""
    project.policy('subagentStart: {commands: {"*": [{run: echo set up >> log}, {run: exit 2}]}}')

    valid = project.fire("SubagentStart", project.start_payload())
    invalid = project.fire("SubagentStart", project.start_payload(agent_id=" "))

    assert project.lines() == ["set up"]
    assert valid.exit_code == 0
    assert "decision" not in valid.answer
    assert (invalid.exit_code, invalid.stdout, invalid.stderr) == (1, "", "fairlead: agent_id cannot be empty\n")


def test_subagentstart_command_with_invalid_json(project: Project) -> None:
    project.policy(SETUP_AND_NOTES)

    done = project.fire("SubagentStart", '{"session_id": ')

    told = "fairlead: payload: not valid JSON: Input data was truncated\n"
    assert (done.exit_code, done.stdout, done.stderr, done.notes) == (1, "", told, [])


# -- SubagentStart classified as system event hook -----------------------------------------------------


def test_subagentstart_recognized_as_system_event() -> None:
    assert is_system_event("SubagentStart") is True
    assert is_system_event("PreToolUse") is False

    told = event_note(
        VALID,
        status="success",
        enabled=True,
        events=["SubagentStart"],
        show_errors=False,
        show_success=False,
        show_system_events=True,
    )
    assert told is not None


def test_subagentstart_notifications_respect_showsystemevents_flag(project: Project) -> None:
    project.policy(SETUP_AND_NOTES)
    shown = project.fire("SubagentStart", project.start_payload())
    (project.folder / "environment").unlink()

    project.policy(SETUP_AND_NOTES.replace("showSystemEvents: true", "showSystemEvents: false"))
    hidden = project.fire("SubagentStart", project.start_payload())

    assert [note.title for note in shown.notes] == ["Fairlead - SubagentStart"]
    assert hidden.notes == []
    assert (hidden.exit_code, hidden.stdout) == (0, "")
    assert project.variables()["FAIRLEAD_AGENT_ID"] == "coder"


# -- Notification support for SubagentStart events -----------------------------------------------------


def notifying(hooks: str, *, show_system_events: bool = True) -> str:
    shown = str(show_system_events).lower()
    return f"notifications: {{enabled: true, hooks: {hooks}, showSystemEvents: {shown}}}"


def test_subagentstart_in_hooks_list_enables_notifications(project: Project) -> None:
    project.policy('notifications:\n  enabled: true\n  hooks: ["SubagentStart"]\n  showSystemEvents: true\n')

    (note,) = project.fire("SubagentStart", project.start_payload(agent_id="a1b2", subagent_type="Explore")).notes

    assert "SubagentStart" in note.title
    assert "a1b2" in note.body


def test_wildcard_hooks_config_includes_subagentstart(project: Project) -> None:
    project.policy(notifying('["*"]'))
    shown = project.fire("SubagentStart", project.start_payload())
    project.policy(notifying('["*"]', show_system_events=False))
    hidden = project.fire("SubagentStart", project.start_payload())

    assert shown.notes == [Note("Fairlead - SubagentStart", "coder: Subagent started")]
    assert hidden.notes == []


def test_subagentstart_not_in_hooks_list_suppresses_notifications(project: Project) -> None:
    project.policy(
        'subagentStart: {commands: {"*": [{run: echo set up >> log}]}}\n' + notifying('["Stop", "PreToolUse"]')
    )

    done = project.fire("SubagentStart", project.start_payload())

    assert done.notes == []
    assert (done.exit_code, done.stdout) == (0, "")
    assert project.lines() == ["set up"]


# -- SubagentStart logging includes agent context ------------------------------------------------------


def test_subagentstart_log_message_includes_agent_details(project: Project) -> None:
    """The requirement above the scenario asks for the type as well."""
    project.policy("notifications: {enabled: false}\n")
    agent = {"agent_id": "a1b2", "agent_type": "coder"}
    start = project.fire("SubagentStart", {**without("subagent_type"), "cwd": str(project.folder), **agent})
    stop = project.fire("SubagentStop", project.stop_payload(**agent))

    line = "Processing SubagentStart hook: session_id=abc123, agent_id=a1b2, subagent_type=coder\n"
    assert (start.stderr, stop.stderr) == (line, line.replace("SubagentStart", "SubagentStop"))


# -- Test coverage for SubagentStart functionality -----------------------------------------------------


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(VALID, None, id="valid payload"),
        pytest.param(but(agent_id=""), "agent_id cannot be empty", id="empty agent_id"),
        pytest.param(but(agent_id=" \t\n"), "agent_id cannot be empty", id="whitespace-only agent_id"),
        pytest.param(but(agent_type=""), "subagent_type cannot be empty", id="empty subagent_type"),
        pytest.param(
            but(agent_transcript_path=""), "agent_transcript_path cannot be empty", id="empty agent_transcript_path"
        ),
        pytest.param(but(session_id=""), "session_id cannot be empty", id="invalid base payload"),
        pytest.param(but(agent_id="  coder  "), None, id="leading and trailing spaces in agent_id"),
    ],
)
def test_unit_tests_validate_payload_fields(event: SubagentStart, expected: str | None) -> None:
    assert verdict(event) == expected


@pytest.mark.parametrize("agent", ["coder", "tester", "stuck"])
def test_integration_tests_verify_handler_execution(project: Project, agent: str) -> None:
    project.policy(SETUP_AND_NOTES)
    payload = project.start_payload(agent_id=agent, subagent_type=agent, agent_transcript_path=f"/tmp/{agent}.json")

    valid = project.fire("SubagentStart", payload)
    invalid = project.fire("SubagentStart", {**payload, "subagent_type": ""})

    assert (valid.exit_code, valid.stdout) == (0, "")
    assert valid.notes == [Note("Fairlead - SubagentStart", f"{agent}: Subagent started")]
    set_for_it = project.variables()
    assert (set_for_it["CONCLAUDE_AGENT_ID"], set_for_it["CONCLAUDE_SUBAGENT_TYPE"]) == (agent, agent)
    assert set_for_it["CONCLAUDE_AGENT_TRANSCRIPT_PATH"] == f"/tmp/{agent}.json"
    assert (invalid.exit_code, invalid.stderr) == (1, "fairlead: subagent_type cannot be empty\n")
    assert invalid.notes == []
