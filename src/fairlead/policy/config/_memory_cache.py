"""What held in a folder a moment ago, for a process that answers for all of them: still true if nothing has changed.

A folder's change time moves when a file is put into it, renamed or taken out, and nobody can set it back. So the
answer holds as long as all folders on the way up to the policy, the policy itself, the user-wide one and the cache of
last good versions have theirs.
"""

from __future__ import annotations

import os
from time import time_ns
from typing import TYPE_CHECKING

from fairlead.policy.config._disk_cache import TRUSTED_AGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.config._files import Loaded

    Seen = tuple[int, int, int, int] | None
    """What tells that a file or folder is as it was; `None` where there is none."""

_MOST = 1024
_recent: dict[str, tuple[tuple[tuple[str, Seen], ...], Loaded]] = {}


def recall_recent(cwd: str) -> Loaded | None:
    """Give what held in a folder, if all that it depends on is as it was."""
    known = _recent.get(cwd)
    if known is None:
        return None
    for path, seen in known[0]:
        if _seen(path) != seen:
            del _recent[cwd]
            return None
    return known[1]


def remember_recent(cwd: str, loaded: Loaded, others: Iterable[str]) -> None:
    """Remember what holds in a folder. A change within a tick of the disk's clock would not show, so not yet then."""
    files = [layer.file for layer in loaded.layers]
    paths = [*others, *files, *_way_up(cwd, loaded)]
    checks = tuple((path, _seen(path)) for path in paths)
    newest = max(seen[0] for _, seen in checks if seen is not None)
    if time_ns() - newest > TRUSTED_AGE:
        if len(_recent) >= _MOST:
            _recent.clear()
        _recent[cwd] = checks, loaded


def _way_up(cwd: str, loaded: Loaded) -> Iterable[str]:
    """Name the folders that were looked into: up to that of the policy, or all the way."""
    folder = os.path.abspath(cwd)
    last = {os.path.dirname(layer.file) for layer in loaded.layers}
    while True:
        yield folder
        above = os.path.dirname(folder)
        if folder in last or above == folder:
            return
        folder = above


def _seen(path: str) -> Seen:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino
