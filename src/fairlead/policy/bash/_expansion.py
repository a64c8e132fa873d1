"""Expands nodes of the syntax tree to words: quotes, variables, braces, substitutions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from fairlead.policy.bash._collector import START_FOLDERS, Folders
from fairlead.policy.bash._words import (
    EMPTY,
    OPEN,
    ansi_c,
    as_value,
    double_quoted,
    expand_values,
    modified_values,
    quote,
    split_fields,
    unknown,
    unquoted,
)
from fairlead.policy.bash.programs._outputs import NUMBER, Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    SavedScope: TypeAlias = tuple[
        Folders,
        Folders | None,
        list[Folders],
        dict[str, tuple[str, ...] | None],
        dict[str, str],
        bool,
    ]
    """The state of a shell before it started a subshell."""
    Function: TypeAlias = "tuple[Expander, Node]"
    """The expander of the script that defines a function, and the body of the function."""

WORDS: Final = frozenset(
    {
        "$", "ansi_c_string", "arithmetic_expansion", "brace_expression", "command_name", "command_substitution",
        "concatenation", "expansion", "extglob_pattern", "number", "process_substitution", "raw_string", "regex",
        "simple_expansion", "string", "test_operator", "translated_string", "word",
    }
)  # fmt: skip
"""Nodes that are words or parts of words."""

_EXPANSIONS: Final = {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}
_is_simple: Final = re.compile(rb"[!#%&(-Z^-z|~]+").fullmatch
"""Whether a word is literal: no quote, no backslash, no dollar, no brackets, no braces."""
_PLAIN: Final = re.sub(rb"[^\w./:=@%+,*?~^ \t-]", b"", bytes(range(128)))
"""The characters of commands in which every word is literal."""
_IN_ARGUMENTS: Final = frozenset("=*?^")
"""Characters that are special in the first word of a command, but not in the others."""
_is_plain_command: Final = re.compile(
    rb"""[\w./:@%+,~-]+(?:[ \t]+(?:[\w./:=@%+,*?~^-]+|"[^"$`\\]*"|'[^']*'))*"""
).fullmatch
"""Whether a command consists of literal and quoted words alone: nothing to expand, no assignment before it."""
_TOKENS: Final = re.compile(r"""[^\s"']+|"[^"]*"|'[^']*'""")
_NUMBERS: Final = dict.fromkeys(("?", "$", "#", "!", "RANDOM", "SECONDS", "UID", "EUID", "LINENO", "PPID"), (NUMBER,))
_PRESET: Final[dict[str, tuple[str, ...]]] = {"HOME": ("~",), "PWD": (".",), **_NUMBERS}
"""Variables that the shell sets: two folders, and numbers."""
_PARAMETER: Final = re.compile(r"([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[@*\d]+\])?")
_VARIABLE_IN_WORD: Final = re.compile(r"\$([A-Za-z_]\w*|\d|[@*#?!])|(?:\\.|[^$\\])+|[$\\]", re.DOTALL)
_MODIFIED: Final = re.compile(r"([A-Za-z_]\w*|\d+|[@*])(?:\[[@*\d]+\])?(:?[-=?+]|%%?|##?|//?|\^\^?|,,?|:)")
"""The name and the operator of an expansion."""


class Scope:
    """The state of a shell: its folder and its variables."""

    def __init__(self) -> None:
        self.folders: Folders = START_FOLDERS
        self.previous: Folders | None = None
        self.stack: list[Folders] = []
        self.variables: dict[str, tuple[str, ...] | None] = {}
        """The values that each variable may have; `None` if they are only known when the command runs."""
        self.functions: dict[str, Function] = {}
        """The functions that the command defines."""
        self.aliases: dict[str, str] = {}
        self.exported: dict[str, str] = {}
        """The variables that programs receive."""
        self.entered: str | None = None
        """The folder of the last `cd`."""
        self.certain = True
        """Whether the statement certainly runs: an assignment then replaces earlier values."""
        self.statements = 0

    def enter_subshell(self) -> SavedScope:
        """Start a subshell; return the state for `leave_subshell`."""
        saved = self.folders, self.previous, self.stack, self.variables, self.exported, self.certain
        self.stack, self.variables, self.exported = list(self.stack), dict(self.variables), dict(self.exported)
        return saved

    def leave_subshell(self, saved: SavedScope) -> None:
        """End a subshell: restore the variables and the folder."""
        self.folders, self.previous, self.stack, self.variables, self.exported, self.certain = saved


class Expander:
    """Expands the words of one script; a subclass walks the commands in substitutions."""

    def __init__(self, source: bytes, scope: Scope) -> None:
        self.source = source
        self.scope = scope
        self.process_output: Output | None = None
        """The output of the last `<(…)`; `None` if it is not known."""

    def subshell(self, node: Node) -> None:
        """Walk the commands of a substitution."""
        raise NotImplementedError

    def substituted(self, node: Node) -> Output | None:
        """Walk a substitution; return its output, or `None` if it is not known."""
        raise NotImplementedError

    def text(self, node: Node) -> str:
        """Return the source of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def plain_words(self, node: Node) -> list[str] | None:
        """Return the words of a command without expansions, faster than from the tree; `None` for any other command."""
        source = self.source[node.start_byte : node.end_byte]
        if not source.translate(None, _PLAIN):
            words = source.decode().split()
            return words if words and _IN_ARGUMENTS.isdisjoint(words[0]) else None
        if not _is_plain_command(source):
            return None
        tokens = _TOKENS.findall(source.decode("utf-8", "replace"))
        return [quote(token[1:-1]).replace(EMPTY, "") if token[0] in "'\"" else token for token in tokens]

    def words(self, nodes: Iterable[Node]) -> list[str]:
        """Return the words of some nodes; nodes without a blank between them are one word."""
        words: list[str] = []
        for group in self.groups(nodes):
            if len(group) == 1:
                source = self._literal(group[0])
                if source is not None:
                    words.append(source.decode())
                    continue
            words += split_fields(self._pieces(group))
        return words

    def _literal(self, node: Node) -> bytes | None:
        """Return the source of a word without expansions, as most words are; `None` for any other."""
        if node.type == "command_name":
            node = node.children[0]
        if node.type not in {"word", "number"}:
            return None
        source = self.source[node.start_byte : node.end_byte]
        return source if _is_simple(source) else None

    def groups(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """Return the nodes of each word. A blank separates words; a backslash at the end of a line does not."""
        groups: list[list[Node]] = []
        end = -1
        for node in nodes:
            start = node.start_byte
            if groups and (start == end or not self.source[end:start].replace(b"\\\n", b"")):
                groups[-1].append(node)
            else:
                groups.append([node])
            end = node.end_byte
        return groups

    def joined(self, nodes: Iterable[Node]) -> str:
        """Return some nodes as one word, without splitting or brace expansion."""
        return self._pieces(list(nodes)).replace(EMPTY, "")

    def _pieces(self, nodes: list[Node]) -> str:
        """Return adjacent nodes as one text. The parser splits `$a/$b.c` before and after its second dollar sign."""
        parts: list[str] = []
        for node in nodes:
            start = node.start_byte
            if node.type == "word" and parts and parts[-1][-1:] == "$" and self.source[start - 2 : start] != b"\\$":
                parts[-1] = parts[-1][:-1]
                parts.append(self._word("$" + self.text(node), quoted=False))
            else:
                parts.append(self.piece(node, quoted=False))
        return "".join(parts)

    def piece(self, node: Node, *, quoted: bool) -> str:
        """Return one part of a word as marked text."""
        text = self.text(node)
        match node.type:
            case "word" | "number":
                value = self._word(text, quoted=quoted) if "$" in text else unquoted(text)
            case "raw_string":
                value = quote(text[1:-1])
            case "ansi_c_string":
                value = ansi_c(text[2:-1])
            case "string" | "translated_string":
                value = self._string(node)
            case "concatenation" | "command_name":
                value = "".join([self.piece(child, quoted=quoted) for child in node.children])
            case "$":  # `$"…"` is a text to translate; any other `$` is literal
                value = "" if self.source[node.end_byte : node.end_byte + 1] == b'"' else text
            case kind:
                value = self._expansion(node, kind, text, quoted=quoted)
        return value

    def _word(self, text: str, *, quoted: bool) -> str:
        """Return a literal word. It may contain a variable: the parser takes `$b` in `$a/$b.c` for literal."""
        return "".join(
            [
                self._variable(match[1], match[0], quoted=quoted) if match[1] else unquoted(match[0])
                for match in _VARIABLE_IN_WORD.finditer(text)
            ]
        )

    def _string(self, node: Node) -> str:
        """Return text in double quotes. It is read from the source, because the parser drops some blanks."""
        if node.type == "translated_string":
            node = node.children[-1]
        at, parts = node.start_byte + 1, []
        for child in node.children:
            if child.type in _EXPANSIONS:
                parts += [self._quoted(at, child.start_byte), self.piece(child, quoted=True)]
                at = child.end_byte
        parts.append(self._quoted(at, node.end_byte - 1))
        return "".join(parts) or EMPTY

    def _quoted(self, start: int, end: int) -> str:
        return double_quoted(self.source[start:end].decode("utf-8", "replace")) if start < end else ""

    def _expansion(self, node: Node, kind: str, text: str, *, quoted: bool) -> str:
        match kind:
            case "simple_expansion":
                value = self._variable(text[1:], text, quoted=quoted)
            case "expansion":
                value = self._parameter(node, text, quoted=quoted)
            case "command_substitution":
                value = _printed(self.substituted(node), text, quoted=quoted)
            case "process_substitution":
                self.process_output = self.substituted(node)
                value = "/dev/fd/63"
            case "arithmetic_expansion":
                self.walk_substitutions(node)
                value = NUMBER
            case "extglob_pattern" if "(" in text:
                value = unknown(text)
            case _:
                value = unquoted(text)
        return value

    def _variable(self, name: str, source: str, *, quoted: bool) -> str:
        variables = self.scope.variables
        values = variables.get(name, ()) if name in variables else _PRESET.get(name)
        if not values or (not quoted and "IFS" in variables):
            return unknown(source)
        return expand_values(values, quoted=quoted)

    def _parameter(self, node: Node, text: str, *, quoted: bool) -> str:
        self.walk_substitutions(node)
        inner = text[2:-1]
        match = _PARAMETER.fullmatch(inner)
        if match is not None:
            return self._variable(match[1], text, quoted=quoted)
        if inner[:1] == "#":
            return NUMBER
        values = self._modified(node, inner)
        return unknown(text) if values is None else expand_values(values, quoted=quoted)

    def _modified(self, node: Node, inner: str) -> tuple[str, ...] | None:
        """Return the values of `${name%.py}`, `${name:-default}` and others; `None` if they are not known."""
        match = _MODIFIED.match(inner)
        if match is None:
            return None
        name, operator = match[1], match[2]
        values = self.scope.variables.get(name, ())
        operand = self._operand(node, match.end())
        if operand is None:
            values = None
        elif operator in {":-", "-", ":=", "="}:
            values = None if values is None else tuple(dict.fromkeys((*values, operand)))
            if operator in {":=", "="}:
                self.scope.variables[name] = values
        elif operator in {":?", "?"}:
            values = values or None
        elif operator in {":+", "+"}:
            values = ("", operand)
        else:
            values = modified_values(values or (), operator, operand)
        return values or None

    def _operand(self, node: Node, length: int) -> str | None:
        """Return what follows the operator of an expansion, as marked text; `None` if it is not known."""
        start = node.start_byte + len("${") + length
        parts, at = [], start
        for child in node.children:
            if child.start_byte < start or child.type == "}":
                continue
            parts.append(unquoted(self.source[at : child.start_byte].decode("utf-8", "replace")))
            parts.append(self.piece(child, quoted=False) if child.type in WORDS else self.text(child))
            at = child.end_byte
        parts.append(self.source[at : node.end_byte - 1].decode("utf-8", "replace"))
        text = "".join(parts)
        return None if OPEN in text else text.replace(EMPTY, "")

    def walk_substitutions(self, node: Node) -> None:
        """Walk the substitutions inside a node."""
        for child in node.children:
            if child.type in {"command_substitution", "process_substitution"}:
                self.subshell(child)
            elif child.child_count:
                self.walk_substitutions(child)


def _printed(output: Output | None, source: str, *, quoted: bool) -> str:
    if output is None or output.is_prefix or not output.words:
        return unknown(source)
    return expand_values(tuple(map(as_value, output.words)), quoted=quoted)
