"""Simple commands: their words, what they set in the shell, and what their programs do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._collector import NOWHERE, enter, join, path_of
from fairlead.policy.bash._expansion import WORDS, Expander, Scope
from fairlead.policy.bash._types import Simple
from fairlead.policy.bash._words import is_glob, is_unknown, plain, store
from fairlead.policy.bash.programs._calls import Call, Effect, Run, Script, Use, basename
from fairlead.policy.bash.programs._table import PROGRAMS, any_program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from fairlead.policy.bash._collector import Collector

_VERSION: Final = re.compile(r"[\d.]+$")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=(.*)", re.DOTALL)
_SETTERS: Final = {"read", "mapfile", "readarray", "getopts", "printf", "let", "unset", "wait"}
_ENTERING: Final = frozenset({"cd", "pushd", "chdir"})
_OWN: Final = _ENTERING | _SETTERS | {"popd", "source", "."}
"""Commands that change the shell itself."""
_SAME_SHELL: Final = {"eval", "trap"}
_MOST_VALUES: Final = 64
_DEEPEST_RUN: Final = 12
REDIRECTS: Final = {"file_redirect", "heredoc_redirect", "herestring_redirect"}


class TooMuch(Exception):
    """The command is larger than anybody means."""


class Input(NamedTuple):
    """What a command reads, and words that the parser found behind a redirection."""

    text: str | None = None
    piped: bool = False
    words: tuple[Node, ...] = ()


NO_INPUT: Final = Input()


class Commands(Expander):
    """Knows what a simple command does; a subclass walks the scripts inside it."""

    def __init__(self, source: bytes, record: Collector, scope: Scope) -> None:
        super().__init__(source, scope)
        self.record = record
        self.runs = 0

    def script(self, text: str, *, same_shell: bool) -> None:
        """Walk a text that the command runs as a script."""
        raise NotImplementedError

    def statement(self, node: Node, given: Input = NO_INPUT) -> None:
        """Walk any statement."""
        raise NotImplementedError

    def redirected(self, redirects: list[Node], given: Input) -> Input:
        """Note the files of redirections, and give what the command reads."""
        raise NotImplementedError

    def command(self, node: Node, given: Input) -> None:
        """One simple command, with assignments and redirections before and after it."""
        words = self.plain_words(node)
        if words is None:
            self._expanded(node, given)
        else:
            self.call(words + self.words(given.words) if given.words else words, given)

    def _expanded(self, node: Node, given: Input) -> None:
        words, redirects, assignments = [], [], []
        for child in node.children:
            kind = child.type
            if kind in WORDS:
                words.append(child)
            elif kind in REDIRECTS:
                redirects.append(child)
            elif kind == "variable_assignment":
                assignments.append(child)
            elif kind == "ERROR":
                words += [inner for inner in child.children if inner.type in WORDS]
            elif child.child_count:  # `time (…)`: to the parser, an argument
                self.statement(child)
        if redirects:
            given = self.redirected(redirects, given)
        if not assignments:
            self.call(self.words([*words, *given.words]), given)
            return
        kept = self.scope.variables
        self.scope.variables = dict(kept)
        for assignment in assignments:
            self.assignment(assignment, given)
        self.call(self.words([*words, *given.words]), given)
        self.scope.variables = kept

    def call(self, words: list[str], given: Input) -> None:
        """Run the words, as far as that can be thought."""
        if not words:
            return
        program = words[0]
        self.record.commands.append(Simple(tuple(words if "".join(words).isascii() else map(plain, words))))
        handler = PROGRAMS.get(program)
        args = words[1:]
        if handler is None:
            if is_unknown(program) or is_glob(program):
                if plain(program) not in {"[", "[["}:
                    self.record.doubt(f"which program runs is only known when it runs: {plain(program)}")
                return
            program = basename(plain(program))
            handler = PROGRAMS.get(program)
        if program in _OWN:
            self._in_shell(program, args)
        if handler is None and program[-1:].isdigit():
            program = _VERSION.sub("", program)
            handler = PROGRAMS.get(program)
        effects = (handler or any_program)(Call(program, args, given.text, given.piped))
        if effects:
            self._effects(effects, program, given)

    def _effects(self, effects: Iterable[Effect], program: str, given: Input) -> None:
        for effect in effects:
            if isinstance(effect, Use):
                self.record.use(effect, program, self.scope.places)
            elif isinstance(effect, Run):
                self._run(effect, given)
            elif isinstance(effect, Script):
                self.script(effect.text, same_shell=program in _SAME_SHELL)
            else:
                self.record.doubt(effect.text)

    def _run(self, run: Run, given: Input) -> None:
        self.runs += 1
        if self.runs > _DEEPEST_RUN:
            raise TooMuch
        kept = self.scope.fork()
        if run.folder is not None:
            self.scope.places = enter(self.scope.places, run.folder)
        self.call(run.words, given)
        self.scope.back(kept)
        self.runs -= 1

    def _in_shell(self, program: str, args: list[str]) -> None:
        """What the shell's own commands change in it."""
        if program in _ENTERING:
            self._enter(
                [arg for arg in args if arg == "-" or not arg.startswith(("-", "+"))], pushed=program == "pushd"
            )
        elif program == "popd":
            self.scope.places = self.scope.stack.pop() if self.scope.stack else NOWHERE
        elif program in _SETTERS:
            self._forget(args)
        elif program in {"source", "."}:
            self._forget(list(self.scope.variables))

    def _enter(self, targets: list[str], *, pushed: bool) -> None:
        scope, before = self.scope, self.scope.places
        if pushed:
            scope.stack.append(before)
        target = targets[0] if targets else "~"
        if target == "-":
            scope.places = scope.previous or NOWHERE
        else:
            scope.places = enter(before, target)
            scope.entered = join(before[0].folder, path_of(target)) if len(before) == 1 else None
        scope.previous = before

    def _forget(self, names: list[str]) -> None:
        for name in names:
            if plain(name).isidentifier():
                self.scope.variables[plain(name)] = None

    def assignment(self, node: Node, _: Input) -> None:
        """`NAME=value`, remembered if it is known."""
        name = node.children[0]
        self.inside(name)
        while name.type == "subscript":
            name = name.children[0]
        sign, rest = node.children[1].type, node.children[2:]
        if rest and rest[0].type == "array":
            values = self.words([child for child in rest[0].children if child.type in WORDS])
            self._assign(self.text(name), values, added=True if sign == "+=" else None, indexed=True)
        else:
            self._assign(self.text(name), [self.joined(rest)], added=sign == "+=", indexed=node.children[0] != name)

    def _assign(self, name: str, words: list[str], *, added: bool | None, indexed: bool) -> None:
        variables = self.scope.variables
        old = variables.get(name, ())
        new: tuple[str, ...] | None = tuple(map(store, words))
        if any(map(is_unknown, words)) or (added and not indexed and not old):
            new = None
        elif added and not indexed:
            new = tuple(value + text for value in old or () for text in new or ())
        elif (indexed and added is not None) or not self.scope.sure:
            new = None if old is None else tuple(dict.fromkeys(old + (new or ())))
        variables[name] = new if new is not None and len(new) <= _MOST_VALUES else None

    def declaration(self, node: Node, given: Input) -> None:
        """`export NAME=value`, `declare`, `local`, `readonly`, `unset`."""
        words = [self.text(node.children[0])]
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self.assignment(child, given)
                words.append(self.text(child))
            elif child.type in WORDS:
                words += self.words([child])
            else:
                words.append(self.text(child))
        self.record.commands.append(Simple(tuple(map(plain, words))))
        if words[0] == "unset" or any(word.startswith("-") and "n" in word for word in words):
            self._forget([word.partition("=")[0] for word in words[1:]])
        for match in filter(None, map(_ASSIGNED.fullmatch, words[1:])):
            if match[1] not in self.scope.variables:
                self._assign(match[1], [match[3]], added=match[2] == "+", indexed=False)
