"""Every error message of the journal is explained in the documentation."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def message_parts() -> list[str]:
    """Return the constant parts of all errors and remarks."""
    found: list[str] = []
    for file in [*(ROOT / "src/fairlead/journal").glob("*.py"), ROOT / "src/fairlead/cli/events.py"]:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            call = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and call in {"JournalError", "SpoolFull", "OSError", "UsageError", "print"}:
                constants = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
                found += [
                    text.removeprefix("fairlead:").strip(" :;,'`()") for text in constants if isinstance(text, str)
                ]
    return [text for text in found if len(text) >= 12]


def test_every_message_is_explained() -> None:
    explained = " ".join((ROOT / "docs/troubleshooting.md").read_text("utf-8").split())

    assert len(message_parts()) > 10
    assert [text for text in message_parts() if text not in explained] == []
