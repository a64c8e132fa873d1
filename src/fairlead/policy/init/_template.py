"""The text of a new policy file: the template, with the checks that were found and the schema for editors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.policy.config._schema import SCHEMA_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy.init._detect import DetectedCheck, Role

TEMPLATE = Path(__file__).with_name("template.yaml")

_HEADER = re.compile(r"^#[ \t]*yaml-language-server:.*\n?", re.MULTILINE)
_PLACE = "  ## CHECKS\n"
_MESSAGES: dict[Role, str] = {
    "lint": "Fix what the linter reports.",
    "types": "Fix the type errors.",
    "test": "Fix what makes the tests fail.",
    "all": "Fix what the checks report.",
}
_TIMEOUTS: dict[Role, int] = {"lint": 120, "types": 180, "test": 300, "all": 300}
"""Seconds. The client gives all of them together 600."""
_LINES: dict[Role, int] = {"lint": 60, "types": 60, "test": 100, "all": 100}
_NOTHING_FOUND = """\
  ## No linter and no tests were found here. An example:
  # commands:
  #   - run: make check
  #     message: Fix what the checks report.
  #     when: "*"
  #     timeout: 300
  #     showStdout: true
  #     showStderr: true
  #     maxOutputLines: 100
"""


def new_policy(checks: Sequence[DetectedCheck], folder: Path) -> str:
    """Fill the template for a folder."""
    return with_header(TEMPLATE.read_text("utf-8").replace(_PLACE, _commands(checks)), folder)


def with_header(text: str, folder: Path) -> str:
    """Name the schema to editors, in place of one that is named already."""
    newline = "\r\n" if "\r\n" in text else "\n"
    return f"# yaml-language-server: $schema={schema_for(folder)}{newline}{_HEADER.sub('', text)}"


def schema_for(folder: Path) -> str:
    """Name the schema of this installation: relative if it is within the folder, so that it holds for others too."""
    schema, folder = Path(SCHEMA_FILE).resolve(), folder.resolve()
    return schema.relative_to(folder).as_posix() if schema.is_relative_to(folder) else schema.as_uri()


def _commands(checks: Sequence[DetectedCheck]) -> str:
    """Write the list; if nothing in it is active, its key is an example too."""
    if not checks:
        return _NOTHING_FOUND
    active = any(check.off is None for check in checks)
    lines = ["  commands:" if active else "  # commands:"]
    for check in checks:
        lines += _entry(check, "    " if active else "  ")
    return "\n".join(lines) + "\n"


def _entry(check: DetectedCheck, indent: str) -> Iterator[str]:
    if check.off is None:
        yield from (f"{indent}{line}" for line in _yaml(check))
        return
    yield f"{indent}## Off: {check.off}."
    deeper = "" if indent == "    " else "  "
    yield from (f"{indent}# {deeper}{line}" for line in _yaml(check))


def _yaml(check: DetectedCheck) -> Iterator[str]:
    patterns = [f'"{pattern}"' for pattern in check.when]
    yield f"- run: {check.run}"
    yield f"  message: {_MESSAGES[check.role]}"
    yield f"  when: {patterns[0] if len(patterns) == 1 else '[' + ', '.join(patterns) + ']'}"
    yield f"  timeout: {_TIMEOUTS[check.role]}"
    yield "  showStdout: true"
    yield "  showStderr: true"
    yield f"  maxOutputLines: {_LINES[check.role]}"
