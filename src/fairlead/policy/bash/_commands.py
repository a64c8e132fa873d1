"""Analyses simple commands: their words, what they change in the shell, and the effects of their programs."""

from __future__ import annotations

import re
from shlex import quote as shell_quote
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._builtins import BUILTINS, NO_INPUT, BuiltinAnalyser, Input
from fairlead.policy.bash._collector import change_folder
from fairlead.policy.bash._expansion import WORDS, Scope
from fairlead.policy.bash._types import SimpleCommand
from fairlead.policy.bash._words import is_glob, is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    GitCommand,
    Mention,
    Program,
    ProgramCall,
    RunCode,
    RunCommand,
    RunFile,
    RunScript,
    Unpack,
    basename,
)
from fairlead.policy.bash.programs._outputs import PRODUCERS, Output, output_of
from fairlead.policy.bash.programs._table import PROGRAMS
from fairlead.policy.bash.programs._unknown_programs import any_program, is_unknown_program, mentions
from fairlead.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from fairlead.policy.bash._collector import Collector

_VERSION: Final = re.compile(r"[\d.]+$")
_SAME_SHELL: Final = {"eval", "trap"}
_SCRIPT_SUFFIXES: Final = (".py", ".sh", ".js", ".mjs", ".ts")
_SYSTEM_FOLDERS: Final = ("/bin/", "/usr/", "/sbin/", "/opt/", "/nix/", "/snap/", "/Library/")
_RUN_INPUT: Final = frozenset({"git", "xargs", "parallel", "ed", "ex", "psql", "mysql", "gdb", "tclsh"})
"""Programs whose effects depend on their input."""
_SIMPLE_ALIAS: Final = dict.fromkeys(map(ord, ";|&<>$`'\"()\n"), "")
_MAX_RUN_DEPTH: Final = 12
REDIRECTS: Final = {"file_redirect", "heredoc_redirect", "herestring_redirect"}


class TooComplex(Exception):
    """The command is too long or nested too deep."""


class CommandAnalyser(BuiltinAnalyser):
    """Analyses simple commands; a subclass walks the scripts that they run."""

    def __init__(self, source: bytes, collector: Collector, scope: Scope) -> None:
        super().__init__(source, collector, scope)
        self.runs = 0
        self.prefix: tuple[str, ...] = ()
        """The assignments before the next command."""
        self.calling: list[str] = []
        """The stack of functions whose bodies are being walked."""
        self.output: Output | None = None
        """The output of the last command; `None` if it is not known."""

    def script(self, text: str, *, same_shell: bool, args: tuple[str, ...] = ()) -> None:
        """Walk a script that the command runs."""
        raise NotImplementedError

    def file_text(self, word: str) -> str | None:
        """Return the text of a file; `None` if it is not known."""
        raise NotImplementedError

    def statement(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Walk a statement."""
        raise NotImplementedError

    def run_file(self, run: RunFile, program: str) -> None:
        """Analyse a script on the disk, or the tasks of a task file."""
        raise NotImplementedError

    def unpack(self, unpack: Unpack, program: str) -> None:
        """Collect the files that an archive or a patch names."""
        raise NotImplementedError

    def note_output(self, body: Node | None, redirects: list[Node], stdin: Input) -> None:
        """Record the text that redirections write to files."""
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
            self.note_output(None, redirects, stdin)
        words += stdin.words
        if assignments:
            self._call_with(assignments, words, stdin)
        else:
            self.call(self.words(words), stdin)

    def _call_with(self, assignments: list[Node], words: list[Node], stdin: Input) -> None:
        """Analyse a command with assignments before it, which only apply to this command."""
        scope = self.scope
        before, exported = scope.variables, scope.exported
        scope.variables, scope.exported = dict(before), dict(exported)
        known = dict(self.collector.assigned)
        for assignment in assignments:
            self.assignment(assignment, stdin, exported=True)
        self.collector.assigned = known
        assigned = [name for name, value in scope.variables.items() if name not in before or before[name] != value]
        command = self.words(words)
        self.prefix = tuple(self.text(assignment) for assignment in assignments)
        self.call(command, stdin)
        self.prefix = ()
        scope.exported = exported
        for name in assigned:  # other variables may be set by the command: `IFS= read name`
            scope.variables.pop(name, None)
            scope.variables.update({name: before[name]} if name in before else {})

    def call(self, words: list[str], stdin: Input, *, implied: bool = False) -> None:
        """Collect the effects of a command."""
        if not words:
            return
        texts = tuple(words if "".join(words).isascii() else map(plain, words))
        self.collector.add_command(SimpleCommand(texts, implied, self.prefix))
        self.prefix = ()
        self.output = None
        if texts[0] in self.scope.functions and texts[0] not in self.calling:
            self.call_function(texts[0], words[1:], stdin)
            return
        if texts[0] in self.scope.aliases:
            self._alias(texts[0], words[1:], stdin)
        program, handler = _find_program(words[0])
        if not program:
            self.collector.add_unknown(f"which program runs is only known when it runs: {texts[0]}", runs=True)
            return
        args = words[1:]
        if "/" in words[0]:
            self._run_program_file(words[0], args)
        if program in BUILTINS:
            self.apply_builtin(program, args, stdin)
        if handler is None:
            self._unknown_program(program, args)
        call = ProgramCall(program, args, stdin.text, stdin.piped, _lines(stdin), self.scope.variables, stdin.file)
        self._call_program(call, handler or any_program, stdin)

    def _call_program(self, call: ProgramCall, handler: Program, stdin: Input) -> None:
        """Collect the effects of a call, and its output if it is known."""
        if stdin.file is not None and call.program in _RUN_INPUT:
            call = replace(call, stdin=self.file_text(stdin.file))
        effects = handler(call)
        if effects:
            self.apply_effects(effects, call.program, stdin)
        if call.program == "tee":
            self.note_input(call.args, stdin.text)
        if self.output is None and call.program in PRODUCERS:
            self.output = output_of(call, stdin.output)

    def _alias(self, name: str, args: list[str], stdin: Input) -> None:
        """Analyse the command that an alias expands to. In it the alias is not expanded again: `alias ls='ls -l'`."""
        text = self.scope.aliases.pop(name)
        if text.translate(_SIMPLE_ALIAS) == text:
            self.call([*map(quote, text.split()), *args], stdin)
        else:
            self.script(" ".join([text, *(shell_quote(plain(arg)) for arg in args)]), same_shell=True)
        self.scope.aliases[name] = text

    def _run_program_file(self, program: str, args: list[str]) -> None:
        """Analyse a program that is called by its path, because it may be a script."""
        if not program.startswith(_SYSTEM_FOLDERS):
            self.run_file(RunFile(program, None, args), program)

    def _search_path(self, program: str, args: list[str]) -> None:
        """Analyse a script in a folder that the command itself adds to `PATH`."""
        for folder in self.scope.exported.get("PATH", "").split(":"):
            if folder and not is_unknown(folder) and not folder.startswith(_SYSTEM_FOLDERS):
                self.run_file(RunFile(f"{folder}/{program}", None, args), program)

    def _unknown_program(self, program: str, args: list[str]) -> None:
        """Collect a program that is not in the table, and the files that its environment variables name."""
        if is_unknown_program(program):
            self.collector.programs[program] = None
            self._search_path(program, args)
            if program.endswith(_SCRIPT_SUFFIXES):  # `uv run x.py`
                self.run_file(RunFile(program, None, args), program)
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
                self.script(effect.text, same_shell=program in _SAME_SHELL, args=effect.args)
                self.output = None
            elif isinstance(effect, RunFile):
                self.run_file(effect, program)
            elif isinstance(effect, Unpack):
                self.unpack(effect, program)
            elif isinstance(effect, RunCode):
                self._code(effect, stdin)
            elif isinstance(effect, Mention):
                self.collector.add_mention(effect, program, self.scope.folders)
            elif isinstance(effect, GitCommand):
                self.collector.add_git(effect, self.scope.folders)
            else:
                self.collector.add_unknown(effect.text, runs=effect.runs)

    def _code(self, code: RunCode, stdin: Input) -> None:
        from fairlead.policy.bash.programs._code import code_effects, reads_environment  # takes time to compile

        if self.scope.exported and reads_environment(code.text):
            code = code._replace(operands=[*code.operands, *self.scope.exported.values()])
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
            self.export(name, value)
            self.assign(name, [value], added=False, indexed=False)
        self.call(run.words, stdin, implied=run.implied)
        self.scope.leave_subshell(saved)
        self.runs -= 1

    def call_function(self, name: str, args: list[str], stdin: Input) -> None:
        """Walk the body of a function that the command defines."""
        raise NotImplementedError


def _find_program(word: str) -> tuple[str, Program | None]:
    """Return the name of a program without folder and version, and its handler; an empty name if it is not known."""
    handler = PROGRAMS.get(word)
    if handler is not None:
        return word, handler
    if is_unknown(word) or is_glob(word):
        return ("[" if plain(word) in {"[", "[["} else ""), None
    name = basename(plain(word))
    handler = PROGRAMS.get(name)
    if handler is None and name[-1:].isdigit():
        base = _VERSION.sub("", name)
        handler = PROGRAMS.get(base)
        name = name if handler is None else base
    return name, handler


def _lines(stdin: Input) -> tuple[str, ...] | None:
    return None if stdin.output is None or stdin.output.is_prefix else stdin.output.words
