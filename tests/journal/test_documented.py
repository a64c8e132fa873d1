"""In whatever words the journal tells a mistake, a person can look them up."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def told() -> list[str]:
    """The constant parts of the errors and remarks."""
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

    assert len(told()) > 10
    assert [text for text in told() if text not in explained] == []
