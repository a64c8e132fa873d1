"""Analyses the scripts and task files that a command runs, whether they are on the disk or written by the same command.

A script that git tracks and that is unchanged belongs to the project. Its unknown effects are not reported: it is not
new, and the user would be asked at every build. The files that it names are checked as in any other script.

Knows which scripts run in which language. What the text of a script does, and what programs do, is left to the
interfaces of `_recursion`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._syntax import is_too_long
from fairlead.policy.bash._words import ANY_DEPTH, TooManyWords, is_glob, is_unknown, plain, quote, replace_private
from fairlead.policy.bash.programs._calls import RunCode, RunFile, UnknownEffect
from fairlead.policy.bash.programs._unknown_programs import mentions
from fairlead.policy.bash.scripts._languages import find_language
from fairlead.policy.bash.shell._folders import change_folder, word_path
from fairlead.policy.bash.shell._scope import TooComplex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.bash._collector import Collector
    from fairlead.policy.bash._recursion import EffectAnalyser, ScriptAnalyser
    from fairlead.policy.bash.programs._calls import Effect
    from fairlead.policy.bash.scripts._files import CommandFiles, Script
    from fairlead.policy.bash.shell._scope import Scope

_MAX_DEPTH: Final = 4
"""The maximum number of scripts that run one another."""
_MAX_ALL_SCRIPTS: Final = 96 * 1024
"""The maximum number of characters in all shell scripts of an analysis."""
_MAX_GLOBBED: Final = 12
"""The maximum number of scripts that a glob may match."""
_MAX_ABOVE: Final = 6
"""One more than the number of parent folders in which a task file is searched for."""
_ANALYSED_LANGUAGES: Final = frozenset({"awk", "sed", "sqlite"})
"""Languages with an analysis of their own; in all others the code is searched for literals."""
_TASK_FILES: Final = frozenset({"make", "npm", "just", "task"})
_FOUND_ABOVE: Final = frozenset({"npm", "just", "task"})
"""Task files that are also searched for in the parent folders."""
_SAME_SHELL: Final = frozenset({"source", "."})
_ACCESSES: Final = (
    *("write", "remove", "unlink", "delete", "rename", "replace", "truncate", "open", "read", "rm", "copy", "move"),
    *("system", "exec", "run"),
)
"""A line of code that accesses a file has one of these words in it."""


class ScriptFileAnalyser:
    """Analyses the scripts that the commands of one script run."""

    def __init__(
        self,
        files: CommandFiles,
        scope: Scope,
        collector: Collector,
        effects: EffectAnalyser,
        scripts: ScriptAnalyser,
    ) -> None:
        self._files = files
        self._scope = scope
        self._collector = collector
        self._effects = effects
        self._scripts = scripts

    def analyse_file(self, run: RunFile, program: str) -> None:
        """Analyse a script, or the tasks of a task file; `program` runs it.

        What cannot be known is collected as an unknown effect: which script runs, or what it does, because it cannot be
        read, is too long, or is nested too deep. Raises nothing but the `NeedsThread` of the context.
        """
        if is_unknown(run.word):
            if run.language == "sh":
                text = f"which script {program} runs is only known when it runs: {plain(run.word)}"
                self._collector.add_unknown(text, runs=True)
            return
        root = run.word.partition(ANY_DEPTH)[0].rstrip("/") if ANY_DEPTH in run.word else ""
        if root and any(map(self._files.is_file, self._files.paths_of(root))):  # `find x.sh -exec sh {} ;`
            self._analyse_named(run._replace(word=root), program)
        elif is_glob(run.word) or ANY_DEPTH in run.word:
            self._analyse_globbed(run._replace(word=run.word.replace(ANY_DEPTH, "**/")), program)
        elif run.language == "start-up":
            self._analyse_startup_file(run, program)
        else:
            self._analyse_named(run, program)

    def _analyse_named(self, run: RunFile, program: str) -> None:
        has_script = False
        for path in self._files.paths_of(run.word):
            for script in self._files.find_scripts(path):
                has_script = True
                self._analyse_script(script, run, program, path)
        if not has_script and run.has_known_fallback:
            return
        if run.language not in _TASK_FILES and not (has_script and run.language == "sh"):
            self._effects.apply_effects(mentions(run.args), program)
        elif not has_script and run.language in _FOUND_ABOVE and "/" not in run.word:
            self._analyse_above(run, program)
        elif not has_script and run.required:
            self._effects.apply_effects(mentions(run.args), program)

    def _analyse_globbed(self, run: RunFile, program: str) -> None:
        """Analyse the scripts that a glob matches; if they are too many, collect an unknown effect as well."""
        from fairlead.policy.paths._resolve import PathResolver
        from fairlead.policy.paths._search import TooManyFiles, expand

        context = self._files.context
        context.has_searched = True
        for pattern in self._files.paths_of(run.word):
            try:
                paths = [context.absolute(found.given) for found in expand(pattern, PathResolver(context.cwd))]
            except TooManyFiles:
                paths = [""] * (_MAX_GLOBBED + 1)
            if len(paths) > _MAX_GLOBBED:
                self._collector.add_unknown(f"which of many scripts {program} runs: {plain(run.word)}", runs=True)
            for path in filter(None, paths[:_MAX_GLOBBED]):
                self.analyse_file(run._replace(word=quote(path)), program)

    def _analyse_startup_file(self, run: RunFile, program: str) -> None:
        """Analyse a start-up file of the user's shell, if this command writes it."""
        if self._files.is_written(word_path(run.word)):
            self.analyse_file(RunFile(run.word, "sh", run.args), program)

    def _analyse_above(self, run: RunFile, program: str) -> None:
        """Analyse the task file of the nearest parent folder that has one. Its commands run in that folder."""
        for folder in ("/".join([".."] * depth) for depth in range(1, _MAX_ABOVE)):
            scripts = [
                (path, script)
                for path in self._files.paths_of(f"{folder}/{run.word}")
                for script in self._files.find_named_scripts(path, path)
            ]
            saved = self._scope.enter_subshell()
            self._scope.folders = change_folder(self._scope.folders, folder)
            for path, script in scripts:
                self._analyse_script(script, run, program, path)
            self._scope.leave_subshell(saved)
            if scripts:
                return

    def _analyse_script(self, script: Script, run: RunFile, program: str, path: str) -> None:
        """Analyse a script that was found at a path, unless it is already being analysed with the same arguments."""
        collector = self._collector
        if script.text is None:
            if not script.tracked:
                collector.add_unknown(f"what {script.path} does, which {program} runs: it cannot be read here")
            return
        language = run.language or find_language(script.path, script.text)
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
            self._analyse_text(script, script.text, language, run, same_shell=program in _SAME_SHELL)
        except (TooComplex, RecursionError, TooManyWords):
            collector.add_unknown(f"what {script.path} does: it is too long or nested too deep")
        finally:
            collector.leave_script(outer)

    def _analyse_text(self, script: Script, text: str, language: str, run: RunFile, *, same_shell: bool) -> None:
        if language in _TASK_FILES:
            self._analyse_tasks(text, language, run)
        elif language == "sh":
            self._analyse_shell_script(script.path, text, run.args, same_shell=same_shell)
        else:
            self._analyse_code(text, language, run, tracked=script.tracked)

    def _analyse_shell_script(self, path: str, text: str, args: list[str], *, same_shell: bool) -> None:
        text = replace_private(text)
        self._scope.script_length += len(text)
        if is_too_long(text) or self._scope.script_length > _MAX_ALL_SCRIPTS:
            raise TooComplex
        if same_shell:
            self._source_script(text, args)
            return
        saved = self._scope.enter_subshell()
        self._scope.set_script_arguments(path, args)
        try:
            self._scripts.analyse_script(text, same_shell=True)
        finally:
            self._scope.leave_subshell(saved)

    def _source_script(self, text: str, args: list[str]) -> None:
        """Analyse a script that the shell itself runs: its folder and variables remain, its arguments do not."""
        if not args:
            self._scripts.analyse_script(text, same_shell=True)
            return
        saved = self._scope.arguments()
        self._scope.set_arguments(args)
        try:
            self._scripts.analyse_script(text, same_shell=True)
        finally:
            self._scope.restore_arguments(saved)

    def _analyse_code(self, text: str, language: str, run: RunFile, *, tracked: bool) -> None:
        """Analyse a script in another language by its literals. Unknown effects are not reported."""
        if tracked and language not in _ANALYSED_LANGUAGES:
            lines = text.splitlines()
            text = "\n".join(line for line in lines if any(word in line.lower() for word in _ACCESSES))
        self._effects.apply_effects(_known_effects(text, language, run.args), language)

    def _analyse_tasks(self, text: str, language: str, run: RunFile) -> None:
        from fairlead.policy.bash.tasks._find import find_commands

        for task in find_commands(language, text, [plain(arg) for arg in run.args], self._files.read_disk):
            if task.language in {None, "sh"}:
                self._scripts.analyse_script(task.text, same_shell=False)
            else:
                self._effects.apply_effects(_known_effects(task.text, task.language or "", []), task.language or "")


def _known_effects(text: str, language: str, args: list[str]) -> Iterator[Effect]:
    """Yield the effects of code in a file, except unknown ones, which harmless code has as well."""
    from fairlead.policy.bash.programs._code import code_effects  # its expressions take time to compile

    for effect in code_effects(RunCode(language, text, args)):
        if not isinstance(effect, UnknownEffect):
            yield effect
