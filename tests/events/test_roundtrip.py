"""What real clients sent comes back out as it came, from an event of the right type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.events import Event, HookEvent, encode, parse, to_payload

PAYLOADS = sorted((Path(__file__).parents[1] / "payloads" / "claude").glob("*/*.json"))

every_payload = pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: f"{path.parent.name}/{path.stem}")


def canonical(value: Any) -> str:
    """Spell JSON so that 1, 1.0 and true differ, which Python's == would not see."""
    return json.dumps(value, sort_keys=True, indent=1)


def test_every_event_has_a_payload_that_a_client_sent() -> None:
    assert {json.loads(path.read_bytes())["hook_event_name"] for path in PAYLOADS} == {e.value for e in HookEvent}


def test_both_releases_of_the_client_are_there() -> None:
    assert {path.parent.name for path in PAYLOADS} == {"2.1.197", "2.1.325"}


@every_payload
def test_every_key_and_value_comes_back(path: Path) -> None:
    sent = path.read_bytes()

    assert canonical(json.loads(encode(parse(sent)))) == canonical(json.loads(sent))


@every_payload
def test_a_mapping_gives_the_same_event_as_its_json(path: Path) -> None:
    sent = path.read_bytes()

    assert parse(json.loads(sent)) == parse(sent)


@every_payload
def test_what_was_encoded_parses_to_the_same_event_again(path: Path) -> None:
    event = parse(path.read_bytes())

    assert parse(encode(event)) == event


@every_payload
def test_the_event_has_the_type_of_its_name(path: Path) -> None:
    sent = json.loads(path.read_bytes())
    event = parse(sent)

    assert type(event) is HookEvent[sent["hook_event_name"]].type
    assert event.event_name == sent["hook_event_name"]


@every_payload
def test_every_field_of_a_known_release_is_typed(path: Path) -> None:
    extra = parse(path.read_bytes()).extra

    assert [key for key, value in extra.items() if value is not None] == []


@every_payload
def test_parsing_leaves_the_mapping_as_it_was(path: Path) -> None:
    sent = json.loads(path.read_bytes())

    parse(sent)

    assert sent == json.loads(path.read_bytes())


def test_the_payload_of_an_event_made_by_hand_holds_what_was_said_and_no_more() -> None:
    event = HookEvent.Stop.type(session_id="s", cwd="/home/user", received=1.0, metadata={"run": 1})

    assert to_payload(event) == {"hook_event_name": "Stop", "session_id": "s", "cwd": "/home/user"}


def test_an_event_is_not_changed_by_what_is_done_to_its_payload() -> None:
    event: Event = parse({"hook_event_name": "Stop", "session_id": "s", "new": 1})

    to_payload(event)["new"] = 2

    assert to_payload(event)["new"] == 1
