"""Random payloads are parsed and come back unchanged, or are refused by a `PayloadError`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.errors import PayloadError
from fairlead.events import Event, HookEvent, encode, parse, to_payload

PAYLOADS = [
    json.loads(path.read_bytes())
    for path in sorted((Path(__file__).parents[1] / "payloads" / "claude").glob("*/*.json"))
]
KEYS = sorted({key for payload in PAYLOADS for key in payload} | {"subagent_id", "subagent_type", "hook_type", "event"})

fuzz = settings(max_examples=200, deadline=None)  # a busy machine is no bug

text = st.text(st.characters(exclude_categories=()), max_size=20)  # with unpaired surrogates
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
json_values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4))
keys = st.sampled_from(KEYS) | st.sampled_from(["extra", "metadata", "fairlead:extra", "event_name"]) | text
names = st.sampled_from([e.value for e in HookEvent] + [e.snake for e in HookEvent]) | text


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """Take a payload that a client sent, then drop, replace and add keys."""
    payload = dict(draw(st.sampled_from(PAYLOADS)))
    for key in draw(st.lists(st.sampled_from(sorted(payload)), max_size=3)):
        payload.pop(key, None)
    if payload:
        for key in draw(st.lists(st.sampled_from(sorted(payload)), max_size=3)):
            payload[key] = draw(json_values)
    payload.update(draw(st.dictionaries(keys, json_values, max_size=3)))
    return payload


def parsed(payload: Any, event: str | None = None) -> Event | None:
    try:
        return parse(payload, event)
    except PayloadError:
        return None


def assert_comes_back(sent: dict[str, Any], event: Event) -> None:
    back = to_payload(event)
    assert {key: exact(back[key]) for key in sent} == {key: exact(value) for key, value in sent.items()}
    written = json.loads(encode(event))
    assert {key: exact(written[key]) for key in sent} == {key: exact(value) for key, value in sent.items()}


def exact(value: Any) -> str:
    """Return text in which 1, 1.0 and true differ: they are equal in Python."""
    return json.dumps(value, sort_keys=True)


@fuzz
@given(st.binary(max_size=200))
def test_arbitrary_bytes_parse_or_are_refused(payload: bytes) -> None:
    event = parsed(payload)

    assert event is None or isinstance(event, Event)


@fuzz
@given(st.text(st.sampled_from('{}[]":,\\ud8 0e1-+.tfn\n\0hook_event_nameStop'), max_size=80))
def test_almost_json_parses_or_is_refused(payload: str) -> None:
    event = parsed(payload)

    assert event is None or isinstance(event, Event)


@fuzz
@given(json_values)
def test_arbitrary_json_parses_or_is_refused_alike_as_text_and_as_a_value(value: Any) -> None:
    from_text, from_value = parsed(json.dumps(value)), parsed(value)

    if isinstance(value, dict):
        assert from_text == from_value
    else:
        assert from_text is None


@fuzz
@given(mutated())
@example({"hook_event_name": "Stop", "session_id": "s", "fairlead:extra": 1})
@example({"hook_event_name": "Stop", "session_id": "s", "\ud800": 1})
@example({"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "duration_ms": 1})
def test_a_mutated_payload_comes_back_whole_if_it_parses(payload: dict[str, Any]) -> None:
    event = parsed(payload)

    if event is not None:
        assert_comes_back(payload, event)


@fuzz
@given(mutated())
def test_a_mutated_payload_is_read_alike_as_json_and_as_a_mapping(payload: dict[str, Any]) -> None:
    assert parsed(json.dumps(payload)) == parsed(payload)


@fuzz
@given(mutated(), names)
def test_any_name_that_the_caller_asks_for_is_agreed_or_refused(payload: dict[str, Any], name: str) -> None:
    event = parsed(payload, event=name)

    if event is not None:
        assert event.event_name == name or event.event_type is HookEvent.find(name)
        assert_comes_back(payload, event)


@fuzz
@given(names)
def test_any_name_that_only_the_caller_says_gives_an_event_that_parses_again(name: str) -> None:
    event = parsed({"session_id": "s"}, event=name)

    if event is not None:
        assert parse(encode(event)) == event


@fuzz
@given(text)
def test_a_name_is_either_an_event_or_not(name: str) -> None:
    found = HookEvent.find(name)

    assert found is None or HookEvent.parse(name) is found
