"""Collects the commands and files of an analysis, and resolves paths after `cd`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fairlead.policy.bash._types import Analysis, FileAccess, SimpleCommand
from fairlead.policy.bash._words import ANY_DEPTH, ONE_OF, as_pattern, is_glob, is_unknown, plain
from fairlead.policy.bash.programs._calls import Access
from fairlead.policy.paths._selection import Selection
from fairlead.structs import Struct, replace

if TYPE_CHECKING:
    from fairlead.policy.bash._context import AnalysisContext
    from fairlead.policy.bash.programs._calls import GitCommand, Mention, Mode

    OuterScript: TypeAlias = tuple[str | None, tuple[tuple[str, ...], ...], bool]

_DEVICE: Final = re.compile(r"/dev/(?:null|std(?:in|out|err)|tty|zero|full|u?random|fd/\d+)")
_PROC_FOLDER: Final = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(cwd|root)(?=/|$)")
_VERBS: Final = {
    "read": "reads", "write": "writes", "create": "creates", "delete": "deletes", "move": "moves",
    "list": "lists", "any": "is given",
}  # fmt: skip
_MAX_FOLDERS: Final = 8
COPY_PROGRAMS: Final = frozenset({"cp", "mv", "ln", "install"})
"""Programs that give a file another name without changing its contents."""


class WorkingFolder(Struct, frozen=True):
    """A folder in which a command may run."""

    path: str | None = "."
    """`None` if it is not known."""
    unless: str | None = None
    """The command only runs here if this path is not a folder, because `cd` to it then fails."""
    glob: bool = False
    """The path is a pattern that matches the folder."""


Folders: TypeAlias = tuple[WorkingFolder, ...]
"""The folders in which a command may run: several, if a `cd` may fail."""
START_FOLDERS: Final = (WorkingFolder(),)
UNKNOWN_FOLDERS: Final = (WorkingFolder(None),)


class WrittenText(NamedTuple):
    """The text that a command writes to a file."""

    text: str | None
    """`None` if it is not known."""
    whole: bool
    """Whether the text is the whole file; otherwise it is appended to the file on the disk."""


class Collector:
    """Collects the result of an analysis."""

    def __init__(self, context: AnalysisContext | None = None) -> None:
        self.context = context
        self.current_script: str | None = None
        """The script that is being analysed."""
        self.calls: tuple[tuple[str, ...], ...] = ()
        """The stack of scripts that run one another, each with its arguments."""
        self.tracked = False
        """Whether all scripts of the stack belong to the project. Their unknown effects are not reported."""
        self.script_length = 0
        """The number of characters in all shell scripts that were analysed."""
        self.written: list[tuple[str, str | None, bool]] = []
        """The files that the command writes: path, text if it is known, and whether the text is appended."""
        self.commands: list[SimpleCommand] = []
        self.files: dict[FileAccess, None] = {}
        self._changes_folders = False
        """Whether the command may create or remove folders."""
        self._runs_unknown = False
        self.unknown: dict[str, None] = {}
        self.unknown_reads: dict[str, None] = {}
        self.mentions: dict[FileAccess, None] = {}
        self.programs: dict[str, None] = {}
        self.scripts: dict[str, None] = {}
        self.git: list[GitCommand] = []
        self.assigned: dict[str, None] = {}

    def add_unknown(self, text: str, *, runs: bool = False) -> None:
        """Add the description of an unknown effect. `runs`: whether the unknown part is a command or code."""
        if not self.tracked:
            self.unknown[text] = None
            self._runs_unknown |= runs

    def add_command(self, command: SimpleCommand) -> None:
        """Add a simple command of the analysed command, or of a script that it runs."""
        if self.current_script is not None:  # allow rules check what the agent calls, deny rules all that runs
            command = SimpleCommand(command.words, implied=True, variables=command.variables)
        self.commands.append(command)

    def enter_script(self, path: str, call: tuple[str, ...], *, tracked: bool) -> OuterScript:
        """Start the analysis of a script; return the state for `leave_script`."""
        outer = self.current_script, self.calls, self.tracked
        self.tracked = tracked and (self.tracked or self.current_script is None)
        self.current_script, self.calls = path, (*self.calls, call)
        return outer

    def leave_script(self, outer: OuterScript) -> None:
        """End the analysis of a script."""
        self.current_script, self.calls, self.tracked = outer

    def writers_of(self, path: str) -> set[str]:
        """Return the programs of this command that certainly write the file at an absolute path."""
        absolute = (lambda name: name) if self.context is None else self.context.absolute
        return {
            file.program
            for file in self.files
            if file.mode in {"write", "create"} and not (file.if_exists or file.glob) and absolute(file.path) == path
        }

    def written_text(self, path: str) -> WrittenText | None:
        """Return the text that this command writes to an absolute path; `None` if it does not write to it."""
        result: WrittenText | None = None
        for name, text, added in self.written:
            if self.context is not None and self.context.absolute(name) == path:
                before = result if added and result is not None else WrittenText("", whole=not added)
                known = before.text is not None and text is not None
                result = WrittenText(f"{before.text}{text}" if known else None, whole=before.whole)
        return result

    def copied(self) -> list[str]:
        """Return the files that are copied, moved or linked."""
        return [file.path for file in self.files if file.mode in {"read", "move"} and file.program in COPY_PROGRAMS]

    def add_access(self, access: Access, program: str, folders: Folders) -> None:
        """Add the access to a file, once for each folder in which the command may run."""
        word = access.word
        if is_unknown(word):
            text = f"which file {program} {_VERBS[access.mode]} is only known when it runs: {plain(word)}"
            if not self.tracked and access.mode != "list":
                (self.unknown_reads if access.mode == "read" else self.unknown)[text] = None
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
        collected = self.mentions if ONE_OF in word and not self.tracked else self.files
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
        """Add a file that is an argument of a program with unknown effects."""
        word = mention.word
        if ANY_DEPTH in word:
            word = word.partition(ANY_DEPTH)[0]
        path = "" if is_unknown(word) or self.tracked else word_path(word)
        if path in {"", "-"} or (path[:5] == "/dev/" and _DEVICE.fullmatch(path)):
            return
        mode: Mode = "read" if mention.reads_only else "any"
        for folder in folders:
            at = join_folder(folder.path, path)
            self.mentions[FileAccess(at, mode, program, is_glob(word) or folder.glob, mention.below, folder.path)] = (
                None
            )

    def add_git(self, command: GitCommand, folders: Folders) -> None:
        """Add a call of git, once for each folder in which it may run."""
        tracked = self.tracked
        self.git += [replace(command, folder=folder.path, tracked=tracked) for folder in folders]

    def result(self) -> Analysis:
        """Return the result."""
        return Analysis(
            tuple(dict.fromkeys(self.commands)),
            self._files(),
            tuple(self.unknown),
            tuple(self.unknown_reads),
            tuple(self.mentions),
            tuple(self.programs),
            tuple(self.scripts),
            tuple(self.assigned),
            tuple(self.git),
            self._runs_unknown,
        )

    def _files(self) -> tuple[FileAccess, ...]:
        """Return the files, without conditions on folders that the command itself creates or removes."""
        if not self._changes_folders:
            return tuple(self.files)
        created = {file.path for file in self.files if file.mode == "create"}
        removed = {file.path for file in self.files if file.mode in {"delete", "move"}}
        return tuple(
            replace(
                file,
                if_folder=None if file.if_folder in created else file.if_folder,
                unless_folder=None if file.unless_folder in removed else file.unless_folder,
            )
            for file in self.files
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


def word_path(word: str) -> str:
    """Return a word as a path, or as a file pattern."""
    if word.isascii() and word[:1] not in {"~", "/"}:
        return word  # nothing in it was quoted
    path = as_pattern(word) if is_glob(word) else plain(word)
    if path[:1] == "~" and word[0] != "~":
        return f"./{path}"  # a quoted tilde is literal
    if path[:2] == "~+":
        return "." + path[2:]
    if path.startswith("/proc/"):
        own = _PROC_FOLDER.match(path)
        return path if own is None else ("." if own[1] == "cwd" else "") + path[own.end() :]
    return path


def join_folder(folder: str | None, path: str) -> str:
    """Return a path relative to the folder in which the whole command starts."""
    if folder in {None, "."} or path[:1] in {"/", "~"}:
        return path
    return f"{folder}/{path}"


def change_folder(folders: Folders, word: str) -> Folders:
    """Return the folders after `cd word`."""
    if is_unknown(word) or ANY_DEPTH in word:
        return UNKNOWN_FOLDERS
    path, glob = word_path(word).rstrip("/") or "/", is_glob(word)
    if path[0] in {"/", "~"}:
        return (WorkingFolder(path, glob=glob),)
    return tuple(
        WorkingFolder(None if at.path is None else join_folder(at.path, path), at.unless, glob or at.glob)
        for at in folders
    )


def merge_folders(first: Folders, second: Folders, unless: str | None = None) -> Folders:
    """Return both sets of folders; those of the second only if `unless` is not a folder."""
    if first == second:
        return first
    known = {at.path for at in first}
    both = (*first, *(WorkingFolder(at.path, at.unless or unless, at.glob) for at in second if at.path not in known))
    return both if len(both) <= _MAX_FOLDERS else UNKNOWN_FOLDERS
