"""Every error message of the store is explained in the documentation."""

from __future__ import annotations

import ast
from pathlib import Path

from fairlead import store
from fairlead.errors import FairleadError

ROOT = Path(__file__).parents[2]
NAMES = {name for name in store.__all__ if name.startswith("Store") and name not in {"Store", "StoredEvent"}}


def test_every_message_of_an_error_is_explained() -> None:
    explained = " ".join((ROOT / "docs/troubleshooting.md").read_text("utf-8").split())
    missing = [part for part in message_parts() if part not in explained]
    assert missing == []


def test_every_error_is_a_store_error() -> None:
    assert all(issubclass(getattr(store, name), FairleadError) for name in NAMES)
    assert all(issubclass(getattr(store, name), store.StoreError) for name in NAMES)


def message_parts() -> list[str]:
    """Return the constant parts of all error messages that are long enough to search for."""
    found = []
    for file in sorted(Path(store.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in NAMES:
                found += [part for argument in node.args for part in constants(argument)]
    assert len(found) > 15
    return found


def constants(text: ast.expr) -> list[str]:
    nodes = text.values if isinstance(text, ast.JoinedStr) else [text]
    values = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [value.strip(" :;,'`()") for value in values if len(value.strip(" :;,'`()")) >= 12]
