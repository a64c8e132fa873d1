"""Applies the builtins that change the shell itself: assignments, `cd`, `read`, `set`, `alias` and others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._collector import UNKNOWN_FOLDERS, change_folder, join_folder, word_path
from fairlead.policy.bash._expansion import WORDS, Expander, Scope
from fairlead.policy.bash._types import SimpleCommand
from fairlead.policy.bash._variables import variable_effects
from fairlead.policy.bash._words import as_value, is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import Effect, parse_options
from fairlead.policy.bash.programs._outputs import Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from fairlead.policy.bash._collector import Collector

_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=(.*)", re.DOTALL)
_SETTERS: Final = {"read", "shift", "set", "alias", "mapfile", "readarray", "getopts", "printf", "let", "unset", "wait"}
_CHANGE_FOLDER: Final = frozenset({"cd", "pushd", "chdir"})
BUILTINS: Final = _CHANGE_FOLDER | _SETTERS | {"popd", "source", "."}
"""Commands that change the shell itself."""
_MAX_VALUES: Final = 64
_MAX_LENGTH: Final = 20_000
"""The maximum number of characters that the values of a variable may have: `x=$x$x` doubles them each time."""


class Input(NamedTuple):
    """The input of a command, and arguments that the parser places after a redirection."""

    text: str | None = None
    piped: bool = False
    words: tuple[Node, ...] = ()
    output: Output | None = None
    """The output of the command before it in the pipeline; `None` if it is not known."""
    file: str | None = None
    """The file that the input is read from."""


NO_INPUT: Final = Input()


class BuiltinAnalyser(Expander):
    """Applies the commands that change the shell itself; a subclass analyses all others."""

    def __init__(self, source: bytes, collector: Collector, scope: Scope) -> None:
        super().__init__(source, scope)
        self.collector = collector

    def apply_effects(self, effects: Iterable[Effect], program: str, stdin: Input = NO_INPUT) -> None:
        """Collect the effects of a program."""
        raise NotImplementedError

    def set_arguments(self, args: Iterable[str]) -> None:
        """Set `$1` and the following, `$@` and `$*`."""
        variables = self.scope.variables
        values = [None if is_unknown(word) else as_value(word) for word in args]
        for name in [name for name in variables if name.isdigit()]:
            del variables[name]
        variables.update({str(index): None if value is None else (value,) for index, value in enumerate(values, 1)})
        known = tuple(value for value in values if value is not None)
        variables["@"] = variables["*"] = known if len(known) == len(values) <= _MAX_VALUES else None

    def apply_builtin(self, program: str, args: list[str], stdin: Input) -> None:
        """Apply a command that changes the shell itself."""
        if program in _CHANGE_FOLDER:
            self._change_folder(
                [arg for arg in args if arg == "-" or not arg.startswith(("-", "+"))], pushed=program == "pushd"
            )
        elif program == "popd":
            self.scope.folders = self.scope.stack.pop() if self.scope.stack else UNKNOWN_FOLDERS
        elif program == "read":
            self._read(args, stdin)
        elif program == "shift":
            self._shift()
        elif program == "alias":
            self._define_aliases(args)
        elif program == "set":
            self.set_arguments(args[args.index("--") + 1 :] if "--" in args else ())
        elif program in _SETTERS:
            self._set_unknown(args)
        elif program in {"source", "."} and self.collector.context is None:
            self._set_unknown(list(self.scope.variables))

    def _change_folder(self, targets: list[str], *, pushed: bool) -> None:
        scope, before = self.scope, self.scope.folders
        if pushed:
            scope.stack.append(before)
        target = targets[0] if targets else "~"
        if target == "-":
            scope.folders = scope.previous or UNKNOWN_FOLDERS
        else:
            scope.folders = change_folder(before, target)
            scope.entered = join_folder(before[0].path, word_path(target)) if len(before) == 1 else None
        scope.previous = before

    def _read(self, args: list[str], stdin: Input) -> None:
        """Apply `read NAME`. The value is known if the input is."""
        names = parse_options(args, "adeinNptu").operands
        self._set_unknown(names or ["REPLY"])
        if stdin.text is not None:
            values = tuple(quote(line.strip()) for line in stdin.text.splitlines() if line.strip())
        else:
            values = stdin.output.words if stdin.output and not stdin.output.is_prefix else ()
        if len(names) <= 1 and 0 < len(values) <= _MAX_VALUES:
            self.scope.variables[plain(names[0]) if names else "REPLY"] = tuple(map(as_value, values))

    def _define_aliases(self, args: list[str]) -> None:
        for name, equals, value in (arg.partition("=") for arg in args):
            if equals and value:
                self.scope.aliases[plain(name)] = plain(value)

    def _shift(self) -> None:
        """Apply `shift`: after it, each positional argument may be any of the arguments."""
        variables = self.scope.variables
        every = variables.get("@")
        variables.update(dict.fromkeys([name for name in variables if name.isdigit()], every))

    def _set_unknown(self, names: list[str]) -> None:
        for name in names:
            if plain(name).isidentifier():
                self.scope.variables[plain(name)] = None

    def assignment(self, node: Node, _: Input, *, exported: bool = False) -> None:
        """Apply `NAME=value`."""
        name = node.children[0]
        self.walk_substitutions(name)
        while name.type == "subscript":
            name = name.children[0]
        sign, rest = node.children[1].type, node.children[2:]
        if rest and rest[0].type == "array":
            values = self.words([child for child in rest[0].children if child.type in WORDS])
            self.assign(self.text(name), values, added=True if sign == "+=" else None, indexed=True)
        else:
            value = self.joined(rest)
            if exported:
                self.export(self.text(name), value)
            self.assign(self.text(name), [value], added=sign == "+=", indexed=node.children[0] != name)

    def export(self, name: str, value: str) -> None:
        """Export a variable, and collect its effects on the programs that receive it."""
        self.scope.exported[name] = value
        self.apply_effects(variable_effects(name, value), name)

    def assign(self, name: str, words: list[str], *, added: bool | None, indexed: bool) -> None:
        self.collector.assigned[name] = None
        variables = self.scope.variables
        old = variables.get(name, ())
        new: tuple[str, ...] | None = tuple(map(as_value, words))
        if any(map(is_unknown, words)) or (added and not indexed and not old):
            new = None
        elif added and not indexed:
            new = tuple(value + text for value in old or () for text in new or ())
        elif (indexed and added is not None) or not self.scope.certain:
            new = None if old is None else tuple(dict.fromkeys(old + (new or ())))
        too_much = new is None or len(new) > _MAX_VALUES or sum(map(len, new)) > _MAX_LENGTH
        variables[name] = None if too_much else new

    def declaration(self, node: Node, stdin: Input) -> None:
        """Apply `export NAME=value`, `declare`, `local`, `readonly` or `unset`."""
        words = [self.text(node.children[0])]
        exports = words[0] in {"export", "declare", "typeset"}
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self.assignment(child, stdin, exported=exports)
                words.append(self.text(child))
            elif child.type in WORDS:
                words += self.words([child])
            else:
                words.append(self.text(child))
        self.collector.add_command(SimpleCommand(tuple(map(plain, words))))
        if words[0] == "unset" or any(word.startswith("-") and "n" in word for word in words):
            self._set_unknown([word.partition("=")[0] for word in words[1:]])
        for match in filter(None, map(_ASSIGNED.fullmatch, words[1:])):
            if match[1] not in self.scope.variables:
                self.assign(match[1], [match[3]], added=match[2] == "+", indexed=False)
