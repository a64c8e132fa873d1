"""Finds files on the disk: what a glob matches, what lies below a folder, other hard links. Bounded."""

from __future__ import annotations

import os
from itertools import islice
from stat import S_IFDIR, S_IFREG

from fairlead.policy.paths._resolve import ResolvedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.policy.paths._resolve import PathResolver

MAX_ENTRIES = 20_000
"""The maximum number of files below a folder that are visited."""
MAX_GLOB_ENTRIES = 20_000
"""The maximum number of files that one glob is compared with."""
MAX_GLOB_MATCHES = 2_000
_GLOB_CHARACTERS = frozenset("*?[")


class TooManyFiles(Exception):
    """There are more files than the limit."""


def expand(pattern: str, paths: PathResolver) -> list[ResolvedPath]:
    """Return the files that the shell would replace a glob with; relative paths if the glob is relative.

    Raise `TooManyFiles` if a limit is exceeded.
    """
    full = os.path.expanduser(pattern)
    folder = "/" if full.startswith("/") else f"{paths.cwd.rstrip('/')}/"
    matches = list(islice(_Glob(pattern).find(folder, full), MAX_GLOB_MATCHES + 1))
    if len(matches) > MAX_GLOB_MATCHES:
        raise TooManyFiles(f"{pattern} matches more than {MAX_GLOB_MATCHES} files")
    if folder == "/":
        return [paths.resolve(path) for path in matches]
    names = (path[len(folder) :] for path in matches)
    return [paths.resolve(f"./{name}" if name.startswith("~") else name or ".") for name in names]


class _Glob:
    """One search for a glob. Unlike `glob` of the library, it limits the files that are visited, not only matches."""

    def __init__(self, given: str) -> None:
        self._given = given
        self._left = MAX_GLOB_ENTRIES

    def find(self, folder: str, pattern: str) -> Iterator[str]:
        """Yield the matches below a folder. `**` is any number of folders; a hidden file needs a dot in the pattern.

        `folder` is taken literally, whatever characters are in its name.
        """
        only_folders = pattern.endswith("/")
        parts = [part for part in pattern.split("/") if part not in {"", "."}]
        once = [part for part, after in zip(parts, [*parts[1:], ""], strict=True) if part != "**" or after != "**"]
        for path in self._below(folder, once):
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
        elif _GLOB_CHARACTERS.isdisjoint(part):
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
            entries = _entries(folder, MAX_GLOB_ENTRIES)
        except OSError:  # the shell cannot list it either
            return
        for entry in entries:
            self._left -= 1
            if self._left < 0:
                raise TooManyFiles(f"{self._given} searches more than {MAX_GLOB_ENTRIES} files")
            yield entry.name, entry.is_dir()


def files_below(folder: ResolvedPath, enters: Callable[[ResolvedPath], bool] | None = None) -> Iterator[ResolvedPath]:
    """Yield the files and folders below a folder, under each name of the folder, without the contents of `.git`.

    `enters` returns whether to search below a folder. Raise `TooManyFiles` if a limit is exceeded.
    """

    def below(relative: str) -> bool:
        return enters is None or enters(_inside(folder, relative, is_folder=True))

    for relative, is_folder, _ in _walk(folder, below):
        yield _inside(folder, relative, is_folder=is_folder)


def other_hard_links(
    file: ResolvedPath, folder: ResolvedPath, enters: Callable[[str], bool] | None = None
) -> Iterator[ResolvedPath]:
    """Yield the other hard links to a file below a folder. `enters` returns whether to search a subfolder.

    Raise `TooManyFiles` if a limit is exceeded.
    """
    try:
        for relative in _links(file, folder, enters):
            link = _inside(folder, relative, is_folder=False)
            if link.disk_path != file.disk_path:
                link.given = f"{file.given} (a hard link to {link.given})"
                yield link
    except TooManyFiles as error:
        raise TooManyFiles(f"whether {file.given}, which has hard links, is a protected file: {error}") from None


_links_cache: dict[tuple[object, ...], tuple[str, ...]] = {}
_MAX_CACHED = 256


def _links(file: ResolvedPath, folder: ResolvedPath, enters: Callable[[str], bool] | None) -> tuple[str, ...]:
    """Return the names of a file below a folder, relative to it.

    They are cached until the ctime of the file changes, as it does if a link is made, removed or renamed.
    """
    device, inode, _, _, changed = file.version
    key = (device, inode, changed, folder.disk_path, enters)
    cached = _links_cache.get(key)
    if cached is None or not all(_is_inode(f"{folder.disk_path}/{name}", inode) for name in cached):
        cached = tuple(_find_links(device, inode, file.links, _walk(folder, enters)))
        if len(_links_cache) >= _MAX_CACHED:
            _links_cache.clear()
        _links_cache[key] = cached
    return cached


def _find_links(
    device: int, inode: int, links: int, entries: Iterator[tuple[str, bool, os.DirEntry[str]]]
) -> Iterator[str]:
    for relative, is_folder, entry in entries:
        if is_folder or entry.inode() != inode or entry.stat(follow_symlinks=False).st_dev != device:
            continue
        yield relative
        links -= 1
        if not links:
            return


def _is_inode(path: str, inode: int) -> bool:
    try:
        return os.lstat(path).st_ino == inode
    except OSError:
        return False


def _inside(folder: ResolvedPath, relative: str, *, is_folder: bool) -> ResolvedPath:
    names = tuple(f"{name.rstrip('/')}/{relative}" for name in folder.names)
    given = f"{folder.given.rstrip('/')}/{relative}"
    mode = S_IFDIR if is_folder else S_IFREG
    return ResolvedPath(given, names, names[-1], mode, case_insensitive=folder.case_insensitive)


def _walk(
    folder: ResolvedPath, enters: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, bool, os.DirEntry[str]]]:
    left = MAX_ENTRIES
    waiting = [""]
    while waiting:
        above = waiting.pop()
        for entry in _entries(f"{folder.disk_path}/{above}", MAX_ENTRIES):
            left -= 1
            if left < 0:
                raise TooManyFiles(f"{folder.given} contains more than {MAX_ENTRIES} files")
            is_folder = entry.is_dir(follow_symlinks=False)
            relative = above + entry.name
            yield relative, is_folder, entry
            if is_folder and entry.name != ".git" and (enters is None or enters(relative)):
                waiting.append(f"{relative}/")


def _entries(folder: str, limit: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, limit + 1))
    except (FileNotFoundError, NotADirectoryError):
        return []
