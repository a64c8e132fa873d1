"""Analyses simple commands: their words, what they change in the shell, and the effects of their programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._collector import UNKNOWN_FOLDERS, change_folder, join_folder, word_path
from fairlead.policy.bash._expansion import WORDS, Expander, Scope
from fairlead.policy.bash._types import SimpleCommand
from fairlead.policy.bash._words import as_value, is_glob, is_unknown, plain, quote
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
    parse_options,
)
from fairlead.policy.bash.programs._outputs import PRODUCERS, Output, output_of
from fairlead.policy.bash.programs._table import PROGRAMS
from fairlead.policy.bash.programs._unknown_programs import any_program, is_unknown_program, mentions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from fairlead.policy.bash._collector import Collector

_VERSION: Final = re.compile(r"[\d.]+$")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=(.*)", re.DOTALL)
_SETTERS: Final = {"read", "shift", "set", "alias", "mapfile", "readarray", "getopts", "printf", "let", "unset", "wait"}
_CHANGE_FOLDER: Final = frozenset({"cd", "pushd", "chdir"})
_BUILTINS: Final = _CHANGE_FOLDER | _SETTERS | {"popd", "source", "."}
"""Commands that change the shell itself."""
_SAME_SHELL: Final = {"eval", "trap"}
_SYSTEM_FOLDERS: Final = ("/bin/", "/usr/", "/sbin/", "/opt/", "/nix/", "/snap/", "/Library/")
_MAX_VALUES: Final = 64
_MAX_LENGTH: Final = 20_000
"""Characters of all values of a variable: `x=$x$x` doubles them each time."""
_MAX_RUN_DEPTH: Final = 12
REDIRECTS: Final = {"file_redirect", "heredoc_redirect", "herestring_redirect"}


class TooComplex(Exception):
    """The command is too long or nested too deep."""


class Input(NamedTuple):
    """The input of a command, and arguments that the parser places behind a redirection."""

    text: str | None = None
    piped: bool = False
    words: tuple[Node, ...] = ()
    output: Output | None = None
    """What is known of the output that comes from another command."""
    file: str | None = None
    """The file that it comes from."""


NO_INPUT: Final = Input()


class CommandAnalyser(Expander):
    """Analyses simple commands; a subclass walks the scripts that they run."""

    def __init__(self, source: bytes, collector: Collector, scope: Scope) -> None:
        super().__init__(source, scope)
        self.collector = collector
        self.runs = 0
        self.output: Output | None = None
        """What is known of the output of the last command."""

    def script(self, text: str, *, same_shell: bool, args: tuple[str, ...] = ()) -> None:
        """Walk a script that the command runs."""
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
        words += stdin.words
        if assignments:
            self._call_with(assignments, words, stdin)
        else:
            self.call(self.words(words), stdin)

    def _call_with(self, assignments: list[Node], words: list[Node], stdin: Input) -> None:
        """Analyse a command with assignments before it, which only hold for the command."""
        scope = self.scope
        before, exported = scope.variables, scope.exported
        scope.variables, scope.exported = dict(before), dict(exported)
        for assignment in assignments:
            self.assignment(assignment, stdin, exported=True)
        assigned = [name for name, value in scope.variables.items() if name not in before or before[name] != value]
        self.call(self.words(words), stdin)
        scope.exported = exported
        for name in assigned:  # other variables may be set by the command: `IFS= read name`
            scope.variables.pop(name, None)
            scope.variables.update({name: before[name]} if name in before else {})

    def call(self, words: list[str], stdin: Input, *, implied: bool = False) -> None:
        """Collect the effects of a command."""
        if not words:
            return
        texts = tuple(words if "".join(words).isascii() else map(plain, words))
        self.collector.add_command(SimpleCommand(texts, implied))
        self.output = None
        if texts[0] in self.scope.functions:
            self.call_function(texts[0], words[1:], stdin)
            return
        if texts[0] in self.scope.aliases:
            self._alias(texts[0], words[1:], stdin)
        program, handler = _find_program(words[0])
        if not program:
            self.collector.add_unknown(f"which program runs is only known when it runs: {texts[0]}")
            return
        args = words[1:]
        if "/" in words[0]:
            self._run_program_file(words[0], args)
        if program in _BUILTINS:
            self._apply_builtin(program, args, stdin)
        if handler is None:
            self._unknown_program(program, args)
        call = ProgramCall(program, args, stdin.text, stdin.piped, _lines(stdin), self.scope.variables, stdin.file)
        self._known(call, handler or any_program, stdin)

    def _known(self, call: ProgramCall, handler: Program, stdin: Input) -> None:
        """Collect the effects of a call, and what is known of its output."""
        effects = handler(call)
        if effects:
            self.apply_effects(effects, call.program, stdin)
        if call.program == "tee":
            self.note_input(call.args, stdin.text)
        if self.output is None and call.program in PRODUCERS:
            self.output = output_of(call, stdin.output)

    def _alias(self, name: str, args: list[str], stdin: Input) -> None:
        """Run what an alias stands for, once: it may be the program of the same name."""
        words = self.scope.aliases.pop(name)
        self.call([*words, *args], stdin)
        self.scope.aliases[name] = words

    def _run_program_file(self, program: str, args: list[str]) -> None:
        """Analyse a program that is named by its path: it may be a script."""
        if not program.startswith(_SYSTEM_FOLDERS):
            self.run_file(RunFile(program, None, args), program)

    def _search_path(self, program: str, args: list[str]) -> None:
        """Analyse a script in a folder that the command itself adds to `PATH`."""
        for folder in self.scope.exported.get("PATH", "").split(":"):
            if folder and not is_unknown(folder) and not folder.startswith(_SYSTEM_FOLDERS):
                self.run_file(RunFile(f"{folder}/{program}", None, args), program)

    def _unknown_program(self, program: str, args: list[str]) -> None:
        """Collect a program that is not in the table, and the files that variables name to it."""
        if is_unknown_program(program):
            self.collector.programs[program] = None
            self._search_path(program, args)
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

    def call_function(self, name: str, args: list[str], stdin: Input) -> None:
        """Walk the body of a function that the command defines."""
        raise NotImplementedError

    def set_arguments(self, args: Iterable[str]) -> None:
        """Set `$1` and the following, `$@` and `$*`."""
        variables = self.scope.variables
        values = [None if is_unknown(word) else as_value(word) for word in args]
        for name in [name for name in variables if name.isdigit()]:
            del variables[name]
        variables.update({str(at): None if value is None else (value,) for at, value in enumerate(values, 1)})
        known = tuple(value for value in values if value is not None)
        variables["@"] = variables["*"] = known if len(known) == len(values) <= _MAX_VALUES else None

    def _apply_builtin(self, program: str, args: list[str], stdin: Input) -> None:
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
        """Apply `read NAME`, whose value is known if its input is."""
        names = parse_options(args, "adeinNptu").operands
        self._set_unknown(names or ["REPLY"])
        if stdin.text is not None:
            values = tuple(quote(line.strip()) for line in stdin.text.splitlines() if line.strip())
        else:
            values = stdin.output.words if stdin.output and not stdin.output.only_first else ()
        if len(names) <= 1 and 0 < len(values) <= _MAX_VALUES:
            self.scope.variables[plain(names[0]) if names else "REPLY"] = tuple(map(as_value, values))

    def _define_aliases(self, args: list[str]) -> None:
        for name, equals, value in (arg.partition("=") for arg in args):
            if equals and value:
                self.scope.aliases[plain(name)] = [quote(part) for part in plain(value).split()]

    def _shift(self) -> None:
        """Apply `shift`: each argument may be any of them."""
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
                self._assign(match[1], [match[3]], added=match[2] == "+", indexed=False)


def _find_program(word: str) -> tuple[str, Program | None]:
    """Return the name of a program without its folder and version, and its effects; no name if it is not known."""
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
    return None if stdin.output is None or stdin.output.only_first else stdin.output.words
