"""Policies of conclaude: the keys of its older versions, and the differences when Fairlead applies such a policy.

conclaude is another program that guards Claude Code by a policy. Its file, `.conclaude.yaml`, has the same sections as
`.fairlead.yaml`, and is read as one.
Each older key is read as the key that replaced it, with a hint that names the new key. As an unknown key it would make
the policy invalid, and an invalid policy denies every tool call. Opens no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.policy.config._yaml_nodes import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.policy.config._reader import Document

    Add = Callable[[int, int, str], None]
    Pairs = list[tuple[Node, Node]]

_FILE_LISTS = ("uneditableFiles", "preventAdditions", "unreadableFiles")
_OLD = frozenset({"rules", "gitWorktree", "run", "rounds", "grepRules"})


# -- differences --------------------------------------------------------------------------------------


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
    """Return whether a pattern matches fewer files in git than in conclaude, whose `*` also matches slashes."""
    parts = pattern.removeprefix("!").strip("/").split("/")
    return len(parts) > 1 and any(_has_limited_star(parts, at) for at in range(len(parts)))


def _has_limited_star(parts: list[str], index: int) -> bool:
    part = parts[index]
    open_end = index == len(parts) - 1 and part.find("*") == len(part) - 1
    return "*" in part and part != "**" and not open_end and (index == 0 or parts[index - 1] != "**")


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


# -- keys of older versions ---------------------------------------------------------------------------


def map_old_keys(root: Node, add_hint: Add) -> Node:
    """Return the document with the current keys; `add_hint` gets the position and the text of each hint."""
    if root.kind != "mapping" or not _has_old_keys(root):
        return root
    return _Mapper(add_hint).map(root)


def _has_old_keys(root: Node) -> bool:
    sections = [root, *(value for key, value in root.value if key.text in {"stop", "preToolUse"})]
    return any(key.text in _OLD for node in sections if node.kind == "mapping" for key, _ in node.value)


class _Mapper:
    def __init__(self, add_hint: Add) -> None:
        self._add_hint = add_hint
        self._commands: list[Node] = []
        """Commands to add to `stop.commands`."""
        self._guards: Pairs = []
        """Keys and values to add to `preToolUse`."""

    def map(self, root: Node) -> Node:
        pairs = [pair for pair in root.value if not self._is_replaced(*pair)]
        pairs = [(key, self._map_section(key, value)) for key, value in pairs]
        if self._guards:
            pairs = _with_section(pairs, "preToolUse", root, self._add_guards)
        if self._commands:
            pairs = _with_section(pairs, "stop", root, self._add_commands)
        return Node("mapping", root.line, root.column, pairs)

    def _is_replaced(self, key: Node, value: Node) -> bool:
        if key.text == "rules" and value.kind in {"mapping", "null"}:
            self._hint(key, "rules", "its keys are read as keys of `preToolUse`: move them there")
            self._guards += value.value or []
            return True
        if key.text == "gitWorktree" and value.kind in {"mapping", "null"}:
            self._hint(key, "gitWorktree", "it has no effect: write what creates a worktree in `worktreeCreate`")
            return True
        return False

    def _map_section(self, key: Node, section: Node) -> Node:
        if key.text not in {"stop", "preToolUse"} or section.kind != "mapping":
            return section
        pairs: Pairs = []
        for inner, value in section.value:
            if inner.text == "grepRules" and value.kind in {"list", "null"}:
                self._map_grep_rules(key.text, inner, value)
            elif key.text == "stop" and inner.text == "run" and value.kind == "text" and value.text.strip():
                self._hint(inner, "stop.run", "it is read as a command: write it as an entry of `stop.commands`")
                self._commands.append(_mapping(inner, run=value.text))
            elif key.text == "stop" and inner.text == "rounds" and value.kind == "int" and value.value > 0:
                pairs += self._rounds(inner, value, {other.text for other, _ in section.value})
            else:
                pairs.append((inner, value))
        return Node("mapping", section.line, section.column, pairs)

    def _rounds(self, key: Node, value: Node, given: set[str]) -> Pairs:
        meaning = f"`stop.infinite: true` and `stop.maxBlocks: {value.value}`"
        self._hint(key, "stop.rounds", f"it is read as {meaning}: write these")
        pairs = {"infinite": _true(key), "maxBlocks": value}
        return [(_text(key, name), node) for name, node in pairs.items() if name not in given]

    def _map_grep_rules(self, section: str, key: Node, value: Node) -> None:
        self._hint(
            key, f"{section}.grepRules", "it is read as `git grep` at the stop: write the check in `stop.commands`"
        )
        for rule in value.value or ():
            fields = {name.text: node.text for name, node in rule.value} if rule.kind == "mapping" else {}
            if fields.get("forbiddenPattern"):
                self._commands.append(_grep_command(rule, fields))

    def _add_guards(self, pairs: Pairs) -> Pairs:
        """Return the pairs of `preToolUse` with those in `_guards`. Lists under the same key are concatenated."""
        own = {key.text: value for key, value in pairs}
        merged = [(key, _joined(value, dict(_by_text(self._guards)).get(key.text))) for key, value in pairs]
        return merged + [(key, value) for key, value in self._guards if key.text not in own]

    def _add_commands(self, pairs: Pairs) -> Pairs:
        first = self._commands[0]
        commands = Node("list", first.line, first.column, self._commands)
        if all(key.text != "commands" for key, _ in pairs):
            return [*pairs, (_text(first, "commands"), commands)]
        return [(key, _joined(commands, value) if key.text == "commands" else value) for key, value in pairs]

    def _hint(self, key: Node, name: str, advice: str) -> None:
        self._add_hint(key.line, key.column, f"`{name}` is a key of older versions of conclaude; {advice}")


def _with_section(pairs: Pairs, name: str, root: Node, change: Callable[[Pairs], Pairs]) -> Pairs:
    """Return the sections with the section `name` changed by `change`, or added.

    A section that is not a mapping is left for the validation.
    """
    if all(key.text != name for key, _ in pairs):
        pairs = [*pairs, (_text(root, name), Node("mapping", root.line, root.column, []))]
    return [
        (key, Node("mapping", value.line, value.column, change(value.value or [])))
        if key.text == name and value.kind in {"mapping", "null"}
        else (key, value)
        for key, value in pairs
    ]


def _grep_command(rule: Node, fields: dict[str, str]) -> Node:
    from shlex import quote

    files = quote(f":(glob){fields.get('filePattern') or '**'}")
    run = f"git grep -nE --untracked -e {quote(fields['forbiddenPattern'])} -- {files}; test $? -eq 1"
    message = fields.get("description") or f"found what is forbidden: {fields['forbiddenPattern']}"
    command = _mapping(rule, run=run, message=message)
    command.value.append((_text(rule, "showStdout"), _true(rule)))
    return command


def _joined(first: Node, second: Node | None) -> Node:
    if second is None or first.kind != "list" or second.kind != "list":
        return first
    return Node("list", first.line, first.column, [*first.value, *second.value])


def _by_text(pairs: Pairs) -> list[tuple[str, Node]]:
    return [(key.text, value) for key, value in pairs]


def _mapping(at: Node, **texts: str) -> Node:
    return Node("mapping", at.line, at.column, [(_text(at, key), _text(at, text)) for key, text in texts.items()])


def _true(at: Node) -> Node:
    return Node("bool", at.line, at.column, value=True, text="true")


def _text(at: Node, text: str) -> Node:
    return Node("text", at.line, at.column, text, text)
