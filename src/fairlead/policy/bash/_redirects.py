"""Analyses redirections: the files that they open, and the text of here-documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._builtins import NO_INPUT, Input
from fairlead.policy.bash._commands import CommandAnalyser
from fairlead.policy.bash._expansion import WORDS
from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import Access

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

_SUBSTITUTION: Final = re.compile(r"\$\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|`([^`]*)`")
_is_plain_output: Final = re.compile(rb"\d*>(?:&\d+|[>|]?[ \t]*([\w./:@%+,-]+))").fullmatch
"""Whether a redirection is `2>&1`, or writes to a file with a literal name: nearly all are."""
_is_number: Final = re.compile(r"\d+-?|-").fullmatch


class RedirectAnalyser(CommandAnalyser):
    """Analyses redirections."""

    def redirected(self, redirects: list[Node], stdin: Input) -> Input:
        """Collect the files of redirections; return the input of the command."""
        self.redirect_all(redirects)
        return self.input(redirects, stdin)

    def input(self, redirects: Iterable[Node], stdin: Input) -> Input:
        """Return the input of a command with redirections, and the arguments that follow them."""
        text, piped, words, output, file = stdin.text, stdin.piped, list(stdin.words), stdin.output, stdin.file
        for redirect in redirects:
            kind = redirect.type
            if kind == "herestring_redirect":
                text = plain(self.joined(redirect.children[1:]))
            elif kind == "heredoc_redirect":
                text = self.heredoc(redirect)
                words += [child for child in redirect.children if child.type in WORDS]
            elif not _is_plain_output(self.source[redirect.start_byte : redirect.end_byte]):
                target, *rest = self.groups(child for child in redirect.children if child.type in WORDS) or [[]]
                words += [node for group in rest for node in group]
                if any(child.type == "<" for child in redirect.children):
                    text, piped = None, any(node.type == "process_substitution" for node in target)
                    output = self.process_output if piped else None
                    file = None if piped else next(iter(self.words(target)), None)
        self.process_output = None
        return Input(text, piped, tuple(words), output, file)

    def heredoc(self, node: Node) -> str:
        """Return the text of a here-document; walk the commands in it."""
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        text = "" if body is None else self.text(body)
        if start is not None and not re.search(r"['\"\\]", self.text(start)):
            self._substitutions(text)
        return text

    def _substitutions(self, text: str) -> None:
        """Walk the commands in a here-document; the parser does not find all of them."""
        unescaped = re.sub(r"\\.", "", text) if "\\" in text else text
        if "$(" not in unescaped and "`" not in unescaped:
            return
        for dollar, backtick in _SUBSTITUTION.findall(unescaped):
            self.script(dollar or backtick, same_shell=False)
        if "$(" in _SUBSTITUTION.sub("", unescaped):
            self.collector.add_unknown("a command in a here-document cannot be parsed")

    def redirect_all(self, redirects: Iterable[Node]) -> None:
        """Collect the files of redirections, including those after a here-document."""
        for redirect in redirects:
            if redirect.type == "file_redirect":
                self.redirect(redirect, NO_INPUT)
            else:
                self.redirect_all(redirect.children)

    def redirect(self, node: Node, _: Input) -> None:
        """Collect the file of a redirection."""
        output = _is_plain_output(self.source[node.start_byte : node.end_byte])
        if output:
            if output[1]:
                self.collector.add_access(Access("write", output[1].decode()), ">", self.scope.folders)
            return
        targets = self.groups(child for child in node.children if child.type in WORDS)
        signs = {child.type for child in node.children}
        if not targets or (signs & {">&", "<&"} and _is_number(self.text(targets[0][0]))):
            return
        for word in self.words(targets[0]):
            if "<" in signs:
                self.collector.add_access(Access("read", word), "<", self.scope.folders)
            if "<" not in signs or "ERROR" in signs:
                self.collector.add_access(Access("write", word), ">", self.scope.folders)
