"""Analyses redirections: the files that they open, the input that a command gets, and the text that it writes.

Knows the words of redirections, but not what the redirected commands do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._syntax import words_of
from fairlead.policy.bash._words import is_unknown, plain, unescape
from fairlead.policy.bash.programs._calls import Access
from fairlead.policy.bash.shell._scope import Input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from fairlead.policy.bash._collector import Collector
    from fairlead.policy.bash._expansion import WordExpander
    from fairlead.policy.bash._recursion import ScriptAnalyser
    from fairlead.policy.bash._syntax import Source
    from fairlead.policy.bash.scripts._files import CommandFiles
    from fairlead.policy.bash.shell._scope import Scope

_SUBSTITUTION: Final = re.compile(r"\$\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|`([^`]*)`")
_is_plain_output: Final = re.compile(rb"\d*>(?:&\d+|[>|]?[ \t]*([\w./:@%+,-]+))").fullmatch
"""Whether a redirection is `2>&1`, or writes to a file with a literal name: nearly all are."""
_is_number: Final = re.compile(r"\d+-?|-").fullmatch
_PRINTS: Final = frozenset({"cat", "echo", "printf"})


class RedirectAnalyser:
    """Analyses the redirections of one script. Raises what `WordExpander` and `ScriptAnalyser` raise."""

    def __init__(
        self,
        source: Source,
        words: WordExpander,
        scope: Scope,
        collector: Collector,
        *,
        files: CommandFiles | None,
        scripts: ScriptAnalyser,
    ) -> None:
        self._source = source
        self._words = words
        self._scope = scope
        self._collector = collector
        self._files = files
        self._scripts = scripts

    def analyse_redirects(self, redirects: list[Node], stdin: Input) -> Input:
        """Collect the files of redirections; return the input of the command, as `read_input` does."""
        self.collect_files(redirects)
        return self.read_input(redirects, stdin)

    def read_input(self, redirects: Iterable[Node], stdin: Input) -> Input:
        """Return the input of a command with redirections; its `words` are the arguments that follow a redirection.

        `stdin` is the input that the command has without the redirections.
        """
        text, piped, words, output, file = stdin.text, stdin.piped, list(stdin.words), stdin.output, stdin.file
        for redirect in redirects:
            kind = redirect.type
            if kind == "herestring_redirect":
                text = plain(self._words.expand_word(redirect.children[1:]))
            elif kind == "heredoc_redirect":
                text = self.read_heredoc(redirect)
                words += words_of(redirect)
            elif not _is_plain_output(self._source.data[redirect.start_byte : redirect.end_byte]):
                target, *rest = self._source.group_words(words_of(redirect)) or [[]]
                words += [node for group in rest for node in group]
                if any(child.type == "<" for child in redirect.children):
                    text, piped = None, any(node.type == "process_substitution" for node in target)
                    output = self._words.process_output if piped else None
                    file = None if piped else next(iter(self._words.expand_words(target)), None)
        self._words.process_output = None
        return Input(text, piped, tuple(words), output, file)

    def read_heredoc(self, node: Node) -> str:
        """Return the text of a here-document; analyse the commands in that text, unless its delimiter is quoted."""
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        text = "" if body is None else self._source.text_of(body)
        if start is not None and not re.search(r"['\"\\]", self._source.text_of(start)):
            self._analyse_substitutions(text)
        return text

    def _analyse_substitutions(self, text: str) -> None:
        """Analyse the commands in a here-document; the parser does not find all of them."""
        unescaped = re.sub(r"\\.", "", text) if "\\" in text else text
        if "$(" not in unescaped and "`" not in unescaped:
            return
        for dollar, backtick in _SUBSTITUTION.findall(unescaped):
            self._scripts.analyse_script(dollar or backtick, same_shell=False)
        if "$(" in _SUBSTITUTION.sub("", unescaped):
            self._collector.add_unknown("a command in a here-document cannot be parsed")

    def collect_files(self, redirects: Iterable[Node]) -> None:
        """Collect the files of redirections, including those after a here-document."""
        for redirect in redirects:
            if redirect.type == "file_redirect":
                self.collect_file(redirect)
            else:
                self.collect_files(redirect.children)

    def collect_file(self, node: Node) -> None:
        """Collect the file of one redirection."""
        output = _is_plain_output(self._source.data[node.start_byte : node.end_byte])
        if output:
            if output[1]:
                self._collector.add_access(Access("write", output[1].decode()), ">", self._scope.folders)
            return
        targets = self._source.group_words(words_of(node))
        signs = {child.type for child in node.children}
        if not targets or (signs & {">&", "<&"} and _is_number(self._source.text_of(targets[0][0]))):
            return
        for word in self._words.expand_words(targets[0]):
            if "<" in signs:
                self._collector.add_access(Access("read", word), "<", self._scope.folders)
            if "<" not in signs or "ERROR" in signs:
                self._collector.add_access(Access("write", word), ">", self._scope.folders)

    def record_output(self, body: Node | None, redirects: list[Node], stdin: Input) -> None:
        """Record the text that `cat`, `echo` or `printf` write to files, because a later command may run them.

        The text of any other command, or of no command (`body` is `None`), is recorded as not known.
        """
        while body is not None and body.type == "list":
            body = body.children[-1]
        text = None
        if body is not None and body.type == "command" and self._source.text_of(body.children[0]) in _PRINTS:
            text = _printed(self._words.expand_words(words_of(body)), stdin.text)
        for redirect in _file_outputs(redirects):
            added = any(child.type == ">>" for child in redirect.children)
            for target in self._words.expand_words(words_of(redirect)[:1]):
                if self._files is not None:
                    self._files.record_text(target, text, added=added)


def _file_outputs(redirects: Iterable[Node]) -> Iterator[Node]:
    """Yield the redirections of output to a file, including those after a here-document."""
    for redirect in redirects:
        if redirect.type == "file_redirect" and any(child.type in {">", ">>", ">|"} for child in redirect.children):
            yield redirect
        elif redirect.type == "heredoc_redirect":
            yield from _file_outputs(redirect.children)


def _printed(words: list[str], stdin: str | None) -> str | None:
    """Return the text that a command of `_PRINTS` prints; `None` if it is only known when it runs."""
    if any(map(is_unknown, words)):
        return None
    program, args = words[0], [plain(word) for word in words[1:]]
    if program == "cat":
        return stdin if not args or args == ["-"] else None
    if program == "printf":
        return _formatted(args)
    while args and re.fullmatch(r"-[neE]+", args[0]):
        args = args[1:]
    return unescape(" ".join(args)) + "\n"


def _formatted(args: list[str]) -> str:
    """Return the text that `printf` prints for a format and its arguments: `['%s-%s', 'a', 'b']` → `a-b`."""
    if not args:
        return ""
    values = iter([*args[1:]])
    parts = re.split(r"%[-\d.]*[sbdiq]", unescape(args[0]))
    text = parts[0] + "".join(next(values, "") + part for part in parts[1:])
    return text + "".join(value + parts[-1] for value in values)
