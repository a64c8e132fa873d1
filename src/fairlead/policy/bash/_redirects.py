"""Redirections: the files they open, and the text that here-documents give a command to read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._commands import NO_INPUT, Commands, Input
from fairlead.policy.bash._expansion import WORDS
from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import Use

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

_SUBSTITUTION: Final = re.compile(r"\$\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|`([^`]*)`")
_is_plain_output: Final = re.compile(rb"\d*>(?:&\d+|[>|]?[ \t]*([\w./:@%+,-]+))").fullmatch
"""Whether a redirection is `2>&1`, or puts out to a file whose name is its own value: nearly all are."""
_is_number: Final = re.compile(r"\d+-?|-").fullmatch


class Redirects(Commands):
    """Knows what redirections open."""

    def redirected(self, redirects: list[Node], given: Input) -> Input:
        """Note the files of redirections, and give what the command reads."""
        self.redirect_all(redirects)
        return self.input(redirects, given)

    def input(self, redirects: Iterable[Node], given: Input) -> Input:
        """What the redirections give a command to read, and the words that stand behind them."""
        text, piped, words = given.text, given.piped, list(given.words)
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
        return Input(text, piped, tuple(words))

    def heredoc(self, node: Node) -> str:
        """The text of a here-document; commands inside it are walked."""
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        text = "" if body is None else self.text(body)
        if start is not None and not re.search(r"['\"\\]", self.text(start)):
            self._substitutions(text)
        return text

    def _substitutions(self, text: str) -> None:
        """Commands in a here-document; the parser does not find them all."""
        live = re.sub(r"\\.", "", text) if "\\" in text else text
        if "$(" not in live and "`" not in live:
            return
        for dollar, backtick in _SUBSTITUTION.findall(live):
            self.script(dollar or backtick, same_shell=False)
        if "$(" in _SUBSTITUTION.sub("", live):
            self.record.doubt("a command inside a here-document is not understood")

    def redirect_all(self, redirects: Iterable[Node]) -> None:
        """Note the files of redirections, those behind a here-document too."""
        for redirect in redirects:
            if redirect.type == "file_redirect":
                self.redirect(redirect, NO_INPUT)
            else:
                self.redirect_all(redirect.children)

    def redirect(self, node: Node, _: Input) -> None:
        """Note the file of one redirection."""
        output = _is_plain_output(self.source[node.start_byte : node.end_byte])
        if output:
            if output[1]:
                self.record.use(Use("write", output[1].decode()), ">", self.scope.places)
            return
        targets = self.groups(child for child in node.children if child.type in WORDS)
        signs = {child.type for child in node.children}
        if not targets or (signs & {">&", "<&"} and _is_number(self.text(targets[0][0]))):
            return
        for word in self.words(targets[0]):
            if "<" in signs:
                self.record.use(Use("read", word), "<", self.scope.places)
            if "<" not in signs or "ERROR" in signs:
                self.record.use(Use("write", word), ">", self.scope.places)
