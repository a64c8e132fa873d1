"""From nodes of the tree to words: quotes removed, variables and braces expanded, substitutions walked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from fairlead.policy.bash._collector import HERE, Place
from fairlead.policy.bash._words import NOTHING, ansi_c, bare, expand, fields, in_quotes, quote, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    Kept: TypeAlias = tuple[
        tuple[Place, ...],
        tuple[Place, ...] | None,
        list[tuple[Place, ...]],
        dict[str, tuple[str, ...] | None],
        bool,
    ]
    """What a shell knew before another began."""

WORDS: Final = frozenset(
    {
        "$", "ansi_c_string", "arithmetic_expansion", "brace_expression", "command_name", "command_substitution",
        "concatenation", "expansion", "extglob_pattern", "number", "process_substitution", "raw_string", "regex",
        "simple_expansion", "string", "test_operator", "translated_string", "word",
    }
)  # fmt: skip
"""Nodes that are words or parts of words."""

_LIVE: Final = {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}
_is_simple: Final = re.compile(rb"[!#-&(-Z^-z|~]+").fullmatch
"""Whether source is its own value: no quote, no backslash, no brackets, no braces."""
_PLAIN: Final = re.sub(rb"[^\w./:=@%+,*?~^ \t-]", b"", bytes(range(128)))
"""What a command without quotes is made of, if its words are their own values."""
_IN_ARGUMENTS: Final = frozenset("=*?^")
"""Characters that mean more in the first word than in the others."""
_is_plain_command: Final = re.compile(
    rb"""[\w./:@%+,~-]+(?:[ \t]+(?:[\w./:=@%+,*?~^-]+|"[^"$`\\]*"|'[^']*'))*"""
).fullmatch
"""Whether a command is words and whole quoted words alone: nothing to expand, and no assignment before it."""
_TOKENS: Final = re.compile(r"""[^\s"']+|"[^"]*"|'[^']*'""")
_NUMBERS: Final = dict.fromkeys(("?", "$", "#", "!", "RANDOM", "SECONDS", "UID", "EUID", "LINENO", "PPID"), ("*",))
_GIVEN: Final[dict[str, tuple[str, ...]]] = {"HOME": ("~",), "PWD": (".",), **_NUMBERS}
"""What the shell itself sets: two folders in symbols, and numbers, of which any pattern is a fair picture."""
_PRINTED: Final = (
    (re.compile(r"pwd(?: -[LP])?"), "."),
    (re.compile(r"date(?: -u)?(?: ['\"]?\+[%\w:-]+['\"]?)?|nproc|id -u|git rev-parse (?:--short )?HEAD"), "*"),
    (re.compile(r"mktemp(?: -[dq]+)?"), "/tmp/*"),  # noqa: S108  # what mktemp prints
)
"""Commands whose output is known well enough to be part of a path."""
_PARAMETER: Final = re.compile(r"([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[@*\d]+\])?")
_SETTING: Final = re.compile(r"([A-Za-z_]\w*):?=")


class Scope:
    """What a shell knows while it runs: its folder and its variables."""

    def __init__(self) -> None:
        self.places: tuple[Place, ...] = HERE
        self.previous: tuple[Place, ...] | None = None
        self.stack: list[tuple[Place, ...]] = []
        self.variables: dict[str, tuple[str, ...] | None] = {}
        """The values that each may have; `None` if only the running shell knows."""
        self.entered: str | None = None
        """The folder of the last `cd`."""
        self.sure = True
        """Whether the statement is certainly reached: an assignment then replaces what was there."""
        self.statements = 0

    def fork(self) -> Kept:
        """Begin a shell of its own; what was known before it is for `back`."""
        kept = self.places, self.previous, self.stack, self.variables, self.sure
        self.stack, self.variables = list(self.stack), dict(self.variables)
        return kept

    def back(self, kept: Kept) -> None:
        """Forget what was set since, and where `cd` led."""
        self.places, self.previous, self.stack, self.variables, self.sure = kept


class Expander:
    """Gives the words of one text; a subclass walks the commands inside them."""

    def __init__(self, source: bytes, scope: Scope) -> None:
        self.source = source
        self.scope = scope

    def apart(self, node: Node) -> None:
        """Walk the commands inside a substitution."""
        raise NotImplementedError

    def text(self, node: Node) -> str:
        """The source of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def plain_words(self, node: Node) -> list[str] | None:
        """The words of a command in which nothing is expanded, without a look at the tree: the fast road."""
        source = self.source[node.start_byte : node.end_byte]
        if not source.translate(None, _PLAIN):
            words = source.decode().split()
            return words if words and _IN_ARGUMENTS.isdisjoint(words[0]) else None
        if not _is_plain_command(source):
            return None
        tokens = _TOKENS.findall(source.decode("utf-8", "replace"))
        return [quote(token[1:-1]).replace(NOTHING, "") if token[0] in "'\"" else token for token in tokens]

    def words(self, nodes: Iterable[Node]) -> list[str]:
        """The words that these nodes make; nodes without a blank between them are one word."""
        found: list[str] = []
        for group in self.groups(nodes):
            if len(group) == 1:
                source = self._literal(group[0])
                if source is not None:
                    found.append(source.decode())
                    continue
            found += fields("".join([self.piece(node, quoted=False) for node in group]))
        return found

    def _literal(self, node: Node) -> bytes | None:
        """The source of a word that means itself: most do, and they are the fast road."""
        if node.type == "command_name":
            node = node.children[0]
        if node.type not in {"word", "number"}:
            return None
        source = self.source[node.start_byte : node.end_byte]
        return source if _is_simple(source) else None

    def groups(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """The nodes of each word: between two words is a blank, and not only a broken line."""
        found: list[list[Node]] = []
        end = -1
        for node in nodes:
            start = node.start_byte
            if found and (start == end or not self.source[end:start].replace(b"\\\n", b"")):
                found[-1].append(node)
            else:
                found.append([node])
            end = node.end_byte
        return found

    def joined(self, nodes: Iterable[Node]) -> str:
        """These nodes as one word that is neither split nor expanded by braces."""
        return "".join([self.piece(node, quoted=False) for node in nodes]).replace(NOTHING, "")

    def piece(self, node: Node, *, quoted: bool) -> str:
        """One part of a word."""
        text = self.text(node)
        match node.type:
            case "word" | "number":
                value = bare(text)
            case "raw_string":
                value = quote(text[1:-1])
            case "ansi_c_string":
                value = ansi_c(text[2:-1])
            case "string" | "translated_string":
                value = self._string(node)
            case "concatenation" | "command_name":
                value = "".join([self.piece(child, quoted=quoted) for child in node.children])
            case "$":  # `$"…"` is a text to translate; alone it is a dollar
                value = "" if self.source[node.end_byte : node.end_byte + 1] == b'"' else text
            case kind:
                value = self._expansion(node, kind, text, quoted=quoted)
        return value

    def _string(self, node: Node) -> str:
        """Between double quotes; the parser drops some blanks, so the text comes from the source."""
        if node.type == "translated_string":
            node = node.children[-1]
        at, parts = node.start_byte + 1, []
        for child in node.children:
            if child.type in _LIVE:
                parts += [self._quoted(at, child.start_byte), self.piece(child, quoted=True)]
                at = child.end_byte
        parts.append(self._quoted(at, node.end_byte - 1))
        return "".join(parts) or NOTHING

    def _quoted(self, start: int, end: int) -> str:
        return in_quotes(self.source[start:end].decode("utf-8", "replace")) if start < end else ""

    def _expansion(self, node: Node, kind: str, text: str, *, quoted: bool) -> str:
        match kind:
            case "simple_expansion":
                value = self._variable(text[1:], text, quoted=quoted)
            case "expansion":
                value = self._parameter(node, text, quoted=quoted)
            case "command_substitution":
                self.apart(node)
                value = _printed(text)
            case "process_substitution":
                self.apart(node)
                value = "/dev/fd/63"
            case "arithmetic_expansion":
                self.inside(node)
                value = "*"
            case "extglob_pattern" if "(" in text:
                value = unknown(text)
            case _:
                value = bare(text)
        return value

    def _variable(self, name: str, source: str, *, quoted: bool) -> str:
        variables = self.scope.variables
        values = variables.get(name, ()) if name in variables else _GIVEN.get(name)
        if not values or (not quoted and "IFS" in variables):
            return unknown(source)
        return expand(values, quoted=quoted)

    def _parameter(self, node: Node, text: str, *, quoted: bool) -> str:
        self.inside(node)
        inner = text[2:-1]
        match = _PARAMETER.fullmatch(inner)
        if match is not None:
            return self._variable(match[1], text, quoted=quoted)
        setting = _SETTING.match(inner)
        if setting is not None:
            self.scope.variables[setting[1]] = None
        return "*" if inner[:1] == "#" else unknown(text)

    def inside(self, node: Node) -> None:
        """Walk the substitutions below a node."""
        for child in node.children:
            if child.type in {"command_substitution", "process_substitution"}:
                self.apart(child)
            elif child.child_count:
                self.inside(child)


def _printed(source: str) -> str:
    inner = source[2:-1] if source[:2] == "$(" else source[1:-1]
    for pattern, value in _PRINTED:
        if pattern.fullmatch(inner.strip()):
            return value
    return unknown(source)
