"""The documented JSON Schemas hold for what `sessions`, its stream and `history` really print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest
from daemon.test_history import POLICY, costs, happens, work

from fairlead.ipc import stream_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

SCHEMAS = Path(__file__).parents[2] / "docs/reference/schemas"


@pytest.fixture
def live(home: DaemonHome) -> Iterator[DaemonHome]:
    home.policy(POLICY)
    with home.daemon():
        work(home, "s1")
        costs(home, "s1", 1.25, 60)
        happens(home, "PermissionRequest", "s1", tool_name="Bash", tool_input={"command": "make"})
        work(home, "s2")
        happens(home, "SessionEnd", "s2", reason="other")
        yield home


def check(name: str, document: Any) -> None:
    """Check a document; a field that the schema does not have is an error here, though not for its users."""
    schema = closed(json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)


def closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return (
        {**inner, "additionalProperties": False}
        if isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
        else inner
    )


def printed(home: DaemonHome, *words: str) -> Any:
    return json.loads(home.fairlead(*words, "--json").stdout)


def test_the_documents_are_as_their_schemas_say(live: DaemonHome) -> None:
    sessions = printed(live, "sessions", "--all")
    assert {one["is"] for one in sessions["sessions"]} >= {"attention", "ended"}
    assert sessions["costs"]["usd"] == 1.25
    check("sessions", sessions)
    page = printed(live, "history")
    assert len(page["sessions"]) == 2
    check("history", page)
    found = printed(live, "history", "--search", "login")
    assert found["matches"]
    check("history", found)
    one = printed(live, "history", "--session", "s1")
    assert one["timeline"]
    assert one["subagents"]
    check("history-session", one)


def test_the_events_of_the_stream_are_as_their_schema_says(live: DaemonHome) -> None:
    seen: dict[str, Any] = {}
    for kind, data in stream_events("/v1/sessions/stream?after=0", timeout=30, at=str(live.socket)):
        if kind:
            check("stream", {"event": kind, "data": data})
            seen[kind] = data
        if "reset" in seen and "session" not in seen:
            costs(live, "s1", 2.5, 70)
        if {"reset", "session", "costs"} <= seen.keys():
            break
    assert seen["costs"]["usd"] == 2.5


def test_a_field_that_is_not_documented_is_found() -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(
            "history",
            {"since": 0.0, "now": 0.0, "left": 0.0, "usd": 0.0, "sessions": [], "matches": [], "next": "", "x": 1},
        )
