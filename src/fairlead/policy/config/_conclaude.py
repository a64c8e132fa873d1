"""What becomes of a policy that was written for conclaude when it moves to a file of ours. Opens no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.config._reader import Document

_FILE_LISTS = ("uneditableFiles", "preventAdditions", "unreadableFiles")


def conclaude_sections(document: Document) -> Iterator[str]:
    """Say what was taken over: one line a section, its keys, and how many entries each has."""
    for name, section in document.items():
        if isinstance(section, dict):
            yield f"{name}: {', '.join(_counted(key, value) for key, value in section.items()) or 'empty'}"
        else:
            yield _counted(name, section)


def _counted(key: str, value: object) -> str:
    return f"{key} ({len(value)})" if isinstance(value, list | dict) else key


def conclaude_differences(document: Document) -> Iterator[str]:
    """Say what of it behaves in another way than it did with conclaude."""
    yield from _in_guards(document.get("preToolUse") or {})
    yield from _in_commands(list(_commands(document)))
    if document.get("stop"):
        yield "after 5 blocks in a row the agent may stop all the same; `stop.maxBlocks: 0` lifts that"
    if document.get("subagentStop") or document.get("skillStart"):
        yield "subagents: a pattern may match the agent's type as well as its id, so `coder` works"
    if document.get("permissionRequest"):
        yield "permissionRequest: what is allowed is really approved; the person is not asked"
    yield "a broken file does not open the gate: the last good version holds, or tool calls are blocked"
    yield "the agent cannot edit the policy and the client's settings; `preToolUse.protectOwnFiles: false` lifts that"


def _in_guards(guards: dict[str, Any]) -> Iterator[str]:
    if any(guards.get(key) for key in (*_FILE_LISTS, "toolUsageValidation")):
        yield "file patterns are those of .gitignore: `.env` holds in every folder, and `*` takes no `/`"
        yield "file rules hold for shell commands too (`sed -i`, `>`, `mv`, ...), whatever way a path is written"
    narrower = [pattern for pattern in _file_patterns(guards) if is_narrower(pattern)]
    if narrower:
        yield f"these match less than before, so write `**/` where folders may stand between: {', '.join(narrower)}"
    absolute = [pattern for pattern in _file_patterns(guards) if pattern.startswith("/") and pattern[1:2] != "/"]
    if absolute:
        yield f"these begin in this folder now; for the whole disk write two slashes: {', '.join(absolute)}"
    if any("commandPattern" in rule for rule in guards.get("toolUsageValidation") or ()):
        yield "commandPattern is held against each command of a Bash call: `cd x && git push --force` is found"
    if "preventGeneratedFileEdits" not in guards:
        yield "edits of generated files are blocked; `preToolUse.preventGeneratedFileEdits: false` lifts that"


def _file_patterns(guards: dict[str, Any]) -> Iterator[str]:
    for key in (*_FILE_LISTS, "toolUsageValidation"):
        for entry in guards.get(key) or ():
            pattern = entry if isinstance(entry, str) else entry.get("pattern")
            if pattern and "commandPattern" not in (entry if isinstance(entry, dict) else ()):
                yield pattern


def is_narrower(pattern: str) -> bool:
    """Tell whether conclaude, whose `*` takes slashes, would match more by it than git does."""
    parts = pattern.removeprefix("!").strip("/").split("/")
    return len(parts) > 1 and any(_stops_short(parts, at) for at in range(len(parts)))


def _stops_short(parts: list[str], at: int) -> bool:
    part = parts[at]
    open_end = at == len(parts) - 1 and part.find("*") == len(part) - 1
    return "*" in part and part != "**" and not open_end and (at == 0 or parts[at - 1] != "**")


def _in_commands(commands: list[dict[str, Any]]) -> Iterator[str]:
    if any("\n" in command["run"].strip() for command in commands):
        yield "a `run` of several lines is one script: `cd` and `if` work, and the first line that fails ends it"
    if any(command.get("maxOutputLines") for command in commands):
        yield "maxOutputLines keeps the first and the last lines, and says how many were left out"
    if any(command.get("timeout") for command in commands):
        yield "timeout: when the time is up, the command is killed, with all that it started"


def _commands(tree: object) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict) and isinstance(tree.get("run"), str):
        yield tree
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _commands(value)
