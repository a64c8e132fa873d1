"""What is on the disk behind a glob or below a folder, up to a bound."""

from __future__ import annotations

import os
from itertools import islice
from stat import S_IFDIR, S_IFREG
from typing import TYPE_CHECKING

from fairlead.policy._paths import Target, target_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ENTRIES = 20_000
MAX_MATCHES = 2_000


class TooMany(Exception):
    """There is more than we are ready to look at."""


def expand(pattern: str, cwd: str) -> list[Target]:
    """Find what a glob means to the shell now."""
    from glob import iglob  # noqa: PLC0415 - only globs need it

    absolute = os.path.join(cwd, os.path.expanduser(pattern))  # noqa: PTH111, PTH118 - pathlib is too dear to import
    found = list(islice(iglob(absolute, recursive=True), MAX_MATCHES + 1))  # noqa: PTH207 - as above
    if len(found) > MAX_MATCHES:
        raise TooMany(f"{pattern} means more than {MAX_MATCHES} files")
    return [target_of(path, cwd) for path in found]


def below(folder: Target) -> Iterator[Target]:
    """Go through all that is below a folder, under each name of the folder; git's own files are left out."""
    left = MAX_ENTRIES
    waiting = [""]
    while waiting:
        above = waiting.pop()
        for entry in _entries(f"{folder.disk}/{above}"):
            left -= 1
            if left < 0:
                raise TooMany(f"{folder.given} holds more than {MAX_ENTRIES} files")
            is_folder = entry.is_dir(follow_symlinks=False)
            relative = above + entry.name
            names = tuple(f"{name.rstrip('/')}/{relative}" for name in folder.names)
            shown = f"{folder.given.rstrip('/')}/{relative}"
            yield Target(shown, names, names[-1], S_IFDIR if is_folder else S_IFREG, blind=folder.blind)
            if is_folder and entry.name != ".git":
                waiting.append(f"{relative}/")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MAX_ENTRIES + 1))
    except (FileNotFoundError, NotADirectoryError):
        return []
