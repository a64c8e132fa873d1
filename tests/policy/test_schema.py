"""The JSON Schema that editors use: shipped, up to date, and with descriptions."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fairlead.policy.config import _types as t
from fairlead.policy.config._schema import generate_text, schema_text


def definition(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema_text())["$defs"][name]
    return found


def test_what_is_shipped_is_what_the_types_say() -> None:
    """If not: python -m fairlead.policy.config._schema. Only the order in `anyOf` depends on the version of msgspec."""
    assert schema_text() == formatted(schema_text())
    assert formatted(schema_text(), any_order=True) == formatted(generate_text(), any_order=True)


def formatted(text: str, *, any_order: bool = False) -> str:
    def ordered(value: Any) -> Any:
        if isinstance(value, list):
            return [ordered(each) for each in value]
        if isinstance(value, dict):
            value = {key: ordered(each) for key, each in value.items()}
            return {**value, "anyOf": sorted(value["anyOf"], key=repr)} if "anyOf" in value else value
        return value

    document = json.loads(text)
    return json.dumps(ordered(document) if any_order else document, indent=2, ensure_ascii=False) + "\n"


def test_it_has_an_id() -> None:
    schema = json.loads(schema_text())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == "urn:fairlead:policy"
    assert schema["$ref"] == "#/$defs/Policy"


def test_only_the_names_of_the_file_are_allowed() -> None:
    for found in json.loads(schema_text())["$defs"].values():
        names = {field.encode_name for field in msgspec.structs.fields(getattr(t, found["title"]))}
        assert set(found["properties"]) == names
        assert found["additionalProperties"] is False


def test_a_description_is_the_docstring_of_the_field() -> None:
    stop = definition("Stop")["properties"]
    assert stop["infinite"]["description"] == "Block the stop even if all checks pass."
    assert (
        stop["parallel"]["description"]
        == "Run the checks at the same time; their output is shown in the order of the file."
    )
    inherited = definition("PromptCommand")["properties"]["message"]["description"]
    assert inherited == definition("Command")["properties"]["message"]["description"]
    assert inherited == "Shown to the agent if the command fails."


def test_ranges_and_choices_are_in_it() -> None:
    assert definition("WorktreeCreate")["properties"]["timeout"]["anyOf"][0] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 3600,
    }
    assert definition("Bash")["properties"]["unparsable"]["enum"] == ["allow", "ask", "deny"]
