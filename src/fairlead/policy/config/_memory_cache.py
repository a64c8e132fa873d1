"""Caches the policy of each folder in a process that answers for many, as long as nothing has changed.

A folder's change time changes when a file is created, renamed or deleted in it, and nobody can set it back. So an entry
is valid while the change times of all folders above, of the policies, of the user-wide policy and of the disk cache
are the same.
"""

from __future__ import annotations

import os
from time import time_ns
from typing import TYPE_CHECKING

from fairlead.policy.config._disk_cache import MIN_AGE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from fairlead.policy.config._files import LoadedPolicy

    Stamp = tuple[int, int] | None
    """Change time and inode, which differ once a file or folder has changed; `None` if it does not exist."""

_MAX_ENTRIES = 1024
_NOTHING: Mapping[str, object] = {}
_entries: dict[Hashable, tuple[tuple[tuple[str, Stamp], ...], LoadedPolicy]] = {}


def recall(key: Hashable, known: Mapping[str, object] = _NOTHING) -> LoadedPolicy | None:
    """Return a policy, if nothing that it depends on has changed.

    `known` are statuses of files and folders that were just looked up.
    """
    entry = _entries.get(key)
    if entry is None:
        return None
    for path, stamp in entry[0]:
        status = known.get(path, False)
        if status is not None and not isinstance(status, os.stat_result):
            try:
                status = os.stat(path)
            except (OSError, ValueError):
                status = None
        if (status and (status.st_ctime_ns, status.st_ino)) != stamp:
            _entries.pop(key, None)
            return None
    return entry[1]


def remember(key: Hashable, loaded: LoadedPolicy, others: Iterable[str]) -> None:
    """Cache a policy, unless a file that it depends on has just changed: a second change could leave the same stamp.

    `others` are the files and folders that it depends on beside its own files.
    """
    paths = dict.fromkeys((*others, *(layer.file for layer in loaded.layers)))
    stamps = tuple((path, _stamp(path)) for path in paths)
    newest = max((stamp[0] for _, stamp in stamps if stamp is not None), default=0)
    if time_ns() - newest > MIN_AGE:
        if len(_entries) >= _MAX_ENTRIES:
            _entries.clear()
        _entries[key] = stamps, loaded


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_ino
