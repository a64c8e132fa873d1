"""Renders a new policy file: the template, with the detected checks, and perhaps the name of a schema for editors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy.init._detect import DetectedCheck, Role
    from fairlead.policy.init._detect_files import DetectedFiles

TEMPLATE = Path(__file__).with_name("template.yaml")

_SCHEMA_LINE = re.compile(r"^#[ \t]*yaml-language-server:.*\n?", re.MULTILINE)
_PLACEHOLDER = "  ## CHECKS\n"
_MESSAGES: dict[Role, str] = {
    "lint": "Fix what the linter reports.",
    "types": "Fix the type errors.",
    "test": "Fix what makes the tests fail.",
    "all": "Fix what the checks report.",
}
_TIMEOUTS: dict[Role, int] = {"lint": 120, "types": 180, "test": 300, "all": 300}
"""Role → the timeout of its command in seconds. The client allows 600 for all commands together."""
_MAX_LINES: dict[Role, int] = {"lint": 60, "types": 60, "test": 100, "all": 100}
_NO_CHECKS = """\
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


def render_policy(checks: Sequence[DetectedCheck], files: Sequence[DetectedFiles] = ()) -> str:
    """Return the text of a new policy. It names no schema."""
    text = TEMPLATE.read_text("utf-8").replace(_PLACEHOLDER, _commands(checks))
    text = _with_rules(text, "uneditableFiles", files)
    text = _with_rules(text, "unreadableFiles", [rule for rule in files if rule.protection == "secret"])
    return with_schema_line(text)


def _with_rules(text: str, setting: str, files: Sequence[DetectedFiles]) -> str:
    """Replace the example of a setting by the proposed rules, if there are any."""
    if not files:
        return text
    lines = [f"  {setting}:"]
    for rule in files:
        lines += _rule(rule)
    lines += [f'    - "!{name}"' for name in dict.fromkeys(name for rule in files for name in rule.except_for)]
    return re.sub(rf"  # {setting}:\n(?:  #   .*\n)+", "\n".join(lines).replace("\\", r"\\") + "\n", text, count=1)


def _rule(rule: DetectedFiles) -> Iterator[str]:
    if not rule.message:
        yield f'    - "{rule.pattern}"'
        return
    yield f'    - pattern: "{rule.pattern}"'
    if rule.protection == "generated":
        yield "      action: warn"
    yield f"      message: {rule.message}"


def with_schema_line(text: str, schema: str = "") -> str:
    """Return a policy whose first line names a schema for editors, by a path from the policy's folder.

    An existing line of that kind is replaced, or removed if `schema` is empty.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"# yaml-language-server: $schema={schema}{newline}" if schema else ""
    return line + _SCHEMA_LINE.sub("", text)


def names_schema(text: str) -> bool:
    """Return whether a policy names a schema for editors."""
    return _SCHEMA_LINE.search(text) is not None


def _commands(checks: Sequence[DetectedCheck]) -> str:
    """Return the list of commands; if all are disabled, its key is a comment too."""
    if not checks:
        return _NO_CHECKS
    active = any(check.disabled_reason is None for check in checks)
    lines = ["  commands:" if active else "  # commands:"]
    for check in checks:
        lines += _entry(check, "    " if active else "  ")
    return "\n".join(lines) + "\n"


def _entry(check: DetectedCheck, indent: str) -> Iterator[str]:
    if check.disabled_reason is None:
        yield from (f"{indent}{line}" for line in _yaml(check))
        return
    yield f"{indent}## Off: {check.disabled_reason}."
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
    yield f"  maxOutputLines: {_MAX_LINES[check.role]}"
