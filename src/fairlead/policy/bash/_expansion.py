"""Expands nodes of the syntax tree to words: quotes, variables, braces, substitutions.

Knows the variables of the shell, but neither the commands that the words belong to nor what they do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._syntax import WORDS
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

    from fairlead.policy.bash._recursion import SubstitutionAnalyser
    from fairlead.policy.bash._syntax import Source
    from fairlead.policy.bash.shell._scope import Scope

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


class WordExpander:
    """Expands the words of one script to marked text (see `_words`).

    Its methods analyse the substitutions in the words, so they raise what `SubstitutionAnalyser` raises. Those that
    return several words raise `TooManyWords` as well.
    """

    def __init__(self, source: Source, scope: Scope, commands: SubstitutionAnalyser) -> None:
        self.process_output: Output | None = None
        """The output of the last `<(…)`; `None` if it is not known."""
        self._source = source
        self._scope = scope
        self._commands = commands

    def split_command(self, node: Node) -> list[str] | None:
        """Return the words of a command without expansions, faster than from the tree; `None` for any other command."""
        source = self._source.data[node.start_byte : node.end_byte]
        if not source.translate(None, _PLAIN):
            words = source.decode().split()
            return words if words and _IN_ARGUMENTS.isdisjoint(words[0]) else None
        if not _is_plain_command(source):
            return None
        tokens = _TOKENS.findall(source.decode("utf-8", "replace"))
        return [quote(token[1:-1]).replace(EMPTY, "") if token[0] in "'\"" else token for token in tokens]

    def expand_words(self, nodes: Iterable[Node]) -> list[str]:
        """Return the words that some nodes expand to. Nodes without a blank between them are expanded together."""
        words: list[str] = []
        for group in self._source.group_words(nodes):
            if len(group) == 1:
                source = self._literal(group[0])
                if source is not None:
                    words.append(source.decode())
                    continue
            words += split_fields(self._expand_group(group))
        return words

    def _literal(self, node: Node) -> bytes | None:
        """Return the source of a word without expansions, as most words are; `None` for any other."""
        if node.type == "command_name":
            node = node.children[0]
        if node.type not in {"word", "number"}:
            return None
        source = self._source.data[node.start_byte : node.end_byte]
        return source if _is_simple(source) else None

    def expand_word(self, nodes: Iterable[Node]) -> str:
        """Return the expansion of some nodes as one word, without splitting or brace expansion."""
        return self._expand_group(list(nodes)).replace(EMPTY, "")

    def _expand_group(self, nodes: list[Node]) -> str:
        """Return the expansion of adjacent nodes as one marked text.

        A `$` that the parser has split from its name, as in `$a/$b.c`, is joined to it again.
        """
        source = self._source
        parts: list[str] = []
        for node in nodes:
            start = node.start_byte
            if node.type == "word" and parts and parts[-1][-1:] == "$" and source.data[start - 2 : start] != b"\\$":
                parts[-1] = parts[-1][:-1]
                parts.append(self._expand_literal("$" + source.text_of(node), quoted=False))
            else:
                parts.append(self.expand_part(node, quoted=False))
        return "".join(parts)

    def expand_part(self, node: Node, *, quoted: bool) -> str:
        """Return the expansion of one part of a word as marked text. `quoted`: it is in double quotes."""
        text = self._source.text_of(node)
        match node.type:
            case "word" | "number":
                value = self._expand_literal(text, quoted=quoted) if "$" in text else unquoted(text)
            case "raw_string":
                value = quote(text[1:-1])
            case "ansi_c_string":
                value = ansi_c(text[2:-1])
            case "string" | "translated_string":
                value = self._expand_string(node)
            case "concatenation" | "command_name":
                value = "".join([self.expand_part(child, quoted=quoted) for child in node.children])
            case "$":  # `$"…"` is a text to translate; any other `$` is literal
                value = "" if self._source.data[node.end_byte : node.end_byte + 1] == b'"' else text
            case kind:
                value = self._expand_expression(node, kind, text, quoted=quoted)
        return value

    def _expand_literal(self, text: str, *, quoted: bool) -> str:
        """Return the expansion of a word that is literal to the parser, but may contain variables: `$b` in `$a/$b`."""
        return "".join(
            [
                self._expand_variable(match[1], match[0], quoted=quoted) if match[1] else unquoted(match[0])
                for match in _VARIABLE_IN_WORD.finditer(text)
            ]
        )

    def _expand_string(self, node: Node) -> str:
        """Return the expansion of a text in double quotes, read from the source: the parser drops some blanks."""
        if node.type == "translated_string":
            node = node.children[-1]
        at, parts = node.start_byte + 1, []
        for child in node.children:
            if child.type in _EXPANSIONS:
                parts += [self._expand_quoted(at, child.start_byte), self.expand_part(child, quoted=True)]
                at = child.end_byte
        parts.append(self._expand_quoted(at, node.end_byte - 1))
        return "".join(parts) or EMPTY

    def _expand_quoted(self, start: int, end: int) -> str:
        return double_quoted(self._source.text_between(start, end)) if start < end else ""

    def _expand_expression(self, node: Node, kind: str, text: str, *, quoted: bool) -> str:
        match kind:
            case "simple_expansion":
                value = self._expand_variable(text[1:], text, quoted=quoted)
            case "expansion":
                value = self._expand_parameter(node, text, quoted=quoted)
            case "command_substitution":
                value = _output_values(self._commands.analyse_substitution(node), text, quoted=quoted)
            case "process_substitution":
                self.process_output = self._commands.analyse_substitution(node)
                value = "/dev/fd/63"
            case "arithmetic_expansion":
                self.analyse_substitutions(node)
                value = NUMBER
            case "extglob_pattern" if "(" in text:
                value = unknown(text)
            case _:
                value = unquoted(text)
        return value

    def _expand_variable(self, name: str, source: str, *, quoted: bool) -> str:
        variables = self._scope.variables
        values = variables.get(name, ()) if name in variables else _PRESET.get(name)
        if not values or (not quoted and "IFS" in variables):
            return unknown(source)
        return expand_values(values, quoted=quoted)

    def _expand_parameter(self, node: Node, text: str, *, quoted: bool) -> str:
        self.analyse_substitutions(node)
        inner = text[2:-1]
        match = _PARAMETER.fullmatch(inner)
        if match is not None:
            return self._expand_variable(match[1], text, quoted=quoted)
        if inner[:1] == "#":
            return NUMBER
        values = self._modify_values(node, inner)
        return unknown(text) if values is None else expand_values(values, quoted=quoted)

    def _modify_values(self, node: Node, inner: str) -> tuple[str, ...] | None:
        """Return the values of `${name%.py}`, `${name:-default}` and others; `None` if they are not known.

        `inner` is the text in the braces. For `${name:=default}`, the values are also assigned to the variable.
        """
        match = _MODIFIED.match(inner)
        if match is None:
            return None
        name, operator = match[1], match[2]
        values = self._scope.variables.get(name, ())
        operand = self._expand_operand(node, match.end())
        if operand is None:
            values = None
        elif operator in {":-", "-", ":=", "="}:
            values = None if values is None else tuple(dict.fromkeys((*values, operand)))
            if operator in {":=", "="}:
                self._scope.variables[name] = values
        elif operator in {":?", "?"}:
            values = values or None
        elif operator in {":+", "+"}:
            values = ("", operand)
        else:
            values = modified_values(values or (), operator, operand)
        return values or None

    def _expand_operand(self, node: Node, length: int) -> str | None:
        """Return what follows the operator of an expansion, as marked text; `None` if it is not known.

        `length` is the length of the name and the operator.
        """
        start = node.start_byte + len("${") + length
        parts, at = [], start
        for child in node.children:
            if child.start_byte < start or child.type == "}":
                continue
            parts.append(unquoted(self._source.text_between(at, child.start_byte)))
            parts.append(self.expand_part(child, quoted=False) if child.type in WORDS else self._source.text_of(child))
            at = child.end_byte
        parts.append(self._source.text_between(at, node.end_byte - 1))
        text = "".join(parts)
        return None if OPEN in text else text.replace(EMPTY, "")

    def analyse_substitutions(self, node: Node) -> None:
        """Analyse the substitutions below a node."""
        for child in node.children:
            if child.type in {"command_substitution", "process_substitution"}:
                self._commands.analyse_subshell(child)
            elif child.child_count:
                self.analyse_substitutions(child)


def _output_values(output: Output | None, source: str, *, quoted: bool) -> str:
    if output is None or output.is_prefix or not output.words:
        return unknown(source)
    return expand_values(tuple(map(as_value, output.words)), quoted=quoted)
