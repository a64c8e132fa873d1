"""Collects the result of an analysis: commands, files, unknown effects. Looks at no disk and at no syntax tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._types import Analysis, FileAccess, SimpleCommand
from fairlead.policy.bash._words import ANY_DEPTH, ONE_OF, as_pattern, is_glob, is_unknown, plain
from fairlead.policy.bash.programs._calls import Access
from fairlead.policy.bash.shell._folders import join_folder, word_path
from fairlead.policy.paths._selection import Selection
from fairlead.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from fairlead.policy.bash.programs._calls import GitCommand, Mention, Mode
    from fairlead.policy.bash.shell._folders import Folders

    OuterScript: TypeAlias = tuple[str | None, tuple[tuple[str, ...], ...], bool]
    """The `current_script`, `calls` and `tracked` of a collector before the analysis of a script."""
    UnknownEffects: TypeAlias = tuple[dict[str, None], dict[str, None]]
    """The descriptions of unknown effects and of unknown reads."""

_DEVICE: Final = re.compile(r"/dev/(?:null|std(?:in|out|err)|tty|zero|full|u?random|fd/\d+)")
_VERBS: Final = {
    "read": "reads", "write": "writes", "create": "creates", "delete": "deletes", "move": "moves",
    "list": "lists", "any": "is given",
}  # fmt: skip


class Collector:
    """Collects the result of an analysis."""

    def __init__(self) -> None:
        self.current_script: str | None = None
        """The script that is being analysed; `None` for the command itself."""
        self.calls: tuple[tuple[str, ...], ...] = ()
        """The stack of scripts that run one another, each with its arguments."""
        self.tracked = False
        """Whether all scripts of the stack belong to the project, so that unknown effects are not reported."""
        self.files: dict[FileAccess, None] = {}
        self.programs: dict[str, None] = {}
        """The unknown programs that are called."""
        self.scripts: dict[str, None] = {}
        """The scripts that were analysed."""
        self._commands: list[SimpleCommand] = []
        self._mentions: dict[FileAccess, None] = {}
        self._git: list[GitCommand] = []
        self._unknown: dict[str, None] = {}
        self._unknown_reads: dict[str, None] = {}
        self._runs_unknown = False
        self._changes_folders = False
        """Whether the command may create or remove folders."""

    def add_unknown(self, text: str, *, runs: bool = False) -> None:
        """Add the description of an unknown effect, unless `tracked` is set.

        `runs`: whether the unknown part is a command or code.
        """
        if not self.tracked:
            self._unknown[text] = None
            self._runs_unknown |= runs

    def unknown_effects(self) -> UnknownEffects:
        """Return the unknown effects until now, for `restore_unknown_effects`."""
        return dict(self._unknown), dict(self._unknown_reads)

    def restore_unknown_effects(self, before: UnknownEffects) -> None:
        """Drop the unknown effects that were added since `unknown_effects` returned `before`."""
        self._unknown, self._unknown_reads = before

    def add_command(self, command: SimpleCommand) -> None:
        """Add a simple command, marked as implied if a script contains it."""
        if self.current_script is not None:  # allow rules check what the agent calls, deny rules all that runs
            command = SimpleCommand(command.words, implied=True, variables=command.variables)
        self._commands.append(command)

    def enter_script(self, path: str, call: tuple[str, ...], *, tracked: bool) -> OuterScript:
        """Start the analysis of a script; return the state for `leave_script`.

        `call` is the path with the arguments. `tracked`: whether the script belongs to the project.
        """
        outer = self.current_script, self.calls, self.tracked
        self.tracked = tracked and (self.tracked or self.current_script is None)
        self.current_script, self.calls = path, (*self.calls, call)
        return outer

    def leave_script(self, outer: OuterScript) -> None:
        """End the analysis of a script; `outer` is what `enter_script` returned."""
        self.current_script, self.calls, self.tracked = outer

    def add_access(self, access: Access, program: str, folders: Folders) -> None:
        """Add the access to a file, once for each folder in which the command may run.

        Ignores devices and `-`. If the word is not known, adds an unknown effect instead; for the mode `list`, or in a
        script of the project, nothing.
        """
        word = access.word
        if is_unknown(word):
            text = f"which file {program} {_VERBS[access.mode]} is only known when it runs: {plain(word)}"
            if not self.tracked and access.mode != "list":
                (self._unknown_reads if access.mode == "read" else self._unknown)[text] = None
            return
        path = word_path(word)
        if path in {"", "-"} or (path[:5] == "/dev/" and _DEVICE.fullmatch(path)):
            return
        if ANY_DEPTH in word:
            self.add_access(_below(access), program, folders)
            return
        if path[:2] == "~-":
            self.add_unknown(f"which file {program} {_VERBS[access.mode]} depends on the previous folder: {path}")
        self._changes_folders |= access.mode not in {"read", "write"}
        target = None if access.if_folder is None else word_path(access.if_folder)
        source = None if access.copy_of is None else word_path(access.copy_of)
        collected = self._mentions if ONE_OF in word and not self.tracked else self.files
        for folder in folders:
            at = folder.path
            file = FileAccess(
                join_folder(at, path), access.mode, program, is_glob(word) or folder.glob, access.below, at,
                None if target is None else join_folder(at, target), folder.unless, access.if_exists, access.selection,
                access.makes_folder, None if source is None else join_folder(at, source), access.literal,
            )  # fmt: skip
            collected[self._of_script(file) if self.current_script else file] = None

    def _of_script(self, file: FileAccess) -> FileAccess:
        return replace(file, script=self.current_script, tracked=self.tracked)

    def add_mention(self, mention: Mention, program: str, folders: Folders) -> None:
        """Add a file that is an argument of a program with unknown effects.

        Ignores words that are not known, devices, `-`, and any word in a script of the project.
        """
        word = mention.word
        if ANY_DEPTH in word:
            word = word.partition(ANY_DEPTH)[0]
        path = "" if is_unknown(word) or self.tracked else word_path(word)
        if path in {"", "-"} or (path[:5] == "/dev/" and _DEVICE.fullmatch(path)):
            return
        mode: Mode = "read" if mention.reads_only else "any"
        for folder in folders:
            at = join_folder(folder.path, path)
            file = FileAccess(at, mode, program, is_glob(word) or folder.glob, mention.below, folder.path)
            self._mentions[file] = None

    def add_git(self, command: GitCommand, folders: Folders) -> None:
        """Add a call of git, once for each folder in which it may run."""
        tracked = self.tracked
        self._git += [replace(command, folder=folder.path, tracked=tracked) for folder in folders]

    def result(self, assigned: Iterable[str] = ()) -> Analysis:
        """Return the result; `assigned` are the names of the variables that are set for the shell."""
        commands, files = self._commands, self.files
        return Analysis(
            tuple(dict.fromkeys(commands)) if len(commands) > 1 else tuple(commands),
            self._files() if files else (),
            tuple(self._unknown),
            tuple(self._unknown_reads),
            tuple(self._mentions),
            tuple(self.programs),
            tuple(self.scripts),
            tuple(assigned),
            tuple(self._git),
            self._runs_unknown,
        )

    def _files(self) -> tuple[FileAccess, ...]:
        """Return the possible accesses, without conditions on folders that the command itself creates or removes."""
        files = self.files
        if not self._changes_folders or all(file.if_folder is file.unless_folder is None for file in files):
            return tuple(files)
        created = {file.path for file in files if file.mode == "create"}
        removed = {file.path for file in files if file.mode in {"delete", "move"}}
        return tuple(
            replace(
                file,
                if_folder=None if file.if_folder in created else file.if_folder,
                unless_folder=None if file.unless_folder in removed else file.unless_folder,
            )
            for file in files
            if file.unless_folder is None or file.unless_folder not in created - removed
        )


def _below(access: Access) -> Access:
    """Return the access to the files below a folder: to all, or to those that match the last part of the word."""
    root, _, name = access.word.rpartition(ANY_DEPTH)
    root = root.replace(ANY_DEPTH, "")
    name = as_pattern(name.rpartition("/")[2])
    among = () if not name.strip("*") else (name,)
    root = root.rstrip("/") or root[:1] or "."
    return Access(access.mode, root, below=True, if_folder=access.if_folder, if_exists=True, selection=Selection(among))
