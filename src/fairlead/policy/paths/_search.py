"""What is on the disk behind a glob or below a folder, up to a bound."""

from __future__ import annotations

import os
from itertools import islice
from stat import S_IFDIR, S_IFREG
from typing import TYPE_CHECKING

from fairlead.policy.paths._resolve import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.paths._resolve import Disk

MAX_ENTRIES = 20_000
MAX_MATCHES = 2_000
MAX_LOOKED_AT = 20_000
_MAGIC = frozenset("*?[")


class TooMany(Exception):
    """There is more than we are ready to look at."""


def expand(pattern: str, disk: Disk) -> list[Target]:
    """Find what a glob means to the shell now."""
    absolute = os.path.join(disk.cwd, os.path.expanduser(pattern))
    found = list(islice(_Glob(pattern).find(absolute), MAX_MATCHES + 1))
    if len(found) > MAX_MATCHES:
        raise TooMany(f"{pattern} means more than {MAX_MATCHES} files")
    return [disk.target(path) for path in found]


class _Glob:
    """One walk for a glob. Unlike the library's, it is bounded by what it looks at, not by what it finds."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._left = MAX_LOOKED_AT

    def find(self, absolute: str) -> Iterator[str]:
        """Give what there is; `**` is any number of folders, and hidden names have to be named."""
        only_folders = absolute.endswith("/")
        for path in self._below("/", [part for part in absolute.split("/") if part]):
            if not only_folders or os.path.isdir(path):
                yield path

    def _below(self, folder: str, parts: list[str]) -> Iterator[str]:
        if not parts:
            yield folder
            return
        part, rest = parts[0], parts[1:]
        if part == "**":
            yield from self._below(folder, rest)
            for name, is_folder in self._entries(folder):
                if is_folder and not name.startswith("."):
                    yield from self._below(f"{folder}{name}/", parts)
                elif not rest and not name.startswith("."):
                    yield folder + name
        elif _MAGIC.isdisjoint(part):
            path = folder + part
            if rest and os.path.isdir(path):
                yield from self._below(f"{path}/", rest)
            elif not rest and os.path.lexists(path):
                yield path
        else:
            yield from self._matching(folder, part, rest)

    def _matching(self, folder: str, part: str, rest: list[str]) -> Iterator[str]:
        from fnmatch import fnmatchcase

        for name, is_folder in self._entries(folder):
            if (name.startswith(".") and not part.startswith(".")) or not fnmatchcase(name, part):
                continue
            if not rest:
                yield folder + name
            elif is_folder:
                yield from self._below(f"{folder}{name}/", rest)

    def _entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        try:
            entries = _entries(folder, MAX_LOOKED_AT)
        except OSError:  # what the shell cannot list either
            return
        for entry in entries:
            self._left -= 1
            if self._left < 0:
                raise TooMany(f"{self._shown} looks at more than {MAX_LOOKED_AT} files")
            yield entry.name, entry.is_dir()


def below(folder: Target) -> Iterator[Target]:
    """Go through all that is below a folder, under each name of the folder; git's own files are left out."""
    for relative, is_folder, _ in _walked(folder):
        yield _inside(folder, relative, is_folder=is_folder)


def twins(file: Target, folder: Target) -> Iterator[Target]:
    """Find the same file below a folder, under the other names that hard links give it."""
    device, inode, *_ = file.version
    left = file.links
    try:
        for relative, is_folder, entry in _walked(folder):
            if is_folder or entry.inode() != inode or entry.stat(follow_symlinks=False).st_dev != device:
                continue
            twin = _inside(folder, relative, is_folder=False)
            if twin.disk != file.disk:
                twin.given = f"{file.given} (a hard link to {twin.given})"
                yield twin
            left -= 1
            if not left:
                return
    except TooMany as error:
        raise TooMany(f"whether {file.given}, which has hard links, is a protected file: {error}") from None


def _inside(folder: Target, relative: str, *, is_folder: bool) -> Target:
    names = tuple(f"{name.rstrip('/')}/{relative}" for name in folder.names)
    shown = f"{folder.given.rstrip('/')}/{relative}"
    return Target(shown, names, names[-1], S_IFDIR if is_folder else S_IFREG, blind=folder.blind)


def _walked(folder: Target) -> Iterator[tuple[str, bool, os.DirEntry[str]]]:
    left = MAX_ENTRIES
    waiting = [""]
    while waiting:
        above = waiting.pop()
        for entry in _entries(f"{folder.disk}/{above}", MAX_ENTRIES):
            left -= 1
            if left < 0:
                raise TooMany(f"{folder.given} holds more than {MAX_ENTRIES} files")
            is_folder = entry.is_dir(follow_symlinks=False)
            relative = above + entry.name
            yield relative, is_folder, entry
            if is_folder and entry.name != ".git":
                waiting.append(f"{relative}/")


def _entries(folder: str, most: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, most + 1))
    except (FileNotFoundError, NotADirectoryError):
        return []
