"""Collects what a walk through a shell command finds, and puts paths where `cd` has led."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.policy.bash._types import Analysis, FileUse, Simple
from fairlead.policy.bash._words import as_pattern, is_glob, is_unknown, plain

if TYPE_CHECKING:
    from fairlead.policy.bash.programs._calls import Use

_DEVICE: Final = re.compile(r"/dev/(?:null|std(?:in|out|err)|tty|zero|full|u?random|fd/\d+)")
_OWN_FOLDER: Final = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(cwd|root)(?=/|$)")
_VERBS: Final = {"read": "reads", "write": "writes", "create": "creates", "delete": "deletes", "move": "moves"}
_MOST_PLACES: Final = 8


class Place(msgspec.Struct, frozen=True):
    """A folder in which a command may run."""

    folder: str | None = "."
    unless: str | None = None
    """Only if this is no folder, because then `cd` fails."""


HERE: Final = (Place(),)
NOWHERE: Final = (Place(None),)


class Collector:
    """The answer in the making."""

    def __init__(self) -> None:
        self.commands: list[Simple] = []
        self.files: dict[FileUse, None] = {}
        self.moves = False
        """Whether folders may come or go."""
        self.unknown: dict[str, None] = {}
        self.unknown_reads: dict[str, None] = {}

    def doubt(self, text: str) -> None:
        """Note what cannot be understood."""
        self.unknown[text] = None

    def use(self, use: Use, program: str, places: tuple[Place, ...]) -> None:
        """Note a file, once for each folder in which the command may run."""
        word = use.word
        if is_unknown(word):
            text = f"which file {program} {_VERBS[use.mode]} is only known when it runs: {plain(word)}"
            (self.unknown_reads if use.mode == "read" else self.unknown)[text] = None
            return
        path = path_of(word)
        if path in {"", "-"} or (path[:5] == "/dev/" and _DEVICE.fullmatch(path)):
            return
        if path[:2] == "~-":
            self.doubt(f"which file {program} {_VERBS[use.mode]} depends on the folder before: {path}")
        mode, below, if_exists, glob = use.mode, use.below, use.if_exists, is_glob(word)
        self.moves |= mode not in {"read", "write"}
        into = None if use.if_folder is None else path_of(use.if_folder)
        for place in places:
            at = place.folder
            if_folder = None if into is None else join(at, into)
            found = FileUse(join(at, path), mode, program, glob, below, at, if_folder, place.unless, if_exists)
            self.files[found] = None

    def result(self) -> Analysis:
        """The answer."""
        return Analysis(
            tuple(dict.fromkeys(self.commands)), self._settled(), tuple(self.unknown), tuple(self.unknown_reads)
        )

    def _settled(self) -> tuple[FileUse, ...]:
        """Drop conditions on folders that the command itself makes or removes."""
        if not self.moves:
            return tuple(self.files)
        made = {use.path for use in self.files if use.mode == "create"}
        gone = {use.path for use in self.files if use.mode in {"delete", "move"}}
        return tuple(
            msgspec.structs.replace(
                use,
                if_folder=None if use.if_folder in made else use.if_folder,
                unless_folder=None if use.unless_folder in gone else use.unless_folder,
            )
            for use in self.files
        )


def path_of(word: str) -> str:
    """The path that a word names, or the pattern."""
    if word.isascii() and word[:1] not in {"~", "/"}:
        return word  # nothing in it was quoted
    path = as_pattern(word) if is_glob(word) else plain(word)
    if path[:1] == "~" and word[0] != "~":
        return f"./{path}"  # a quoted tilde is a name
    if path[:2] == "~+":
        return "." + path[2:]
    if path.startswith("/proc/"):
        own = _OWN_FOLDER.match(path)
        return path if own is None else ("." if own[1] == "cwd" else "") + path[own.end() :]
    return path


def join(folder: str | None, path: str) -> str:
    """A path as seen from where the whole command starts."""
    if folder in {None, "."} or path[:1] in {"/", "~"}:
        return path
    return f"{folder}/{path}"


def enter(places: tuple[Place, ...], word: str) -> tuple[Place, ...]:
    """Where `cd word` leads."""
    if is_unknown(word) or is_glob(word):
        return NOWHERE
    path = path_of(word).rstrip("/") or "/"
    if path[0] in {"/", "~"}:
        return (Place(path),)
    return tuple(Place(None if p.folder is None else join(p.folder, path), p.unless) for p in places)


def merge(first: tuple[Place, ...], second: tuple[Place, ...], unless: str | None = None) -> tuple[Place, ...]:
    """Both sets of places; those of the second only if `unless` is no folder."""
    if first == second:
        return first
    known = {place.folder for place in first}
    both = (*first, *(Place(p.folder, p.unless or unless) for p in second if p.folder not in known))
    return both if len(both) <= _MOST_PLACES else NOWHERE
