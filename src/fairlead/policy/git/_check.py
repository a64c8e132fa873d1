"""Checks the calls of git in one command, in their order. Imported with the first command that calls git.

A check that must run git, or read files, raises `NeedsThread` in an event loop, and a thread repeats it.
Most calls need neither: a `git status` shows no contents, and git's answers about a repository are cached.
"""

from __future__ import annotations

import os
import re
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._analysis import Analysis, analyse
from fairlead.policy.bash.programs._git_arguments import OWN_COMMANDS
from fairlead.policy.git._checkouts import GitCall
from fairlead.policy.git._commands import TREE_COMMANDS, named_files
from fairlead.policy.git._merges import CHANGE_FINDERS, REVISION_COMMANDS
from fairlead.policy.git._process import Deadline, GitProcess, NotKnown
from fairlead.policy.git._reads import SHOW_FINDERS, shown_files
from fairlead.policy.git._repository import Cache, has_repository, open_repository
from fairlead.policy.git._repository_state import RepositoryState
from fairlead.policy.paths._resolve import resolve
from fairlead.structs import asdict, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.policy.bash.programs._calls import GitCommand
    from fairlead.policy.git._repository import Repository
    from fairlead.policy.guards._evaluation import Evaluation
    from fairlead.policy.guards._git_guard import GitGuard
    from fairlead.policy.paths._resolve import ResolvedPath

    CheckFile = Callable[[Evaluation, ResolvedPath], str | None]
    Files = Callable[[GitCall], Iterator[str]]

_PATCHES: Final = frozenset({"apply", "am"})
_MAX_ALIASES: Final = 4
_ALIAS: Final = re.compile(r"[\w-]+")


class FileCheck(NamedTuple):
    """How the files that a call changes or shows are checked."""

    note: str
    """What git does with the file, for the message."""
    check: CheckFile
    wanted: Callable[[str, str], bool]
    """Gets the root of a working tree and a path in it, and returns whether that file has to be checked."""
    cache: Cache
    reads: bool = False


class FileChecks:
    """The file checks of a guard, each with a cache of git's output."""

    def __init__(self, guard: GitGuard) -> None:
        self.changed = FileCheck("would change it", guard.check_change, guard.is_protected, Cache())
        self.patched = FileCheck("would change it", guard.check_patch, _any_file, Cache())
        self.shown = FileCheck("shows it", guard.files.check_read, guard.is_unreadable, Cache(), reads=True)


def _any_file(_root: str, _path: str) -> bool:
    return True


class GitCheck:
    """Checks the calls of git in one command."""

    def __init__(self, guard: GitGuard, evaluation: Evaluation, analysis: Analysis, file_checks: FileChecks) -> None:
        self._guard, self._evaluation, self._analysis, self._file_checks = guard, evaluation, analysis, file_checks
        self._deadline = Deadline()
        self._states: dict[tuple[bool, str], RepositoryState] = {}
        self._changes_git = False
        self._written: set[str] = set()

    def _read_files(self) -> None:
        """Record which files the command writes without git: patches, and files in git's folder."""
        files = self._analysis.files
        self._changes_git = any(
            access.mode not in {"read", "list"} and "/.git/" in f"/{access.path}" for access in files
        )
        self._written = {
            os.path.normpath(access.path) for access in files if access.mode in {"write", "create", "move"}
        }

    def run(self) -> str | None:
        """Return why the command is blocked, or `None`. Unknown effects are added to the evaluation."""
        names = {command.name for command in self._analysis.git}
        rules = self._guard.files
        changes = not names.isdisjoint(TREE_COMMANDS) and self._guard.has_files
        reads = not names.isdisjoint(SHOW_FINDERS) and bool(rules.unreadable)
        if not (changes or reads):
            return None
        self._read_files()
        for command in self._analysis.git:
            blocked = None
            if changes and command.name in CHANGE_FINDERS:
                blocked = self._check_changes(command)
            if blocked is None and reads and command.name in SHOW_FINDERS:
                blocked = self._check(command, shown_files, self._file_checks.shown)
            elif blocked is None and reads and command.name in REVISION_COMMANDS:
                self._check(command, CHANGE_FINDERS[command.name], self._file_checks.shown)
            if blocked is not None:
                return blocked
        return None

    def _check_changes(self, command: GitCommand) -> str | None:
        files, is_patch = CHANGE_FINDERS[command.name], command.name in _PATCHES
        if is_patch and not self._written.isdisjoint(map(os.path.normpath, command.args)):
            self._add_unknown(command, f"which files the patch changes that the command gives to git {command.name}")
            return None
        return self._check(command, files, self._file_checks.patched if is_patch else self._file_checks.changed)

    def _check(self, command: GitCommand, files: Files, file_check: FileCheck) -> str | None:
        try:
            repository = self._open(command, file_check)
            if repository is None:
                return None
            self._evaluation.paths.resolve(repository.root)  # the policies above it apply too
            state = self._states.setdefault((file_check.reads, repository.root), RepositoryState(repository.branch()))
            state.is_unpredictable |= self._changes_git and not file_check.reads
            for call in GitCall(command, repository, state).variants():
                for path in files(call):
                    target = located(repository.root, path, f"git {command.name} {file_check.note}")
                    if blocked := file_check.check(self._evaluation, target):
                        return blocked
        except NotKnown as problem:
            self._add_unknown(command, str(problem), reads=file_check.reads)
        return None

    def _add_unknown(self, command: GitCommand, problem: str, *, reads: bool = False) -> None:
        """Add an unknown effect, if there are rules on files that it may concern."""
        rules = self._guard.files.unreadable if reads else self._guard.files.uneditable
        if rules and not command.tracked:
            self._evaluation.unknowns.append(problem)

    def _open(self, command: GitCommand, file_check: FileCheck) -> Repository | None:
        folder = folder_of(self._evaluation, command)
        if folder is None:
            if command.name in TREE_COMMANDS or command.name in SHOW_FINDERS:
                raise NotKnown(f"in which folder git {command.name} runs")
            return None
        if not set(command.options).isdisjoint(command.unknown):
            raise NotKnown(f"in which repository git {command.name} runs")
        process = git_process(self._evaluation, command, folder, self._deadline)
        return open_repository(process, file_check.wanted, file_check.cache)


def located(root: str, path: str, note: str) -> ResolvedPath:
    """Return a file of a working tree. Its `given` is the path with a note, for the message."""
    target = resolve(f"{root}/{path}", root)
    target.given = f"{path} ({note})"
    return target


def folder_of(evaluation: Evaluation, command: GitCommand) -> str | None:
    """Return the folder in which a call runs; `None` if the folder is only known when the call runs."""
    if command.folder is None:
        return None
    return os.path.normpath(os.path.join(evaluation.cwd, os.path.expanduser(command.folder)))


def git_process(evaluation: Evaluation, command: GitCommand, folder: str, deadline: Deadline) -> GitProcess:
    """Return a `GitProcess` for a call in a folder."""
    return GitProcess(folder, command.options, deadline, may_wait=evaluation.may_wait)


# -- aliases, and folders without a repository ---------------------------------------------------------


def expand(evaluation: Evaluation, analysis: Analysis) -> Analysis:
    """Return an analysis with git's aliases expanded, and with the files of calls outside of a repository."""
    pending = analysis.git
    for _ in range(_MAX_ALIASES):
        aliases = {command: script for command in pending if (script := _alias(evaluation, command))}
        if not aliases:
            break
        pending = ()
        for command, script in aliases.items():
            inner = analyse(script)
            pending += inner.git
            analysis = _joined(_without_program(analysis, f"git-{command.name}"), inner)
    files = [
        access
        for command in analysis.git
        if (named := named_files(command)) and not _is_in_repository(evaluation, command)
        for access in named
    ]
    return replace(analysis, files=(*analysis.files, *files)) if files else analysis


def _is_in_repository(evaluation: Evaluation, command: GitCommand) -> bool:
    """Return whether git finds a repository for a call; `True` if the folder of the call is not known."""
    folder = folder_of(evaluation, command)
    return folder is None or has_repository(folder, command.options)


def _alias(evaluation: Evaluation, command: GitCommand) -> str | None:
    """Return the script that an alias stands for; `None` if the call uses none.

    If git cannot be asked, return `None`, and add an unknown effect to the evaluation.
    """
    if command.name in OWN_COMMANDS or not _ALIAS.fullmatch(command.name):
        return None
    folder = folder_of(evaluation, command)
    if folder is None or not os.path.isdir(folder):
        return None
    try:
        alias = git_process(evaluation, command, folder, Deadline()).run(
            "config", "--get", f"alias.{command.name}", may_fail=True
        )
    except NotKnown as problem:
        evaluation.unknowns.append(f"what git {command.name} stands for: {problem}")
        return None
    text = os.fsdecode(alias or b"").strip()
    words = "".join(f" {quote(word)}" for word in command.args)
    script = text[1:] + words if text.startswith("!") else f"git {text}{words}"
    return f"cd {quote(folder)} && {script}" if text else None


def _without_program(analysis: Analysis, program: str) -> Analysis:
    """Return an analysis without an unknown program that turned out to be an alias."""
    return replace(
        analysis,
        mentions=tuple(mention for mention in analysis.mentions if mention.program != program),
        programs=tuple(name for name in analysis.programs if name != program),
    )


def _joined(outer: Analysis, inner: Analysis) -> Analysis:
    """Return the combination of two analyses."""
    fields = asdict(outer)
    return Analysis(**{name: value + getattr(inner, name) for name, value in fields.items()})
