"""The JSON Schema of the policy file, for editors.

The shipped file is `schema.json`, which `python -m fairlead.policy.config._schema` generates from the types.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import msgspec

from fairlead.policy.config import _types

SCHEMA_FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "schema.json")
"""The shipped schema. The path must not change: earlier builds of 0.1.0 wrote it into policy files, for editors."""
SCHEMA_ID = "urn:fairlead:policy"

_NEW = "New."
"""The mark in the docstrings of settings that conclaude does not have; the schema leaves it out."""


def schema_text() -> str:
    """Return the text of the shipped schema."""
    with open(SCHEMA_FILE, encoding="utf-8") as file:
        return file.read()


def generate_schema() -> dict[str, Any]:
    """Generate the schema from the types and the docstrings of their fields."""
    schema = msgspec.json.schema(_types.Policy)
    docstrings = _field_docstrings()
    for name, definition in schema["$defs"].items():
        owner = getattr(_types, name)
        definition["description"] = _without_mark(definition["description"])
        for field in msgspec.structs.fields(owner):
            text = _docstring_of(owner, field.name, docstrings)
            if text:
                definition["properties"][field.encode_name]["description"] = text
    header = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, "title": "Fairlead policy"}
    return {**header, **schema}


def generate_text() -> str:
    """Generate the text of `schema.json`."""
    return msgspec.json.format(msgspec.json.encode(generate_schema()), indent=2).decode() + "\n"


def _docstring_of(owner: type, field: str, docstrings: dict[str, dict[str, str]]) -> str:
    """Return the docstring of a field, which may be inherited, without the mark; empty if it has none."""
    texts = (docstrings.get(base.__name__, {}).get(field, "") for base in owner.__mro__)
    return _without_mark(next(filter(None, texts), ""))


def _without_mark(text: str) -> str:
    return text.removeprefix(_NEW).strip()


def _field_docstrings() -> dict[str, dict[str, str]]:
    """Return class → field → docstring, from the source: Python does not keep the docstrings of fields."""
    import ast

    with open(_types.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return {node.name: _docstrings_in(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}


def _docstrings_in(body: list[Any]) -> dict[str, str]:
    import ast

    docstrings = {}
    for field, text in pairwise(body):
        is_field = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if is_field and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            docstrings[field.target.id] = " ".join(str(text.value.value).split())
    return docstrings


def regenerate() -> None:
    """Write `schema.json`."""
    with open(SCHEMA_FILE, "w", encoding="utf-8") as file:
        file.write(generate_text())


if __name__ == "__main__":
    regenerate()
