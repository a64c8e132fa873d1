"""Analyses commands whose words are known: what they change in the shell, and the effects of their programs.

Knows words, but no syntax tree; programs by the table in `programs`. The texts of scripts, on the disk or not,
are left to other modules.
"""

from __future__ import annotations

import re
from shlex import quote as shell_quote
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._types import SimpleCommand
from fairlead.policy.bash._words import is_glob, is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import (
    Access,
    GitCommand,
    Mention,
    ProgramCall,
    RunCode,
    RunCommand,
    RunFile,
    RunScript,
    Unpack,
    basename,
)
from fairlead.policy.bash.programs._outputs import PRODUCERS, output_of
from fairlead.policy.bash.programs._table import PROGRAMS
from fairlead.policy.bash.programs._unknown_programs import any_program, is_unknown_program, mentions
from fairlead.policy.bash.scripts._analyser import ScriptFileAnalyser
from fairlead.policy.bash.shell._builtins import BUILTINS, apply_builtin
from fairlead.policy.bash.shell._folders import change_folder
from fairlead.policy.bash.shell._scope import NO_INPUT, TooComplex
from fairlead.policy.bash.shell._variables import variable_effects
from fairlead.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.bash._collector import Collector
    from fairlead.policy.bash._recursion import ScriptAnalyser
    from fairlead.policy.bash.programs._calls import Effect, Program
    from fairlead.policy.bash.programs._outputs import Output
    from fairlead.policy.bash.scripts._files import CommandFiles
    from fairlead.policy.bash.shell._scope import Input, Scope

_VERSION: Final = re.compile(r"[\d.]+$")
_SAME_SHELL: Final = {"eval", "trap"}
_SOURCES: Final = {"source", "."}
_SCRIPT_SUFFIXES: Final = (".py", ".sh", ".js", ".mjs", ".ts")
_SYSTEM_FOLDERS: Final = ("/bin/", "/usr/", "/sbin/", "/opt/", "/nix/", "/snap/", "/Library/")
_RUN_INPUT: Final = frozenset({"git", "xargs", "parallel", "ed", "ex", "psql", "mysql", "gdb", "tclsh"})
"""Programs whose effects depend on their input."""
_SIMPLE_ALIAS: Final = dict.fromkeys(map(ord, ";|&<>$`'\"()\n"), "")
_MAX_RUN_DEPTH: Final = 12
_MAX_FUNCTION_DEPTH: Final = 5


class CommandAnalyser:
    """Analyses the commands of one script. Raises `TooComplex`, `TooManyWords`, and `NeedsThread`."""

    def __init__(self, scope: Scope, collector: Collector, files: CommandFiles | None, scripts: ScriptAnalyser) -> None:
        self.output: Output | None = None
        """The output of the last command; `None` if it is not known."""
        self._scope = scope
        self._collector = collector
        self._files = files
        self._scripts = scripts
        self._run_depth = 0
        """The number of commands that run one another: `env nice timeout 1 ls`."""

    def analyse_command(
        self, words: list[str], stdin: Input, *, variables: tuple[str, ...] = (), implied: bool = False
    ) -> None:
        """Collect the effects of a command, and set `output`. Does nothing if there are no words.

        `variables`: the assignments before the command, as they were written. `implied`: whether it is another spelling
        of the previous command.
        """
        if not words:
            return
        texts = tuple(words if "".join(words).isascii() else map(plain, words))
        self._collector.add_command(SimpleCommand(texts, implied, variables))
        self.output = None
        if texts[0] in self._scope.functions and texts[0] not in self._scope.calling:
            self._call_function(texts[0], words[1:], stdin)
            return
        if texts[0] in self._scope.aliases:
            self._expand_alias(texts[0], words[1:], stdin)
        program, handler = _find_program(words[0])
        if not program:
            self._collector.add_unknown(f"which program runs is only known when it runs: {texts[0]}", runs=True)
            return
        args = words[1:]
        if "/" in words[0]:
            self._analyse_program_file(words[0], args)
        if program in BUILTINS:
            apply_builtin(program, args, stdin, self._scope)
        elif self._files is None and program in _SOURCES:
            self._scope.forget_values(list(self._scope.variables))
        if handler is None:
            self._analyse_unknown_program(program, args)
        call = ProgramCall(program, args, stdin.text, stdin.piped, _lines(stdin), self._scope.variables, stdin.file)
        self._call_program(call, handler or any_program, stdin)

    def _call_program(self, call: ProgramCall, handler: Program, stdin: Input) -> None:
        """Collect the effects of a call, record what `tee` writes, and set `output` if it is known."""
        if stdin.file is not None and call.program in _RUN_INPUT:
            call = replace(call, stdin=self.read_file(stdin.file))
        effects = handler(call)
        if effects:
            self.apply_effects(effects, call.program, stdin)
        if call.program == "tee" and self._files is not None:
            for word in call.args:
                if not word.startswith("-"):
                    self._files.record_text(word, stdin.text, added="-a" in call.args)
        if self.output is None and call.program in PRODUCERS:
            self.output = output_of(call, stdin.output)

    def _call_function(self, name: str, args: list[str], stdin: Input) -> None:
        """Analyse the body of a function that the command defines, with the arguments of the call.

        Does nothing if too many functions call one another.
        """
        scope = self._scope
        if len(scope.calling) >= _MAX_FUNCTION_DEPTH:
            return
        saved = scope.arguments()
        scope.set_arguments(args)
        scope.calling.append(name)
        scope.functions[name](stdin)
        scope.calling.pop()
        scope.restore_arguments(saved)
        self.output = None

    def _expand_alias(self, name: str, args: list[str], stdin: Input) -> None:
        """Analyse the command that an alias expands to. That alias is not expanded again: `alias ls='ls -l'`."""
        text = self._scope.aliases.pop(name)
        if text.translate(_SIMPLE_ALIAS) == text:
            self.analyse_command([*map(quote, text.split()), *args], stdin)
        else:
            script = " ".join([text, *(shell_quote(plain(arg)) for arg in args)])
            self._scripts.analyse_script(script, same_shell=True)
        self._scope.aliases[name] = text

    def _analyse_unknown_program(self, program: str, args: list[str]) -> None:
        """Collect a program with unknown effects: its name, its script, and the files that exported variables name.

        Ignores any other program.
        """
        if is_unknown_program(program):
            self._collector.programs[program] = None
            self._search_path(program, args)
            if program.endswith(_SCRIPT_SUFFIXES):  # `uv run x.py`
                self._analyse_file(RunFile(program, None, args), program)
            for effect in mentions(self._scope.exported.values()):
                self._collector.add_mention(effect, program, self._scope.folders)

    def _analyse_program_file(self, program: str, args: list[str]) -> None:
        """Analyse a program that is called by its path, because it may be a script."""
        if not program.startswith(_SYSTEM_FOLDERS):
            self._analyse_file(RunFile(program, None, args), program)

    def _search_path(self, program: str, args: list[str]) -> None:
        """Analyse a script in a folder that the command itself adds to `PATH`."""
        for folder in self._scope.exported.get("PATH", "").split(":"):
            if folder and not is_unknown(folder) and not folder.startswith(_SYSTEM_FOLDERS):
                self._analyse_file(RunFile(f"{folder}/{program}", None, args), program)

    def _analyse_file(self, run: RunFile, program: str) -> None:
        if self._files is not None:
            scripts = ScriptFileAnalyser(self._files, self._scope, self._collector, self, self._scripts)
            scripts.analyse_file(run, program)

    def read_file(self, word: str) -> str | None:
        """Return the text of a file as a command reads it; `None` if it is not known, or no file may be read."""
        return None if self._files is None else self._files.read_text(word)

    def export_variable(self, name: str, value: str) -> None:
        """Export a variable, and collect its effects on the programs that receive it."""
        self._scope.exported[name] = value
        self.apply_effects(variable_effects(name, value), name)

    def apply_effects(self, effects: Iterable[Effect], program: str, stdin: Input = NO_INPUT) -> None:
        """Collect the effects of a program, and analyse the commands and scripts that it runs. `stdin` is its input."""
        for effect in effects:
            if isinstance(effect, Access):
                self._collector.add_access(effect, program, self._scope.folders)
            elif isinstance(effect, RunCommand):
                self._run_command(effect, stdin)
            elif isinstance(effect, RunScript):
                self._scripts.analyse_script(effect.text, same_shell=program in _SAME_SHELL, args=effect.args)
                self.output = None
            elif isinstance(effect, RunFile):
                self._analyse_file(effect, program)
            elif isinstance(effect, Unpack):
                self._unpack(effect, program)
            elif isinstance(effect, RunCode):
                self._run_code(effect, stdin)
            elif isinstance(effect, Mention):
                self._collector.add_mention(effect, program, self._scope.folders)
            elif isinstance(effect, GitCommand):
                self._collector.add_git(effect, self._scope.folders)
            else:
                self._collector.add_unknown(effect.text, runs=effect.runs)

    def _run_command(self, run: RunCommand, stdin: Input) -> None:
        self._run_depth += 1
        if self._run_depth > _MAX_RUN_DEPTH:
            raise TooComplex
        saved = self._scope.enter_subshell()
        if run.folder is not None:
            self._scope.folders = change_folder(self._scope.folders, run.folder)
        for variable in run.variables:
            name, _, value = variable.partition("=")
            self.export_variable(name, value)
            self._scope.assign(name, [value], added=False, indexed=False)
        self.analyse_command(run.words, stdin, implied=run.implied)
        self._scope.leave_subshell(saved)
        self._run_depth -= 1

    def _run_code(self, code: RunCode, stdin: Input) -> None:
        from fairlead.policy.bash.programs._code import code_effects, reads_environment  # takes time to compile

        if self._scope.exported and reads_environment(code.text):
            code = code._replace(operands=[*code.operands, *self._scope.exported.values()])
        self.apply_effects(code_effects(code), code.language, stdin)

    def _unpack(self, unpack: Unpack, program: str) -> None:
        """Collect the files that an archive or a patch names.

        If they are not known, collect the folder of the unpacked archive, or an unknown effect of the patch.
        """
        from fairlead.policy.bash.scripts._archives import unpacked_files  # rare

        words = None if self._files is None else unpacked_files(unpack, self._files)
        if words is None and unpack.kind == "patch":
            self._collector.add_unknown(f"{program} writes the files that the patch names")
        elif words is None:
            self._collector.add_mention(Mention(unpack.folder), program, self._scope.folders)
        for word in words or ():
            self._collector.add_access(Access("write", word), program, self._scope.folders)


def _find_program(word: str) -> tuple[str, Program | None]:
    """Return the name of a program without folder and version, and its handler.

    The name is empty if it is not known; the handler is `None` if the program is not in the table.
    """
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
    """Return the possible lines of an input; `None` if they are not known."""
    return None if stdin.output is None or stdin.output.is_prefix else stdin.output.words
