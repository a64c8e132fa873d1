"""The folders in which a command may run, and the paths of its words in them. Looks at no disk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import ANY_DEPTH, as_pattern, is_glob, is_unknown, plain
from fairlead.structs import Struct

if TYPE_CHECKING:
    from typing import TypeAlias

    Folders: TypeAlias = "tuple[WorkingFolder, ...]"
    """The folders in which a command may run: several, if a `cd` may fail."""

_PROC_FOLDER: Final = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(cwd|root)(?=/|$)")
_MAX_FOLDERS: Final = 8


class WorkingFolder(Struct, frozen=True):
    """A folder in which a command may run."""

    path: str | None = "."
    """`None` if it is not known."""
    unless: str | None = None
    """The command only runs here if this path is not a folder, because `cd` to it then fails."""
    glob: bool = False
    """The path is a pattern that matches the folder."""


START_FOLDERS: Final = (WorkingFolder(),)
UNKNOWN_FOLDERS: Final = (WorkingFolder(None),)


def change_folder(folders: Folders, word: str) -> Folders:
    """Return the folders after `cd word`; `UNKNOWN_FOLDERS` if the word is not known."""
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
    """Return both sets of folders; the second set applies only if the path `unless` is not a folder.

    Returns `UNKNOWN_FOLDERS` if there are too many folders.
    """
    if first == second:
        return first
    known = {at.path for at in first}
    both = (*first, *(WorkingFolder(at.path, at.unless or unless, at.glob) for at in second if at.path not in known))
    return both if len(both) <= _MAX_FOLDERS else UNKNOWN_FOLDERS


def join_folder(folder: str | None, path: str) -> str:
    """Return a path in a folder as a path relative to where the whole command starts.

    Returns the path unchanged if it is absolute, or if the folder is the start or not known (`None`).
    """
    if folder in {None, "."} or path[:1] in {"/", "~"}:
        return path
    return f"{folder}/{path}"


def word_path(word: str) -> str:
    """Return a word as a path, or as a file pattern if it is a glob."""
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
