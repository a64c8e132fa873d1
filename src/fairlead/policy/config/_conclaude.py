"""Describes what changes when a policy of conclaude becomes a policy of Fairlead. Opens no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.config._reader import Document

_FILE_LISTS = ("uneditableFiles", "preventAdditions", "unreadableFiles")


def conclaude_sections(document: Document) -> Iterator[str]:
    """Yield a line for each section: its keys, and the number of entries in each."""
    for name, section in document.items():
        if isinstance(section, dict):
            yield f"{name}: {', '.join(_with_count(key, value) for key, value in section.items()) or 'empty'}"
        else:
            yield _with_count(name, section)


def _with_count(key: str, value: object) -> str:
    return f"{key} ({len(value)})" if isinstance(value, list | dict) else key


def conclaude_differences(document: Document) -> Iterator[str]:
    """Yield a line for each difference from conclaude that affects this policy."""
    yield from _guard_differences(document.get("preToolUse") or {})
    yield from _command_differences(list(_commands(document)))
    if document.get("stop"):
        yield "after 5 blocks in a row the agent may stop; `stop.maxBlocks: 0` removes the limit"
    if document.get("subagentStop") or document.get("skillStart"):
        yield "subagents: a pattern matches the agent's type or its id, so `coder` works"
    if document.get("permissionRequest"):
        yield "permissionRequest: an allowed tool is approved without asking you"
    yield "a broken file fails closed: the last good version is used, or tool calls are blocked"
    yield "the agent cannot edit the policy and the client's settings; `preToolUse.protectOwnFiles: false` allows it"


def _guard_differences(guards: dict[str, Any]) -> Iterator[str]:
    if any(guards.get(key) for key in (*_FILE_LISTS, "toolUsageValidation")):
        yield "file patterns are those of .gitignore: `.env` matches in every folder, and `*` does not match `/`"
        yield "file rules apply to shell commands too (`sed -i`, `>`, `mv`, ...), however a path is written"
    narrower = [pattern for pattern in _file_patterns(guards) if is_narrower(pattern)]
    if narrower:
        yield f"these match less than before; write `**/` where there may be folders in between: {', '.join(narrower)}"
    absolute = [pattern for pattern in _file_patterns(guards) if pattern.startswith("/") and pattern[1:2] != "/"]
    if absolute:
        yield f"these are now relative to this folder; for absolute paths write two slashes: {', '.join(absolute)}"
    if any("commandPattern" in rule for rule in guards.get("toolUsageValidation") or ()):
        yield "commandPattern is matched with each command of a Bash call: `cd x && git push --force` is found"
    if "preventGeneratedFileEdits" not in guards:
        yield "edits of generated files are blocked; `preToolUse.preventGeneratedFileEdits: false` allows them"


def _file_patterns(guards: dict[str, Any]) -> Iterator[str]:
    for key in (*_FILE_LISTS, "toolUsageValidation"):
        for entry in guards.get(key) or ():
            pattern = entry if isinstance(entry, str) else entry.get("pattern")
            if pattern and "commandPattern" not in (entry if isinstance(entry, dict) else ()):
                yield pattern


def is_narrower(pattern: str) -> bool:
    """Return whether the pattern matches more files in conclaude, whose `*` also matches slashes, than in git."""
    parts = pattern.removeprefix("!").strip("/").split("/")
    return len(parts) > 1 and any(_has_limited_star(parts, at) for at in range(len(parts)))


def _has_limited_star(parts: list[str], at: int) -> bool:
    part = parts[at]
    open_end = at == len(parts) - 1 and part.find("*") == len(part) - 1
    return "*" in part and part != "**" and not open_end and (at == 0 or parts[at - 1] != "**")


def _command_differences(commands: list[dict[str, Any]]) -> Iterator[str]:
    if any("\n" in command["run"].strip() for command in commands):
        yield "a `run` of several lines is one script: `cd` and `if` work, and the first failing line ends it"
    if any(command.get("maxOutputLines") for command in commands):
        yield "maxOutputLines keeps the first and the last lines, and reports how many were left out"
    if any(command.get("timeout") for command in commands):
        yield "timeout: after that time the command and all processes that it started are killed"


def _commands(tree: object) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict) and isinstance(tree.get("run"), str):
        yield tree
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _commands(value)
