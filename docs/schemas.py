"""The JSON Schemas of what `--json` and the daemon's stream print, from the types that they are made of."""

# ruff: noqa: INP001 - beside a script, no package

from __future__ import annotations

import json
from typing import Any

import msgspec

from fairlead.sessions import Costs, HistoryPage, Session, SessionHistory

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ADDED = {
    "is": {"enum": ["attention", "working", "idle", "ended"], "description": "The state in one word."},
    "stale": {"type": "boolean", "description": "No activity for 8 hours."},
    "duration": {"type": "number", "description": "Seconds since the start, up to the end."},
    "in_state": {"type": "number", "description": "Seconds in the present state."},
}
"""What `fairlead sessions --json` adds to each session."""
_REF = "#/$defs/{name}"


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each document, by the name of its file."""
    return {
        "sessions": _sessions(),
        "stream": _stream(),
        "history": _of(HistoryPage),
        "history-session": _of(SessionHistory),
    }


def to_text(schema: dict[str, Any]) -> str:
    """Return a schema as it is written to its file."""
    return json.dumps(_with_null_last(schema), indent=2) + "\n"


def _with_null_last(schema: Any) -> Any:
    """Return a schema in which null is the last of several types. Where msgspec puts it depends on its version."""
    if isinstance(schema, list):
        return [_with_null_last(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _with_null_last(value) for key, value in schema.items()}
    if isinstance(inner.get("anyOf"), list):
        inner["anyOf"].sort(key=lambda kind: kind == {"type": "null"})
    return inner


def _of(kind: type) -> dict[str, Any]:
    (root,), definitions = msgspec.json.schema_components((kind,), ref_template=_REF)
    return {"$schema": _DIALECT, **root, "$defs": definitions}


def _sessions() -> dict[str, Any]:
    (session, costs), definitions = _components()
    listed = {**definitions["Session"], "properties": {**definitions["Session"]["properties"], **_ADDED}}
    listed["required"] = [*listed.get("required", ()), *_ADDED]
    rows = {"type": "array", "items": session}
    host = {
        "host": {"type": "string", "description": "Its name in the team."},
        "age": {"type": "number", "description": "Seconds since it was heard of."},
        "sessions": rows,
        "left_out": {"type": "integer", "description": "Sessions of it that are not listed."},
    }
    hosts = {"type": "array", "items": _object(host), "description": "The other hosts of the team."}
    document = _object({"now": {"type": "number"}, "costs": costs, "sessions": rows, "hosts": hosts})
    return {
        "$schema": _DIALECT,
        **document,
        "required": ["now", "sessions"],
        "$defs": {**definitions, "Session": listed},
    }


def _stream() -> dict[str, Any]:
    """Return the schema of `{"event": KIND, "data": …}` for each event of the stream."""
    (session, costs), definitions = _components()
    definitions["Session"]["properties"]["memory"] = {"type": "object", "maxProperties": 0, "description": "Internal."}
    reset = {"revision": {"type": "integer"}, "costs": costs, "sessions": {"type": "array", "items": session}}
    kinds = {
        "session": session,
        "gone": _object({"id": {"type": "string"}}),
        "reset": _object(reset),
        "costs": costs,
    }
    events = [_object({"event": {"const": kind}, "data": data}) for kind, data in kinds.items()]
    return {"$schema": _DIALECT, "oneOf": events, "$defs": definitions}


def _components() -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    roots, definitions = msgspec.json.schema_components((Session, Costs), ref_template=_REF)
    definitions["Session"]["properties"].pop("memory")  # internal: no document has it
    definitions.pop("SessionMemory")
    return roots, definitions


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
