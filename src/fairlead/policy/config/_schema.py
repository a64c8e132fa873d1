"""The JSON Schema of the policy file, for editors.

What is shipped is `schema.json`, which `python -m fairlead.policy.config._schema` makes from the types.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import msgspec

from fairlead.policy.config import _types

SCHEMA_FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "schema.json")
SCHEMA_ID = "urn:fairlead:policy"

_NEW = "New."
"""How the types mark what conclaude does not have; an editor's user does not care."""


def policy_schema() -> dict[str, Any]:
    """Give the schema as it is shipped."""
    schema: dict[str, Any] = msgspec.json.decode(schema_text())
    return schema


def schema_text() -> str:
    """Give the text of the schema as it is shipped."""
    with open(SCHEMA_FILE, encoding="utf-8") as file:
        return file.read()


def generate_schema() -> dict[str, Any]:
    """Make the schema anew from the types and the documents of their fields."""
    schema = msgspec.json.schema(_types.Policy)
    documents = _field_documents()
    for name, definition in schema["$defs"].items():
        owner = getattr(_types, name)
        definition["description"] = _without_mark(definition["description"])
        for field in msgspec.structs.fields(owner):
            text = _document_of(owner, field.name, documents)
            if text:
                definition["properties"][field.encode_name]["description"] = text
    header = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, "title": "Fairlead policy"}
    return {**header, **schema}


def generate_text() -> str:
    """Make the text of `schema.json` anew."""
    return msgspec.json.format(msgspec.json.encode(generate_schema()), indent=2).decode() + "\n"


def _document_of(owner: type, field: str, documents: dict[str, dict[str, str]]) -> str:
    """Find what is written below a field, which may be one that its type has inherited."""
    texts = (documents.get(base.__name__, {}).get(field, "") for base in owner.__mro__)
    return _without_mark(next(filter(None, texts), ""))


def _without_mark(text: str) -> str:
    return text.removeprefix(_NEW).strip()


def _field_documents() -> dict[str, dict[str, str]]:
    """Read the texts below the fields, which Python itself forgets: class → field → text."""
    import ast

    with open(_types.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return {node.name: _documents_in(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}


def _documents_in(body: list[Any]) -> dict[str, str]:
    import ast

    found = {}
    for field, text in pairwise(body):
        is_field = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if is_field and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def regenerate() -> None:
    """Write `schema.json` anew."""
    with open(SCHEMA_FILE, "w", encoding="utf-8") as file:
        file.write(generate_text())


if __name__ == "__main__":
    regenerate()
