"""The checks that the subagent specification asks for, with its exact messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.errors import PayloadError
from fairlead.events import (
    Stop,
    SubagentStart,
    SubagentStop,
    parse,
    validate_base_payload,
    validate_subagent_start_payload,
)

VALID = SubagentStart(
    session_id="abc123",
    transcript_path="/tmp/main.json",
    cwd="/home/user/project",
    permission_mode="default",
    agent_id="coder",
    agent_type="coder",
    agent_transcript_path="/tmp/agent_coder.json",
)
BLANK = ["", " ", "\t", " \r\n "]


def but(**changes: Any) -> SubagentStart:
    return msgspec.structs.replace(VALID, **changes)


def refusal(event: SubagentStart) -> tuple[str, str]:
    with pytest.raises(PayloadError) as caught:
        validate_subagent_start_payload(event)
    return str(caught.value), caught.value.field


def test_a_complete_payload_passes() -> None:
    validate_subagent_start_payload(VALID)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("agent_id", "agent_id cannot be empty"),
        ("agent_type", "subagent_type cannot be empty"),
        ("agent_transcript_path", "agent_transcript_path cannot be empty"),
        ("session_id", "session_id cannot be empty"),
        ("transcript_path", "transcript_path cannot be empty"),
        ("cwd", "cwd cannot be empty"),
    ],
)
def test_a_blank_field_fails_with_its_own_message(field: str, message: str) -> None:
    for blank in BLANK:
        assert refusal(but(**{field: blank})) == (message, field)


def test_a_blank_alias_fails_when_it_is_parsed() -> None:
    for blank in BLANK:
        sent = {"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a1", "subagent_type": blank}

        with pytest.raises(PayloadError) as caught:
            parse(sent)

        assert (str(caught.value), caught.value.field) == ("subagent_type cannot be empty", "agent_type")


@pytest.mark.parametrize("field", ["session_id", "transcript_path", "cwd"])
def test_the_base_fields_come_first(field: str) -> None:
    nothing_right = but(agent_id="", agent_type="", agent_transcript_path="", **{field: " "})

    assert refusal(nothing_right) == (f"{field} cannot be empty", field)


def test_then_the_subagents_own_in_the_order_of_the_specification() -> None:
    assert refusal(but(agent_id="", agent_type="", agent_transcript_path=""))[1] == "agent_id"
    assert refusal(but(agent_type="", agent_transcript_path=""))[1] == "agent_type"


@pytest.mark.parametrize("field", ["session_id", "agent_id", "agent_type", "agent_transcript_path", "cwd"])
def test_leading_and_trailing_spaces_pass_and_stay(field: str) -> None:
    event = but(**{field: "  coder  "})

    validate_subagent_start_payload(event)

    assert getattr(event, field) == "  coder  "


@pytest.mark.parametrize("field", ["transcript_path", "cwd", "agent_transcript_path"])
def test_what_the_client_may_leave_out_passes_when_it_is_absent(field: str) -> None:
    validate_subagent_start_payload(but(**{field: None}))


def test_the_base_check_leaves_the_subagents_fields_alone() -> None:
    validate_base_payload(but(agent_id="", agent_type="", agent_transcript_path=""))


def test_the_base_check_applies_to_every_event() -> None:
    with pytest.raises(PayloadError, match=r"^cwd cannot be empty$"):
        validate_base_payload(Stop(session_id="s", cwd=" "))


def test_compaction_fires_a_subagent_stop_with_a_blank_type_which_passes() -> None:
    event = parse({"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "a1", "agent_type": ""})

    assert event == SubagentStop(session_id="s", agent_id="a1", agent_type="")
