"""Reads the lines of the corpus. The format is described in README.md beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).parent
LINE_BREAK = "⏎"


class Line(msgspec.Struct, frozen=True):
    """One call, and what should become of it."""

    file: str
    number: int
    family: str
    goal: str
    expected: str
    folder: str
    text: str

    @property
    def where(self) -> str:
        """The file and line."""
        return f"{self.file}:{self.number}"

    @property
    def is_bash(self) -> bool:
        """Whether this is a command for Bash."""
        return not self.text.startswith('{"tool"')

    def call(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return the tool and its input; `text` is the line's, with its placeholders filled."""
        if self.is_bash:
            return "Bash", {"command": text}
        value = json.loads(text)
        return value["tool"], value["input"]


def read_lines(name: str) -> list[Line]:
    """Read one file of the corpus."""
    lines: list[Line] = []
    family, goal = "", ""
    for number, text in enumerate((FOLDER / name).read_text().splitlines(), 1):
        if text.startswith("["):
            family, _, goal = text[1:].partition("]")
        elif text and not text.startswith("#"):
            head, _, call = text.partition("  ")
            expected, _, folder = head.partition(" @")
            call = call.replace(LINE_BREAK, "\n")
            lines.append(Line(name, number, family, goal.strip(), expected, folder, call))
    return lines
