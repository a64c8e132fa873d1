"""Caches the policy of each folder in a process that answers for many, as long as nothing has changed.

A folder's change time changes when a file is created, renamed or deleted in it, and nobody can set it back. So an entry
is valid while the change times of the folders up to the policy, of the policy, of the user-wide policy and of the disk
cache are the same.
"""

from __future__ import annotations

import os
from time import time_ns
from typing import TYPE_CHECKING

from fairlead.policy.config._disk_cache import MIN_AGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.config._files import LoadedPolicy

    Stamp = tuple[int, int, int, int] | None
    """Values that differ once a file or folder has changed; `None` if it does not exist."""

_MAX_ENTRIES = 1024
_entries: dict[str, tuple[tuple[tuple[str, Stamp], ...], LoadedPolicy]] = {}


def recall(cwd: str) -> LoadedPolicy | None:
    """Return the policy of a folder, if nothing that it depends on has changed."""
    entry = _entries.get(cwd)
    if entry is None:
        return None
    for path, stamp in entry[0]:
        if _stamp(path) != stamp:
            del _entries[cwd]
            return None
    return entry[1]


def remember(cwd: str, loaded: LoadedPolicy, others: Iterable[str]) -> None:
    """Cache the policy of a folder, unless a file has just changed: a second change could leave the same stamp."""
    files = [layer.file for layer in loaded.layers]
    paths = [*others, *files, *_searched_folders(cwd, loaded)]
    stamps = tuple((path, _stamp(path)) for path in paths)
    newest = max(stamp[0] for _, stamp in stamps if stamp is not None)
    if time_ns() - newest > MIN_AGE:
        if len(_entries) >= _MAX_ENTRIES:
            _entries.clear()
        _entries[cwd] = stamps, loaded


def _searched_folders(cwd: str, loaded: LoadedPolicy) -> Iterable[str]:
    """Yield the folders that were searched: up to that of the policy, or all."""
    folder = os.path.abspath(cwd)
    last = {os.path.dirname(layer.file) for layer in loaded.layers}
    while True:
        yield folder
        above = os.path.dirname(folder)
        if folder in last or above == folder:
            return
        folder = above


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino
