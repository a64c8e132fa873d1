"""Analyses the scripts that a command runs, whether they are on the disk or written by the same command.

A script that git tracks and that is unchanged belongs to the project. Its unknown effects are not reported: it is not
new, and the user would be asked at every build. The files that it names are checked as in any other script.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._collector import COPY_PROGRAMS, change_folder, join_folder, word_path
from fairlead.policy.bash._commands import TooComplex
from fairlead.policy.bash._expansion import WORDS
from fairlead.policy.bash._redirects import RedirectAnalyser
from fairlead.policy.bash._words import ANY_DEPTH, TooManyWords, as_value, is_glob, is_unknown, plain, quote, unescape
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Mention,
    RunCode,
    RunFile,
    UnknownEffect,
    Unpack,
    basename,
)
from fairlead.policy.bash.programs._unknown_programs import mentions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from fairlead.policy.bash._builtins import Input
    from fairlead.policy.bash._context import AnalysisContext

MAX_SCRIPT_LENGTH: Final = 64 * 1024
"""The longest text that is passed to the shell parser, in characters."""
_MAX_ALL_SCRIPTS: Final = 96 * 1024
_MAX_DEPTH: Final = 4
_MAX_POSITIONAL: Final = 9
_MAX_GLOBBED: Final = 12
_SLOW: Final = re.compile(r"\||\$\{|<<|`")
_MAX_SLOW: Final = 2_000
"""The maximum number of these in a script. The parser takes quadratic time for them: 50 s for 30 000 pipes."""
PRIVATE: Final = re.compile("[\U00100000-\U0010ffff]")
"""The private characters that the analysis uses to mark words."""
_SHEBANG: Final = r"#!\s*(\S+)(?:[ \t]+(.*))?"
_PRINTS: Final = frozenset({"cat", "echo", "printf"})
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "source", "."})
_LANGUAGES: Final = {
    "sh": "sh", "bash": "sh", "zsh": "sh", "ksh": "sh", "bats": "sh", "py": "python", "js": "node", "mjs": "node",
    "cjs": "node", "ts": "node", "mts": "node", "tsx": "node", "pl": "perl", "pm": "perl", "rb": "ruby", "php": "php",
    "lua": "lua", "R": "Rscript", "awk": "awk", "sed": "sed", "go": "go", "rs": "rust", "tcl": "tclsh",
}  # fmt: skip
_ANALYSED_LANGUAGES: Final = frozenset({"awk", "sed", "sqlite"})
"""Languages with an analysis of their own; in all others the code is searched for literals."""
_TASK_FILES: Final = frozenset({"make", "npm", "just", "task"})
_FOUND_ABOVE: Final = frozenset({"npm", "just", "task"})
"""Task files that are also searched for in the parent folders."""
_MAX_ABOVE: Final = 6
_SAME_SHELL: Final = frozenset({"source", "."})
_KEEPS_TEXT: Final = frozenset({"chmod", "chown", "chgrp", "touch", "setfacl", "chattr", "chcon", "mkdir"})
"""Programs that change a file, but not its text."""
_ACCESSES: Final = (
    *("write", "remove", "unlink", "delete", "rename", "replace", "truncate", "open", "read", "rm", "copy", "move"),
    *("system", "exec", "run"),
)
"""A line of code that accesses a file has one of these words in it."""


def is_too_long(text: str) -> bool:
    """Return whether the shell's parser would take too long for a text."""
    return len(text) > MAX_SCRIPT_LENGTH or (len(text) > _MAX_SLOW and len(_SLOW.findall(text)) > _MAX_SLOW)


class Script(NamedTuple):
    """A script that a command runs."""

    path: str
    """The path as the command spells it."""
    text: str | None
    """`None` if it is not known."""
    tracked: bool = False


class ScriptAnalyser(RedirectAnalyser):
    """Analyses the scripts that commands run."""

    depth: int

    def run_file(self, run: RunFile, program: str) -> None:
        """Analyse a script, or the tasks of a task file."""
        context = self.collector.context
        if context is None:
            return
        if is_unknown(run.word):
            if run.language == "sh":
                text = f"which script {program} runs is only known when it runs: {plain(run.word)}"
                self.collector.add_unknown(text, runs=True)
            return
        root = run.word.partition(ANY_DEPTH)[0].rstrip("/") if ANY_DEPTH in run.word else ""
        if root and any(self._is_file(path, context) for path in self._paths(root)):  # `find x.sh -exec sh {} ;`
            self._run_named(run._replace(word=root), program, context)
        elif is_glob(run.word) or ANY_DEPTH in run.word:
            self._run_each(run._replace(word=run.word.replace(ANY_DEPTH, "**/")), program, context)
        elif run.language == "start-up":
            self._run_startup_file(run, program, context)
        else:
            self._run_named(run, program, context)

    def _is_file(self, path: str, context: AnalysisContext) -> bool:
        """Return whether a path is a file, on the disk or because this command writes it."""
        return context.size_of(path) is not None or self.collector.written_text(context.absolute(path)) is not None

    def _run_named(self, run: RunFile, program: str, context: AnalysisContext) -> None:
        has_script = False
        for path in self._paths(run.word):
            for script in self._find(path, context):
                has_script = True
                self._run_script(script, run, program, path)
        if not has_script and run.has_known_fallback:
            return
        if run.language not in _TASK_FILES and not (has_script and run.language == "sh"):
            self.apply_effects(mentions(run.args), program)
        elif not has_script and run.language in _FOUND_ABOVE and "/" not in run.word:
            self._run_above(run, program, context)
        elif not has_script and run.required:
            self.apply_effects(mentions(run.args), program)

    def _run_each(self, run: RunFile, program: str, context: AnalysisContext) -> None:
        """Analyse the scripts that a glob matches."""
        from fairlead.policy.paths._resolve import PathResolver
        from fairlead.policy.paths._search import TooManyFiles, expand

        context.has_searched = True
        for pattern in self._paths(run.word):
            try:
                paths = [context.absolute(found.given) for found in expand(pattern, PathResolver(context.cwd))]
            except TooManyFiles:
                paths = [""] * (_MAX_GLOBBED + 1)
            if len(paths) > _MAX_GLOBBED:
                self.collector.add_unknown(f"which of many scripts {program} runs: {plain(run.word)}", runs=True)
            for path in filter(None, paths[:_MAX_GLOBBED]):
                self.run_file(run._replace(word=quote(path)), program)

    def _run_startup_file(self, run: RunFile, program: str, context: AnalysisContext) -> None:
        """Analyse a start-up file of the user's shell, if this command writes it."""
        if self.collector.writers_of(context.absolute(word_path(run.word))):
            self.run_file(RunFile(run.word, "sh", run.args), program)

    def _run_above(self, run: RunFile, program: str, context: AnalysisContext) -> None:
        """Analyse the task file of the nearest parent folder that has one. Its commands run in that folder."""
        for folder in ("/".join([".."] * depth) for depth in range(1, _MAX_ABOVE)):
            scripts = [
                (path, script)
                for path in self._paths(f"{folder}/{run.word}")
                for script in self._on_disk(path, path, context)
            ]
            saved = self.scope.enter_subshell()
            self.scope.folders = change_folder(self.scope.folders, folder)
            for path, script in scripts:
                self._run_script(script, run, program, path)
            self.scope.leave_subshell(saved)
            if scripts:
                return

    def _paths(self, word: str) -> Iterator[str]:
        path = word_path(word)
        for folder in self.scope.folders:
            if folder.path is not None or path[:1] in {"/", "~"}:
                yield join_folder(folder.path, path)

    def _find(self, path: str, context: AnalysisContext) -> Iterable[Script]:
        """Return the scripts that a path may refer to: those that this command writes, or the one on the disk."""
        absolute = context.absolute(path)
        writers = self.collector.writers_of(absolute) - _KEEPS_TEXT
        written = self.collector.written_text(absolute)
        if written is not None and writers <= {">", "tee"}:
            scripts = [Script(path, written.text)]
            return scripts if written.whole else [*scripts, *self._from_disk(path, path, context)]
        if writers and writers <= COPY_PROGRAMS:
            folder = path.rpartition("/")[0] or "."
            sources = [name for source in self.collector.copied() for name in (source, f"{folder}/{source}")]
            return [script for source in sources for script in self._on_disk(source, path, context)]
        return [Script(path, None)] if writers else self._on_disk(path, path, context)

    def _on_disk(self, path: str, name: str, context: AnalysisContext) -> Iterator[Script]:
        written = self.collector.written_text(context.absolute(path))
        if written is not None:
            yield Script(name, written.text)
        if written is None or not written.whole:
            yield from self._from_disk(path, name, context)

    def _from_disk(self, path: str, name: str, context: AnalysisContext) -> Iterator[Script]:
        contents = context.read_file(path)
        if contents is None:
            return
        tracked = path == name and context.is_tracked(contents.path)
        text = None if contents.data is None else contents.data.decode("utf-8", "replace")
        yield Script(name, text, tracked)

    def _run_script(self, script: Script, run: RunFile, program: str, path: str) -> None:
        collector = self.collector
        if script.text is None:
            if not script.tracked:
                collector.add_unknown(f"what {script.path} does, which {program} runs: it cannot be read here")
            return
        language = run.language or _language(script.path, script.text)
        call = path, *run.args
        if language is None or call in collector.calls:
            return
        if len(collector.calls) >= _MAX_DEPTH:
            if not script.tracked:
                collector.add_unknown(f"what {script.path} does: too many scripts run one another")
            return
        collector.scripts[script.path] = None
        outer = collector.enter_script(path, call, tracked=script.tracked)
        try:
            self._analyse(script, language, run, program)
        except (TooComplex, RecursionError, TooManyWords):
            collector.add_unknown(f"what {script.path} does: it is too long or nested too deep")
        finally:
            collector.leave_script(outer)

    def _analyse(self, script: Script, language: str, run: RunFile, program: str) -> None:
        text = script.text or ""
        if language in _TASK_FILES:
            self._tasks(text, language, run)
        elif language == "sh":
            self._shell_script(script, run.args, same_shell=program in _SAME_SHELL)
        else:
            self._code_file(text, language, run, tracked=script.tracked)

    def _shell_script(self, script: Script, args: list[str], *, same_shell: bool) -> None:
        text = PRIVATE.sub("\ufffd", script.text or "")
        self.collector.script_length += len(text)
        if is_too_long(text) or self.collector.script_length > _MAX_ALL_SCRIPTS:
            raise TooComplex
        if same_shell and not args:
            self.script(text, same_shell=True)
            return
        saved = self.scope.enter_subshell()
        self._set_positional(script.path, args)
        try:
            self.script(text, same_shell=True)
        finally:
            if same_shell:
                self.scope.folders = saved[0]
            self.scope.leave_subshell(saved)

    def _set_positional(self, path: str, args: list[str]) -> None:
        """Set `$0`, `$1` and so on, `$@` and `$#`."""
        values = [None if is_unknown(arg) else (as_value(arg),) for arg in args[:_MAX_POSITIONAL]]
        values += [("",)] * (_MAX_POSITIONAL - len(values))
        variables = self.scope.variables
        variables.update(zip(map(str, range(1, _MAX_POSITIONAL + 1)), values, strict=True))
        every = None if any(map(is_unknown, args)) else tuple(map(as_value, args)) or ("",)
        name = as_value(quote(path))
        variables |= {"@": every, "*": every, "#": (str(len(args)),), "0": (name,), "BASH_SOURCE": (name,)}

    def _code_file(self, text: str, language: str, run: RunFile, *, tracked: bool) -> None:
        """Analyse a script in another language by its literals. Unknown effects are not reported."""
        if tracked and language not in _ANALYSED_LANGUAGES:
            lines = text.splitlines()
            text = "\n".join(line for line in lines if any(word in line.lower() for word in _ACCESSES))
        self.apply_effects(_known_effects(text, language, run.args), language)

    def _tasks(self, text: str, language: str, run: RunFile) -> None:
        from fairlead.policy.bash.tasks._find import find_commands

        for task in find_commands(language, text, [plain(arg) for arg in run.args], self._included):
            if task.language in {None, "sh"}:
                self.script(task.text, same_shell=False)
            else:
                self.apply_effects(_known_effects(task.text, task.language or "", []), task.language or "")

    def _included(self, name: str) -> str | None:
        """Return the text of a file that a task file includes."""
        context = self.collector.context
        for path in self._paths(quote(name)) if context is not None else ():
            contents = context.read_file(path) if context is not None else None
            if contents is not None and contents.data is not None:
                return contents.data.decode("utf-8", "replace")
        return None

    def unpack(self, unpack: Unpack, program: str) -> None:
        """Collect the files that an archive or a patch names; if they are not known, the folder it is unpacked to."""
        names = None if is_unknown(unpack.word) else self._members(unpack)
        if names is None and unpack.kind == "patch":
            self.collector.add_unknown(f"{program} writes the files that the patch names")
        elif names is None:
            self.collector.add_mention(Mention(unpack.folder), program, self.scope.folders)
        for name in names or ():
            path = "/".join(name.split("/")[unpack.strip :])
            if path:
                word = quote(path) if unpack.folder == "." else f"{unpack.folder.rstrip('/')}/{quote(path)}"
                self.collector.add_access(Access("write", word), program, self.scope.folders)

    def _members(self, unpack: Unpack) -> list[str] | None:
        from fairlead.policy.bash._archives import member_names

        context = self.collector.context
        if context is None:
            return None
        archives = [member_names(unpack.kind, path, context) for path in self._paths(unpack.word)]
        return next((names for names in archives if names is not None), None)

    def file_text(self, word: str) -> str | None:
        """Return the text of a file that a command reads, from the disk or as the same command writes it."""
        context = self.collector.context
        if context is None or is_unknown(word):
            return None
        paths = [context.absolute(path) for path in self._paths(word)]
        known = next(filter(None, map(self.collector.written_text, paths)), None)
        if known is None:
            is_written = any(self.collector.writers_of(path) - _KEEPS_TEXT for path in paths)
            return None if is_written else self._included(plain(word))
        before = "" if known.whole else self._included(plain(word)) or ""
        return None if known.text is None else before + known.text

    def note_output(self, body: Node | None, redirects: list[Node], stdin: Input) -> None:
        """Record the text that `cat`, `echo` or `printf` write to files, because a later command may run them."""
        while body is not None and body.type == "list":
            body = body.children[-1]
        text = None
        if body is not None and body.type == "command" and self.text(body.children[0]) in _PRINTS:
            text = _printed(self.words([child for child in body.children if child.type in WORDS]), stdin.text)
        for redirect in _file_redirects(redirects):
            targets = self.words([child for child in redirect.children if child.type in WORDS][:1])
            added = any(child.type == ">>" for child in redirect.children)
            for target in targets:
                self.note_text(target, text, added=added)

    def note_input(self, args: list[str], text: str | None) -> None:
        """Record the text that `tee` writes."""
        for word in args:
            if not word.startswith("-"):
                self.note_text(word, text, added="-a" in args)

    def note_text(self, word: str, text: str | None, *, added: bool = False) -> None:
        """Record what is written to a file."""
        if self.collector.context is not None and not is_unknown(word):
            self.collector.written += [(path, text, added) for path in self._paths(word)]


def _file_redirects(redirects: Iterable[Node]) -> Iterator[Node]:
    for redirect in redirects:
        if redirect.type == "file_redirect" and any(child.type in {">", ">>", ">|"} for child in redirect.children):
            yield redirect
        elif redirect.type == "heredoc_redirect":
            yield from _file_redirects(redirect.children)


def _printed(words: list[str], stdin: str | None) -> str | None:
    """Return the text that a command prints; `None` if it is only known when it runs."""
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
    if not args:
        return ""
    values = iter([*args[1:]])
    parts = re.split(r"%[-\d.]*[sbdiq]", unescape(args[0]))
    text = parts[0] + "".join(next(values, "") + part for part in parts[1:])
    return text + "".join(value + parts[-1] for value in values)


def _known_effects(text: str, language: str, args: list[str]) -> Iterator[Effect]:
    """Yield the effects of code in a file, except unknown ones, which harmless code has as well."""
    from fairlead.policy.bash.programs._code import code_effects  # its expressions take time to compile

    for effect in code_effects(RunCode(language, text, args)):
        if not isinstance(effect, UnknownEffect):
            yield effect


def _language(path: str, text: str) -> str | None:
    """Return the interpreter of a script that is run by its name; `None` for a program that is not a script."""
    if "\0" in text[:1024]:
        return None
    match = re.match(_SHEBANG, text)
    if match is None:
        return _LANGUAGES.get(path.rpartition("/")[2].rpartition(".")[2], "sh")
    words = [match[1], *(match[2] or "").split()]
    if basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word] or ["sh"]
    program = basename(words[0]).rstrip("0123456789.")
    if program == "node" or program in {"deno", "bun", "tsx", "ts-node"}:
        return "node"
    return "sh" if program in _SHELLS else program
