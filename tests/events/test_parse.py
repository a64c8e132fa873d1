"""How a payload becomes an event: its forms, its name, its aliases, and what we do not know."""

from __future__ import annotations

import json
from itertools import product
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.errors import PayloadError
from fairlead.events import (
    FileChanged,
    HookEvent,
    OtherEvent,
    PreToolUse,
    SessionStart,
    Stop,
    SubagentStart,
    SubagentStop,
    encode,
    parse,
    to_payload,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STOP = {"hook_event_name": "Stop", "session_id": "s"}

# -- forms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        json.dumps,
        lambda payload: json.dumps(payload).encode(),
        lambda payload: bytearray(json.dumps(payload).encode()),
        lambda payload: json.dumps(payload, indent=4).encode() + b"\n",
        dict,
        MappingProxyType,
    ],
    ids=["str", "bytes", "bytearray", "indented", "dict", "mapping"],
)
def test_a_payload_is_read_in_any_form(form: Callable[[Mapping[str, Any]], Any]) -> None:
    event = parse(form({**STOP, "stop_hook_active": True, "last_assistant_message": "Gr\u00fc\u00dfe \U0001f600"}))

    assert event == Stop(session_id="s", stop_hook_active=True, last_assistant_message="Gr\u00fc\u00dfe \U0001f600")


def test_an_event_knows_when_it_was_heard() -> None:
    before = time()
    event = parse(STOP)

    assert event.received is not None
    assert before <= event.received <= time()
    assert event.timestamp is not None
    assert event.timestamp.timestamp() == pytest.approx(event.received)


# -- the name ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["Stop", "stop", HookEvent.Stop])
def test_a_payload_may_leave_its_name_out_if_the_caller_says_it(asked: HookEvent | str) -> None:
    event = parse({"session_id": "s"}, event=asked)

    assert event == Stop(session_id="s")
    assert to_payload(event) == STOP


@pytest.mark.parametrize("asked", ["PreToolUse", "pre_tool_use", "preToolUse", HookEvent.PreToolUse])
@pytest.mark.parametrize("stated", ["PreToolUse", "pre_tool_use", "pre-tool-use"])
def test_a_payload_and_its_caller_may_spell_the_name_differently(asked: HookEvent | str, stated: str) -> None:
    sent = {"hook_event_name": stated, "session_id": "s", "tool_name": "Bash", "tool_input": {}}

    event = parse(sent, event=asked)

    assert type(event) is PreToolUse
    assert to_payload(event) == sent


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("PreToolUse", "hook_event_name: expected PreToolUse, got Stop"),
        (HookEvent.SubagentStop, "hook_event_name: expected SubagentStop, got Stop"),
        ("Newer", "hook_event_name: expected Newer, got Stop"),
    ],
)
def test_a_payload_must_not_contradict_its_caller(asked: HookEvent | str, message: str) -> None:
    with pytest.raises(PayloadError) as caught:
        parse(STOP, event=asked)

    assert (str(caught.value), caught.value.field) == (message, "hook_event_name")


def test_a_newer_event_must_not_contradict_its_caller_either() -> None:
    with pytest.raises(PayloadError, match=r"^hook_event_name: expected Stop, got Newer$"):
        parse({"hook_event_name": "Newer", "session_id": "s"}, event="Stop")


def test_the_caller_may_ask_for_an_event_that_is_newer_than_we_are() -> None:
    event = parse({"session_id": "s"}, event="Newer")

    assert event == OtherEvent(session_id="s", event_name="Newer")


@pytest.mark.parametrize("asked", ["", " ", "\t\n"])
def test_the_caller_must_not_ask_for_a_blank_event(asked: str) -> None:
    with pytest.raises(PayloadError) as caught:
        parse({"session_id": "s"}, event=asked)

    assert caught.value.field == "hook_event_name"


# -- aliases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["hook_event_name", "hook_type", "event"])
@pytest.mark.parametrize("name", ["SessionStart", "session_start", "sessionStart"])
def test_the_name_may_stand_under_any_of_its_keys(key: str, name: str) -> None:
    sent = {key: name, "session_id": "s", "source": "startup"}

    event = parse(sent)

    assert type(event) is SessionStart
    assert to_payload(event) == {"hook_event_name": "SessionStart", **sent}


def test_the_clients_own_key_goes_before_the_aliases() -> None:
    assert type(parse({**STOP, "hook_type": "PreToolUse", "event": "SessionStart"})) is Stop


def test_the_type_of_a_subagent_may_stand_under_its_alias() -> None:
    sent = {"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a1", "subagent_type": "coder"}

    event = parse(sent)

    assert isinstance(event, SubagentStart)
    assert (event.agent_type, event.subject) == ("coder", "coder")
    assert to_payload(event) == {**sent, "agent_type": "coder"}


def test_the_id_of_a_subagent_may_stand_under_its_alias() -> None:
    sent = {"hook_event_name": "SubagentStop", "session_id": "s", "subagent_id": "a1", "success": False}

    event = parse(sent)

    assert isinstance(event, SubagentStop)
    assert (event.agent_id, event.subagent_id, event.success) == ("a1", "a1", False)
    assert to_payload(event) == {**sent, "agent_id": "a1"}


def test_the_clients_own_word_wins_over_an_alias_that_differs() -> None:
    sent = {**STOP, "agent_id": "a1", "subagent_id": "other", "agent_type": "coder", "subagent_type": "other"}

    event = parse(sent)

    assert (event.agent_id, event.agent_type) == ("a1", "coder")
    assert to_payload(event) == sent


def test_an_alias_speaks_for_a_null() -> None:
    sent = {**STOP, "agent_id": None, "subagent_id": "a1"}

    event = parse(sent)

    assert event.agent_id == "a1"


@pytest.mark.parametrize("word", ["add", "change", "unlink", "Stop", "", 7, None, ["add"]])
def test_file_changed_has_a_field_event_that_is_no_name(word: Any) -> None:
    sent = {"hook_event_name": "FileChanged", "session_id": "s", "file_path": "/a/.env", "event": word}

    event = parse(sent)

    assert isinstance(event, FileChanged)
    assert event.event == (word if isinstance(word, str) else None)
    assert to_payload(event) == sent


def test_file_changed_keeps_its_field_when_only_the_caller_says_the_name() -> None:
    event = parse({"session_id": "s", "event": "add"}, event="FileChanged")

    assert event == FileChanged(session_id="s", event="add")


def test_a_key_event_that_holds_no_event_is_just_a_key() -> None:
    sent = {**STOP, "event": {"kind": "add"}}

    assert to_payload(parse(sent)) == sent


# -- what we do not know -------------------------------------------------------------------------------


def test_a_field_that_we_do_not_know_is_kept() -> None:
    sent = {**STOP, "brand_new": {"deep": [1, 2.5, None, {"x": "y"}]}, "zero": 0, "empty": ""}

    event = parse(sent)

    assert event.extra == {"brand_new": {"deep": [1, 2.5, None, {"x": "y"}]}, "zero": 0, "empty": ""}
    assert to_payload(event) == sent


def test_an_event_that_we_do_not_know_is_kept_and_encoded_unchanged() -> None:
    sent = {"hook_event_name": "BrandNew", "session_id": "s", "cwd": "/c", "tool_name": "Bash", "tool_input": {"a": 1}}

    event = parse(json.dumps(sent))

    assert isinstance(event, OtherEvent)
    assert (event.event_name, event.event_type, event.can_block, event.subject) == ("BrandNew", None, False, "")
    assert (event.cwd, event.extra) == ("/c", {"tool_name": "Bash", "tool_input": {"a": 1}})
    assert json.loads(encode(event)) == sent


def test_an_unknown_event_under_an_alias_is_kept_too() -> None:
    sent = {"hook_type": "BrandNew", "session_id": "s"}

    event = parse(sent)

    assert event.event_name == "BrandNew"
    assert to_payload(event) == {**sent, "hook_event_name": "BrandNew"}


@pytest.mark.parametrize(
    "sent", [{**STOP, "cwd": None, "stop_hook_active": None, "new": None}, {**STOP, "hook_type": None}]
)
def test_an_explicit_null_comes_back_as_null(sent: dict[str, Any]) -> None:
    assert to_payload(parse(sent)) == sent


def test_a_null_instead_of_the_name_comes_back_as_null() -> None:
    sent = {"hook_event_name": None, "hook_type": "Stop", "session_id": "s"}

    event = parse(sent)

    assert type(event) is Stop
    assert to_payload(event) == sent


@pytest.mark.parametrize(
    ("name", "field", "newer"),
    [
        ("Stop", "stop_hook_active", "once"),
        ("Stop", "background_tasks", {"count": 2}),
        ("Stop", "effort", "high"),
        ("Stop", "permission_mode", {"mode": "plan"}),
        ("Stop", "prompt_id", 7),
        ("SessionStart", "source", {"kind": "startup"}),
        ("SessionStart", "context_tokens", 1.5),
        ("MessageDisplay", "index", "first"),
        ("PostCompact", "compact_summary", ["a", "b"]),
        ("Elicitation", "requested_schema", "none"),
    ],
)
def test_an_optional_field_of_a_newer_shape_is_kept_and_does_not_refuse_the_payload(
    name: str, field: str, newer: Any
) -> None:
    sent = {"hook_event_name": name, "session_id": "s", field: newer}

    event = parse(sent)

    assert type(event) is HookEvent[name].type
    assert (getattr(event, field), event.extra) == (None, {field: newer})
    assert to_payload(event) == sent


def test_several_fields_of_a_newer_shape_are_kept_beside_each_other() -> None:
    sent = {**STOP, "effort": 1, "background_tasks": 2, "session_crons": 3, "cwd": "/c"}

    event = parse(sent)

    assert (event.extra, event.cwd) == ({"effort": 1, "background_tasks": 2, "session_crons": 3}, "/c")
    assert to_payload(event) == sent


OWN_WORDS = (
    "extra",
    "received",
    "metadata",
    "timestamp",
    "event_name",
    "event_type",
    "subject",
    "can_block",
    "fairlead:extra",
    "fairlead:received",
    "fairlead:metadata",
)


@pytest.mark.parametrize("name", ["Stop", "BrandNew"])
def test_a_key_with_the_name_of_our_own_attribute_is_kept_as_a_key(name: str) -> None:
    before = time()
    for word, value in product(OWN_WORDS, (1.5, "text", {"a": 1}, [1], True, None)):
        sent = {"hook_event_name": name, "session_id": "s", word: value}

        event = parse(sent)

        assert to_payload(event) == sent
        assert (event.event_name, event.extra, event.metadata) == (name, {word: value}, None)
        assert event.received is not None
        assert event.received >= before


@pytest.mark.parametrize("number", [0, 7, 2**53 + 1, 2**70, 0.5])
def test_a_number_comes_back_as_it_was_written(number: float) -> None:
    sent = {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "tool_name": "Bash",
        "duration_ms": number,
        "new": number,
    }

    back = json.loads(encode(parse(json.dumps(sent))))

    assert [repr(back["duration_ms"]), repr(back["new"])] == [repr(number)] * 2
