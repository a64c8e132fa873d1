"""Parses a script, and reads its source. Knows the parser and its faults; expands and analyses nothing."""

from __future__ import annotations

import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from tree_sitter import Node

WORDS: Final = frozenset(
    {
        "$", "ansi_c_string", "arithmetic_expansion", "brace_expression", "command_name", "command_substitution",
        "concatenation", "expansion", "extglob_pattern", "number", "process_substitution", "raw_string", "regex",
        "simple_expansion", "string", "test_operator", "translated_string", "word",
    }
)  # fmt: skip
"""Nodes that are words or parts of words."""
REDIRECTS: Final = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
"""Nodes that are redirections."""

_MAX_LENGTH: Final = 64 * 1024
"""The longest text that is passed to the parser, in characters."""
_SLOW: Final = re.compile(r"\||\$\{|<<|`")
_MAX_SLOW: Final = 2_000
"""The maximum number of matches of `_SLOW` in a script. Parsing them takes quadratic time: 50 s for 30 000 pipes."""
_ASCII: Final = bytes(range(128)) + b"u" * 128
_HERE_STRING_LAST: Final = re.compile(rb"""(\d*>{1,2}\s*[\w./~-]+)\s+(<<<\s*(?:'[^']*'|"[^"]*"|[^\s;|&<>]+))""")
"""Matches a here-string after an output redirection, an order that the parser does not know."""


def is_too_long(text: str) -> bool:
    """Return whether the parser would take too long for a text."""
    return len(text) > _MAX_LENGTH or (len(text) > _MAX_SLOW and len(_SLOW.findall(text)) > _MAX_SLOW)


def words_of(node: Node) -> list[Node]:
    """Return the children of a node that are words or parts of words."""
    return [child for child in node.children if child.type in WORDS]


class Source:
    """The source of one script. A node of its tree is valid as long as the script is not parsed again."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "replace")

    def parse(self, read_heredoc: Callable[[Node], str]) -> Node:
        """Parse the script, and return the root of its tree.

        If the parser makes an error, the source may be replaced by another spelling that the parser knows.
        `read_heredoc` returns the text of a here-document, and analyses its commands, which are literal once the text
        has become a here-string.
        """
        root = _parse(self.data)
        if root.has_error and b"<<<" in self.data:
            self.data = _HERE_STRING_LAST.sub(rb"\2 \1", self.data)
            root = _parse(self.data)
        if root.has_error and b"<<" in self.data:
            root = self._parse_with_here_strings(root, read_heredoc)
        return root

    def _parse_with_here_strings(self, root: Node, read_heredoc: Callable[[Node], str]) -> Node:
        """Parse again with each here-document as a here-string, after which the parser makes fewer errors.

        Return the new root, and replace the source; if errors remain, return the old root.
        """
        data = self.data
        for node in reversed(list(_heredocs(root))):
            parts = {child.type: child for child in node.children}
            start, body, end = (parts.get(f"heredoc_{name}") for name in ("start", "body", "end"))
            if start is None or body is None or end is None:
                return root
            text = read_heredoc(node).encode()
            data = data[: body.start_byte] + data[end.end_byte :]
            here = b"<<< '" + text.replace(b"'", b"'\\''") + b"' "
            data = data[: node.start_byte] + here + data[start.end_byte :]
        again = _parse(data)
        if again.has_error:
            return root
        self.data = data
        return again

    def text_of(self, node: Node) -> str:
        """Return the source of a node as text."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def text_between(self, start: int, end: int) -> str:
        """Return the source between two byte offsets as text."""
        return self.data[start:end].decode("utf-8", "replace")

    def group_words(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """Return the nodes of each word. A blank separates words; a backslash at the end of a line does not."""
        groups: list[list[Node]] = []
        end = -1
        for node in nodes:
            start = node.start_byte
            if groups and (start == end or not self.data[end:start].replace(b"\\\n", b"")):
                groups[-1].append(node)
            else:
                groups.append([node])
            end = node.end_byte
        return groups

    def syntax_errors(self, root: Node) -> list[str]:
        """Return descriptions of the parts below a node that cannot be parsed."""
        errors: list[str] = []
        if root.has_error:
            self._add_syntax_errors(root, errors)
        return errors

    def _add_syntax_errors(self, node: Node, errors: list[str]) -> None:
        if node.is_error or node.is_missing:
            around = self.data[max(node.start_byte - 1, 0) : node.end_byte + 1]
            if b"<>" not in around or len(around) > len("x<>x"):  # the parser does not know `<>`
                errors.append(self.syntax_error(node if node.end_byte > node.start_byte else node.parent or node))
                return
        for child in node.children:
            if child.has_error:
                self._add_syntax_errors(child, errors)

    def syntax_error(self, node: Node) -> str:
        """Return the description of a node that cannot be parsed."""
        near = " ".join(self.text_of(node)[:40].split()) or "the end"
        return f"the shell syntax cannot be parsed near: {near}"


def _heredocs(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type == "heredoc_redirect":
            yield child
        yield from _heredocs(child)


def _parse(data: bytes) -> Node:
    """Parse a script.

    For characters above 255 the grammar's scanner reads beyond the end of C's character tables, and may crash. A shell
    treats these characters as letters, so each of their bytes is replaced by a letter.
    """
    return _parser().parse(data if data.isascii() else data.translate(_ASCII)).root_node


@cache
def _parser() -> Parser:
    return Parser(Language(_grammar().language()))


def _grammar() -> ModuleType:
    """Import only the extension module of the grammar: its package takes 11 ms to load queries that are not used.

    Raises `ImportError` if it is not installed.
    """
    package = PathFinder.find_spec("tree_sitter_bash")
    locations = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("tree_sitter_bash._binding", locations)
    if spec is None or spec.loader is None:
        raise ImportError("tree_sitter_bash is not installed")
    binding = module_from_spec(spec)
    spec.loader.exec_module(binding)
    return binding
