"""Invalid payloads are refused by a `PayloadError` that names the field and what was expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.errors import PayloadError
from fairlead.events import MAX_PAYLOAD, HookEvent, PreToolUse, UserPromptSubmit, encode, parse, to_payload

PRE = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {}}
START = {"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a1", "agent_type": "coder"}


def refusal(payload: Any, **kwargs: Any) -> tuple[str, str]:
    with pytest.raises(PayloadError) as caught:
        parse(payload, **kwargs)
    return str(caught.value), caught.value.field


# -- the payload as a whole ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "payload: empty; expected a JSON object"),
        ("", "payload: empty; expected a JSON object"),
        (b" \n\t\r", "payload: empty; expected a JSON object"),
        (b"hello", "payload: not valid JSON: JSON is malformed: invalid character (byte 0)"),
        (b'{"session_id":', "payload: not valid JSON: Input data was truncated"),
        (b'{"session_id": "abc', "payload: not valid JSON: Input data was truncated"),
        (b"{} {}", "payload: not valid JSON: JSON is malformed: trailing characters (byte 4)"),
        (b"{'a': 1}", "payload: not valid JSON: JSON is malformed: object keys must be strings (byte 1)"),
        (b'{"a": NaN}', "payload: not valid JSON: JSON is malformed: invalid character (byte 6)"),
        (b"{}\0", "payload: not valid JSON: JSON is malformed: trailing characters (byte 3)"),
        (b'{"a": "\0"}', "payload: not valid JSON: JSON is malformed: invalid character (byte 7)"),
        (b'\xef\xbb\xbf{"a": 1}', "payload: not valid JSON: JSON is malformed: invalid character (byte 0)"),
        (b'\xff\xfe{\0"\0', "payload: not valid UTF-8"),
        (b'{"session_id": "\xc3("}', "payload: not valid UTF-8"),
        ('{"session_id": "\ud800"}', "payload: not valid UTF-8"),
        (b"[]", "payload: expected a JSON object, got a list"),
        (b'"text"', "payload: expected a JSON object, got a string"),
        (b"17", "payload: expected a JSON object, got a number"),
        (b"true", "payload: expected a JSON object, got a boolean"),
        (b"null", "payload: expected a JSON object, got null"),
        ([("hook_event_name", "Stop")], "payload: expected JSON or a mapping, got list"),
        (None, "payload: expected JSON or a mapping, got NoneType"),
        (memoryview(b"{}"), "payload: expected JSON or a mapping, got memoryview"),
        ({1: 2}, "payload: every key must be a string"),
        ({"hook_event_name": "Stop", b"session_id": "s"}, "payload: every key must be a string"),
    ],
)
def test_a_payload_that_is_no_json_object_is_refused(payload: Any, message: str) -> None:
    assert refusal(payload) == (message, "")


def test_ten_megabytes_are_read() -> None:
    text = "x" * 10_000_000

    event = parse(json.dumps({**PRE, "tool_input": {"content": text}}))

    assert isinstance(event, PreToolUse)
    assert event.tool_input == {"content": text}


def test_more_than_the_limit_is_refused_before_it_is_read() -> None:
    payload = bytes(MAX_PAYLOAD + 1)

    assert refusal(payload) == (f"payload: {MAX_PAYLOAD + 1} bytes, more than the {MAX_PAYLOAD} that are read", "")


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
@pytest.mark.parametrize("text", ["", "\\ud800"], ids=["plain", "surrogate"])
def test_nesting_without_end_is_refused(opening: str, closing: str, text: str) -> None:
    depth = 100_000

    payload = f'{{"text": "{text}", "deep": {opening * depth}1{closing * depth}}}'

    assert refusal(payload) == ("payload: nested too deeply", "")


@pytest.mark.parametrize("text", ["", "\\ud800"], ids=["plain", "surrogate"])
def test_a_deep_payload_that_is_parsed_can_be_encoded_again(text: str) -> None:
    outcomes = set()
    for depth in range(100, 1100, 7):
        deep = "[" * depth + "]" * depth
        payload = f'{{"hook_event_name": "Stop", "session_id": "s", "text": "{text}", "deep": {deep}}}'
        try:
            event = parse(payload)
        except PayloadError as error:
            outcomes.add(str(error))
        else:
            assert f'"deep":{deep}'.encode() in encode(event).replace(b" ", b"")
            outcomes.add("parsed")

    assert {"parsed"} <= outcomes <= {"parsed", "payload: nested too deeply"}


@pytest.mark.parametrize("text", ["", "\ud800"], ids=["plain", "surrogate"])
def test_a_mapping_too_deep_to_be_written_again_is_refused_at_once_or_when_encoded(text: str) -> None:
    deep: list[Any] = [text]
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(PayloadError, match="nested too deeply"):
        encode(parse({**PRE, "tool_input": {"deep": deep}}))


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
@pytest.mark.parametrize("text", ["plain", "\\ud800"])
def test_a_number_that_no_float_holds_is_refused(number: str, text: str) -> None:
    """A payload with an unpaired surrogate is read by another parser, which must be as strict."""
    message, field = refusal(f'{{"hook_event_name": "Stop", "session_id": "s", "n": {number}, "text": "{text}"}}')

    assert (message.startswith("payload: not valid JSON"), field) == (True, "")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_constant_that_is_not_json_is_refused_also_next_to_a_surrogate(constant: str) -> None:
    payload = f'{{"hook_event_name": "Stop", "session_id": "s", "n": {constant}, "text": "\\ud800"}}'

    assert refusal(payload) == (f"payload: not valid JSON: {constant} is not JSON", "")


# -- its name ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "message", "field"),
    [
        ({"session_id": "s"}, "missing required field `hook_event_name`", "hook_event_name"),
        ({"session_id": "s", "hook_event_name": None}, "missing required field `hook_event_name`", "hook_event_name"),
        ({"session_id": "s", "event": "nothing known"}, "missing required field `hook_event_name`", "hook_event_name"),
        (
            {"session_id": "s", "hook_event_name": 7},
            "hook_event_name: expected a string, got a number",
            "hook_event_name",
        ),
        (
            {"session_id": "s", "hook_event_name": []},
            "hook_event_name: expected a string, got a list",
            "hook_event_name",
        ),
        (
            {"session_id": "s", "hook_event_name": {}},
            "hook_event_name: expected a string, got an object",
            "hook_event_name",
        ),
        (
            {"session_id": "s", "hook_event_name": True},
            "hook_event_name: expected a string, got a boolean",
            "hook_event_name",
        ),
        ({"session_id": "s", "hook_event_name": ""}, "hook_event_name cannot be empty", "hook_event_name"),
        ({"session_id": "s", "hook_event_name": " \t"}, "hook_event_name cannot be empty", "hook_event_name"),
        ({"session_id": "s", "hook_type": ""}, "hook_type cannot be empty", "hook_type"),
        ({"session_id": "s", "hook_type": 1.5}, "hook_type: expected a string, got a number", "hook_type"),
    ],
)
def test_a_payload_without_a_usable_name_is_refused(payload: dict[str, Any], message: str, field: str) -> None:
    assert refusal(payload) == (message, field)


# -- its fields ----------------------------------------------------------------------------------------

REQUIRED = [
    ("PreToolUse", "session_id", "string"),
    ("PreToolUse", "tool_name", "string"),
    ("PreToolUse", "tool_input", "object"),
    ("PermissionRequest", "tool_input", "object"),
    ("PostToolUse", "tool_name", "string"),
    ("PostToolUseFailure", "error", "string"),
    ("UserPromptSubmit", "prompt", "string"),
    ("SubagentStart", "agent_id", "string"),
    ("SubagentStart", "agent_type", "string"),
    ("SubagentStop", "agent_id", "string"),
    ("BrandNew", "session_id", "string"),
]
COMPLETE: dict[str, Any] = {
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {},
    "error": "e",
    "prompt": "p",
    "agent_id": "a1",
    "agent_type": "coder",
}


@pytest.mark.parametrize(("name", "field", "_kind"), REQUIRED)
def test_a_required_field_that_is_missing_is_named(name: str, field: str, _kind: str) -> None:
    payload = {key: value for key, value in COMPLETE.items() if key != field} | {"hook_event_name": name}
    aliases = {"agent_id": " (or `subagent_id`)", "agent_type": " (or `subagent_type`)"}
    shown = name if name in HookEvent.__members__ else "OtherEvent"

    assert refusal(payload) == (f"{shown}: missing required field `{field}`{aliases.get(field, '')}", field)


WRONG: dict[str, Any] = {
    "int": 7,
    "float": 1.5,
    "bool": True,
    "null": None,
    "array": [],
    "str": "x",
    "object": {},
}
RIGHT = {"string": ("a string", "str"), "object": ("an object", "object")}


@pytest.mark.parametrize(("name", "field", "kind"), REQUIRED)
def test_a_required_field_of_the_wrong_type_is_named(name: str, field: str, kind: str) -> None:
    expected, valid = RIGHT[kind]
    for got in WRONG.keys() - {valid}:
        payload = {**COMPLETE, "hook_event_name": name, field: WRONG[got]}
        refused = f"{field}: expected {expected}, got {got}", field

        assert refusal(payload) == refused
        assert refusal(json.dumps(payload)) == refused


@pytest.mark.parametrize("field", ["transcript_path", "cwd", "agent_id", "agent_type"])
def test_an_optional_id_or_path_must_be_text(field: str) -> None:
    assert refusal({**PRE, field: 7}) == (f"{field}: expected a string, got int", field)


def test_an_input_of_the_wrong_type_is_refused_where_it_may_be_absent_too() -> None:
    payload = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": "ls"}

    assert refusal(payload) == ("tool_input: expected an object, got str", "tool_input")


@pytest.mark.parametrize("field", ["tool_input", "mcp_server"])
def test_keys_below_the_top_must_be_strings_too(field: str) -> None:
    """JSON has no others, but a mapping made by a program may."""
    message, invalid = refusal({**PRE, field: {1: "one"}})

    assert invalid == field
    assert message.startswith(field)


# -- text that cannot be an id, a path or a name -------------------------------------------------------

TEXTS = [
    (PRE, "session_id"),
    (PRE, "transcript_path"),
    (PRE, "cwd"),
    (PRE, "tool_name"),
    (START, "agent_id"),
    (START, "agent_transcript_path"),
    ({**START, "hook_event_name": "SubagentStop"}, "agent_id"),
    ({**START, "hook_event_name": "SubagentStop"}, "agent_transcript_path"),
    ({"hook_event_name": "BrandNew", "session_id": "s"}, "session_id"),
]


@pytest.mark.parametrize(("payload", "field"), TEXTS)
def test_a_blank_nul_or_unpaired_surrogate_in_an_id_or_path_is_refused(payload: dict[str, Any], field: str) -> None:
    for blank in ("", " ", "\t\r\n", "\u3000"):
        assert refusal({**payload, field: blank}) == (f"{field} cannot be empty", field)
    assert refusal(json.dumps({**payload, field: "a\0b"})) == (f"{field}: contains a NUL character", field)
    for surrogate in ("\ud800", "a\udfffb"):
        assert refusal(json.dumps({**payload, field: surrogate})) == (f"{field}: not valid Unicode text", field)
        assert refusal({**payload, field: surrogate}) == (f"{field}: not valid Unicode text", field)


@pytest.mark.parametrize("text", ["\ud83d", "cut \udc00 short", "nul \0 byte", "\U0001f600"], ids=ascii)
def test_free_text_may_contain_anything_and_comes_back(text: str) -> None:
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": text, "new": [text]}
    tool = {**PRE, "tool_input": {"command": text, text: 1}}

    for sent in (prompt, tool):
        event = parse(json.dumps(sent))
        assert to_payload(event) == sent
        assert json.loads(encode(event)) == sent


@pytest.mark.parametrize("name", ["Stop", "BrandNew"])
def test_a_key_may_contain_an_unpaired_surrogate_and_comes_back(name: str) -> None:
    sent = {"hook_event_name": name, "session_id": "s", "cut \ud83d": 1}

    event = parse(json.dumps(sent))

    assert event == parse(sent)
    assert json.loads(encode(event)) == sent


def test_free_text_reaches_the_hook_as_the_client_cut_it() -> None:
    event = parse(b'{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "\\ud83d"}')

    assert isinstance(event, UserPromptSubmit)
    assert event.prompt == "\ud83d"
