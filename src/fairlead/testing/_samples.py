"""Recorded payloads of the real client, to test hooks with."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fairlead.events import Event, HookEvent, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

E = TypeVar("E", bound=Event)


def make(event: type[E], /, **changes: Any) -> E:
    """Return a typed event from a recorded payload, with the fields in `changes` replaced; `None` removes a field.

    For example: `make(PreToolUse, tool_name="Bash", tool_input={"command": "ls"})`.
    """
    parsed = parse(make_payload(event, **changes))
    assert isinstance(parsed, event)  # the sample has the event's own name
    return parsed


def make_payload(event: type[Event] | HookEvent | str, /, **changes: Any) -> dict[str, Any]:
    """Return a recorded payload of an event, with the fields in `changes` replaced; `None` removes a field."""
    name = _name(event)
    payload = next(payload for payload in _payloads().values() if payload["hook_event_name"] == name)
    payload = {**payload, **changes}
    return {key: value for key, value in payload.items() if value is not None}


def samples(event: type[Event] | HookEvent | str | None = None) -> Iterator[Event]:
    """Yield the recorded payloads of an event, or by default of all events, as typed events."""
    name = None if event is None else _name(event)
    for payload in _payloads().values():
        if name in {None, payload["hook_event_name"]}:
            yield parse(payload)


def _name(event: type[Event] | HookEvent | str) -> str:
    if isinstance(event, str):
        event = HookEvent.parse(event)
    name = event.value if isinstance(event, HookEvent) else event.__name__
    return HookEvent.parse(name).value


def _payloads() -> dict[str, dict[str, Any]]:
    """Return the recorded payloads by name, decoded at each call, so that no test changes those of another test."""
    decoded: dict[str, dict[str, Any]] = msgspec.json.decode(_text())
    return decoded


@cache
def _text() -> bytes:
    return (files("fairlead.testing") / "samples.json").read_bytes()
