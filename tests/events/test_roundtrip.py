"""Recorded payloads are encoded again unchanged, from an event of the right type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairlead.events import Event, HookEvent, encode, parse, to_payload

PAYLOADS = sorted((Path(__file__).parents[1] / "payloads" / "claude").glob("*/*.json"))


def canonical(value: Any) -> str:
    """Return JSON text in which 1, 1.0 and true differ: they are equal in Python."""
    return json.dumps(value, sort_keys=True, indent=1)


def test_every_event_has_a_payload_that_a_client_sent() -> None:
    assert {json.loads(path.read_bytes())["hook_event_name"] for path in PAYLOADS} == {e.value for e in HookEvent}


def test_both_releases_of_the_client_are_there() -> None:
    assert {path.parent.name for path in PAYLOADS} == {"2.1.197", "2.1.325"}


def test_every_key_and_value_comes_back() -> None:
    for path in PAYLOADS:
        sent = path.read_bytes()
        assert canonical(json.loads(encode(parse(sent)))) == canonical(json.loads(sent)), path


def test_a_mapping_is_parsed_to_the_same_event_as_its_json_and_is_not_changed() -> None:
    for path in PAYLOADS:
        sent = json.loads(path.read_bytes())
        assert parse(sent) == parse(path.read_bytes()), path
        assert sent == json.loads(path.read_bytes()), path


def test_an_encoded_event_is_parsed_to_the_same_event_again() -> None:
    for path in PAYLOADS:
        event = parse(path.read_bytes())
        assert parse(encode(event)) == event, path


def test_the_event_has_the_type_of_its_name() -> None:
    for path in PAYLOADS:
        sent = json.loads(path.read_bytes())
        event = parse(sent)
        assert type(event) is HookEvent[sent["hook_event_name"]].type, path
        assert event.event_name == sent["hook_event_name"], path


def test_every_field_of_a_known_release_is_typed() -> None:
    untyped = [
        (path.stem, key)
        for path in PAYLOADS
        for key, value in parse(path.read_bytes()).extra.items()
        if value is not None
    ]
    assert untyped == []


def test_the_payload_of_an_event_made_by_hand_has_the_given_fields_only() -> None:
    event = HookEvent.Stop.type(session_id="s", cwd="/home/user", received=1.0, metadata={"run": 1})

    assert to_payload(event) == {"hook_event_name": "Stop", "session_id": "s", "cwd": "/home/user"}


def test_changing_the_payload_does_not_change_the_event() -> None:
    event: Event = parse({"hook_event_name": "Stop", "session_id": "s", "new": 1})

    to_payload(event)["new"] = 2

    assert to_payload(event)["new"] == 1
