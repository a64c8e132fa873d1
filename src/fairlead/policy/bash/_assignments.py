"""Analyses assignments: `NAME=value`, `export NAME=value`, `declare`, `local`, `readonly` and `unset`.

Knows their nodes and words, and which variables they set. What programs do with a variable is known to
`CommandAnalyser`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._syntax import WORDS, words_of
from fairlead.policy.bash._types import SimpleCommand
from fairlead.policy.bash._words import plain

if TYPE_CHECKING:
    from tree_sitter import Node

    from fairlead.policy.bash._collector import Collector
    from fairlead.policy.bash._commands import CommandAnalyser
    from fairlead.policy.bash._expansion import WordExpander
    from fairlead.policy.bash._syntax import Source
    from fairlead.policy.bash.shell._scope import Scope

_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=(.*)", re.DOTALL)
_EXPORTS: Final = frozenset({"export", "declare", "typeset"})


class AssignmentAnalyser:
    """Analyses the assignments of one script. Raises what `WordExpander` and `CommandAnalyser` raise."""

    def __init__(
        self, source: Source, words: WordExpander, scope: Scope, collector: Collector, commands: CommandAnalyser
    ) -> None:
        self._source = source
        self._words = words
        self._scope = scope
        self._collector = collector
        self._commands = commands

    def analyse_assignment(self, node: Node, *, exported: bool = False) -> None:
        """Apply an assignment `NAME=value` to the scope. `exported`: whether programs receive the variable."""
        name = node.children[0]
        self._words.analyse_substitutions(name)
        while name.type == "subscript":
            name = name.children[0]
        sign, rest = node.children[1].type, node.children[2:]
        if rest and rest[0].type == "array":
            values = self._words.expand_words(words_of(rest[0]))
            added = True if sign == "+=" else None
            self._scope.assign(self._source.text_of(name), values, added=added, indexed=True)
        else:
            value = self._words.expand_word(rest)
            if exported:
                self._commands.export_variable(self._source.text_of(name), value)
            indexed = node.children[0] != name
            self._scope.assign(self._source.text_of(name), [value], added=sign == "+=", indexed=indexed)

    def analyse_declaration(self, node: Node) -> None:
        """Apply `export NAME=value`, `declare`, `local`, `readonly` or `unset`, and collect it as a command."""
        words = [self._source.text_of(node.children[0])]
        exports = words[0] in _EXPORTS
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self.analyse_assignment(child, exported=exports)
                words.append(self._source.text_of(child))
            elif child.type in WORDS:
                words += self._words.expand_words([child])
            else:
                words.append(self._source.text_of(child))
        self._collector.add_command(SimpleCommand(tuple(map(plain, words))))
        if words[0] == "unset" or any(word.startswith("-") and "n" in word for word in words):
            self._scope.forget_values([word.partition("=")[0] for word in words[1:]])
        for match in filter(None, map(_ASSIGNED.fullmatch, words[1:])):
            if match[1] not in self._scope.variables:
                self._scope.assign(match[1], [match[3]], added=match[2] == "+", indexed=False)
