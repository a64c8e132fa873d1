"""Analyses simple commands: their words, what they change in the shell, and the effects of their programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._collector import UNKNOWN_FOLDERS, change_folder, join_folder, word_path
from fairlead.policy.bash._expansion import WORDS, Expander, Scope
from fairlead.policy.bash._types import SimpleCommand
from fairlead.policy.bash._words import as_value, is_glob, is_unknown, plain
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Mention,
    ProgramCall,
    RunCode,
    RunCommand,
    RunFile,
    RunScript,
    basename,
)
from fairlead.policy.bash.programs._table import PROGRAMS
from fairlead.policy.bash.programs._unknown_programs import any_program, is_unknown_program, mentions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from fairlead.policy.bash._collector import Collector

_VERSION: Final = re.compile(r"[\d.]+$")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=(.*)", re.DOTALL)
_SETTERS: Final = {"read", "mapfile", "readarray", "getopts", "printf", "let", "unset", "wait"}
_CHANGE_FOLDER: Final = frozenset({"cd", "pushd", "chdir"})
_BUILTINS: Final = _CHANGE_FOLDER | _SETTERS | {"popd", "source", "."}
"""Commands that change the shell itself."""
_SAME_SHELL: Final = {"eval", "trap"}
_SYSTEM_FOLDERS: Final = ("/bin/", "/usr/", "/sbin/", "/opt/", "/nix/", "/snap/", "/Library/")
_MAX_VALUES: Final = 64
_MAX_RUN_DEPTH: Final = 12
REDIRECTS: Final = {"file_redirect", "heredoc_redirect", "herestring_redirect"}


class TooComplex(Exception):
    """The command is too long or nested too deep."""


class Input(NamedTuple):
    """The input of a command, and arguments that the parser places behind a redirection."""

    text: str | None = None
    piped: bool = False
    words: tuple[Node, ...] = ()


NO_INPUT: Final = Input()


class CommandAnalyser(Expander):
    """Analyses simple commands; a subclass walks the scripts that they run."""

    def __init__(self, source: bytes, collector: Collector, scope: Scope) -> None:
        super().__init__(source, scope)
        self.collector = collector
        self.runs = 0

    def script(self, text: str, *, same_shell: bool) -> None:
        """Walk a script that the command runs."""
        raise NotImplementedError

    def statement(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Walk a statement."""
        raise NotImplementedError

    def run_file(self, run: RunFile, program: str) -> None:
        """Analyse a script on the disk, or the tasks of a task file."""
        raise NotImplementedError

    def note_input(self, args: list[str], text: str | None) -> None:
        """Record the text that `tee` writes."""
        raise NotImplementedError

    def redirected(self, redirects: list[Node], stdin: Input) -> Input:
        """Collect the files of redirections; return the input of the command."""
        raise NotImplementedError

    def command(self, node: Node, stdin: Input) -> None:
        """Analyse a simple command, with assignments and redirections before and after it."""
        words = self.plain_words(node)
        if words is None:
            self._expand_command(node, stdin)
        else:
            self.call(words + self.words(stdin.words) if stdin.words else words, stdin)

    def _expand_command(self, node: Node, stdin: Input) -> None:
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
            elif child.child_count:  # the parser takes the subshell of `time (…)` for an argument
                self.statement(child)
        if redirects:
            stdin = self.redirected(redirects, stdin)
        if not assignments:
            self.call(self.words([*words, *stdin.words]), stdin)
            return
        scope = self.scope
        saved = scope.variables, scope.exported
        scope.variables, scope.exported = dict(scope.variables), dict(scope.exported)
        for assignment in assignments:
            self.assignment(assignment, stdin, exported=True)
        self.call(self.words([*words, *stdin.words]), stdin)
        scope.variables, scope.exported = saved

    def call(self, words: list[str], stdin: Input, *, implied: bool = False) -> None:
        """Collect the effects of a command."""
        if not words:
            return
        program = words[0]
        texts = tuple(words if "".join(words).isascii() else map(plain, words))
        self.collector.add_command(SimpleCommand(texts, implied))
        handler = PROGRAMS.get(program)
        args = words[1:]
        if handler is None:
            if is_unknown(program) or is_glob(program):
                if plain(program) not in {"[", "[["}:
                    self.collector.add_unknown(f"which program runs is only known when it runs: {plain(program)}")
                return
            self._run_program_file(program, args)
            program = basename(plain(program))
            handler = PROGRAMS.get(program)
        if program in _BUILTINS:
            self._apply_builtin(program, args)
        if handler is None and program[-1:].isdigit():
            handler = PROGRAMS.get(_VERSION.sub("", program))
            program = program if handler is None else _VERSION.sub("", program)
        if handler is None:
            self._unknown_program(program)
            handler = any_program
        effects = handler(ProgramCall(program, args, stdin.text, stdin.piped))
        if effects:
            self.apply_effects(effects, program, stdin)
        if program == "tee":
            self.note_input(args, stdin.text)

    def _run_program_file(self, program: str, args: list[str]) -> None:
        """Analyse a program that is named by its path: it may be a script."""
        if "/" in program and not program.startswith(_SYSTEM_FOLDERS):
            self.run_file(RunFile(program, None, args), program)

    def _unknown_program(self, program: str) -> None:
        """Collect a program that is not in the table, and the files that variables name to it."""
        if is_unknown_program(program):
            self.collector.programs[program] = None
            for effect in mentions(self.scope.exported.values()):
                self.collector.add_mention(effect, program, self.scope.folders)

    def apply_effects(self, effects: Iterable[Effect], program: str, stdin: Input = NO_INPUT) -> None:
        """Collect the effects of a program."""
        for effect in effects:
            if isinstance(effect, Access):
                self.collector.add_access(effect, program, self.scope.folders)
            elif isinstance(effect, RunCommand):
                self._run(effect, stdin)
            elif isinstance(effect, RunScript):
                self.script(effect.text, same_shell=program in _SAME_SHELL)
            elif isinstance(effect, RunFile):
                self.run_file(effect, program)
            elif isinstance(effect, RunCode):
                self._code(effect, stdin)
            elif isinstance(effect, Mention):
                self.collector.add_mention(effect, program, self.scope.folders)
            else:
                self.collector.add_unknown(effect.text)

    def _code(self, code: RunCode, stdin: Input) -> None:
        from fairlead.policy.bash.programs._inline_code import code_effects  # its expressions take time to compile

        self.apply_effects(code_effects(code), code.language, stdin)

    def _run(self, run: RunCommand, stdin: Input) -> None:
        self.runs += 1
        if self.runs > _MAX_RUN_DEPTH:
            raise TooComplex
        saved = self.scope.enter_subshell()
        if run.folder is not None:
            self.scope.folders = change_folder(self.scope.folders, run.folder)
        for variable in run.variables:
            name, _, value = variable.partition("=")
            self.scope.exported[name] = value
            self._assign(name, [value], added=False, indexed=False)
        self.call(run.words, stdin, implied=run.implied)
        self.scope.leave_subshell(saved)
        self.runs -= 1

    def _apply_builtin(self, program: str, args: list[str]) -> None:
        """Apply a command that changes the shell itself."""
        if program in _CHANGE_FOLDER:
            self._change_folder(
                [arg for arg in args if arg == "-" or not arg.startswith(("-", "+"))], pushed=program == "pushd"
            )
        elif program == "popd":
            self.scope.folders = self.scope.stack.pop() if self.scope.stack else UNKNOWN_FOLDERS
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
            self._assign(self.text(name), values, added=True if sign == "+=" else None, indexed=True)
        else:
            value = self.joined(rest)
            if exported:
                self.scope.exported[self.text(name)] = value
            self._assign(self.text(name), [value], added=sign == "+=", indexed=node.children[0] != name)

    def _assign(self, name: str, words: list[str], *, added: bool | None, indexed: bool) -> None:
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
        variables[name] = new if new is not None and len(new) <= _MAX_VALUES else None

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
                self._assign(match[1], [match[3]], added=match[2] == "+", indexed=False)
