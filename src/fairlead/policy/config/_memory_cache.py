"""Caches the policy of each folder in a process that answers for many, as long as nothing has changed.

A folder's change time changes when a file is created, renamed or deleted in it, and nobody can set it back. So an entry
is valid while the change times of all folders above, of the policies, of the user-wide policy and of the disk cache
are the same. A folder above may change for many reasons (a home, `/tmp`): then it is enough that it is the same folder,
and has the same policy and repository as before.
"""

from __future__ import annotations

import os
from time import time_ns

from fairlead.policy.config._disk_cache import MIN_AGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from fairlead.policy.config._files import LoadedPolicy
    from fairlead.policy.config._lookup import FolderContents

    Stamp = tuple[int, int] | None
    """Change time and inode, which differ once a file or folder has changed; `None` if it does not exist."""

_MAX_ENTRIES = 1024
_NOTHING: Mapping[str, object] = {}
_UNSTABLE = 0
"""In place of the change time of a folder that had just changed: a further change could leave the same one."""


class _Dependency:
    """A file or folder that a policy depends on, as it was."""

    __slots__ = ("contents", "path", "stamp")

    def __init__(self, path: str, stamp: Stamp, contents: FolderContents | None = None) -> None:
        self.path = path
        self.stamp = stamp
        self.contents = contents
        """Of a folder that was searched: what matters of it."""

    def is_current(self) -> bool:
        """Return whether the same is in a folder that has changed, as a home folder does all the time."""
        if self.stamp is None or self.contents is None:
            return False
        stamp = _stamp(self.path)
        if stamp is None or stamp[1] != self.stamp[1] or not self.contents.is_current(self.path):
            return False
        if time_ns() - stamp[0] > MIN_AGE:
            self.stamp = stamp
        return True


_lookups: dict[str, Stamp] | None = None
"""What was looked up within `shared_lookups`."""


class shared_lookups:  # noqa: N801 - reads as a statement
    """Looks up each file and folder once, for several events that had all arrived before.

    A change that was made before an event arrived was made before the lookup, so each event sees it. The event loop
    handles such events in one go. What a thread decides meanwhile has arrived before, too.
    """

    def __enter__(self) -> None:
        global _lookups  # noqa: PLW0603 - of the one event loop
        _lookups = {}

    def __exit__(self, *_: object) -> None:
        global _lookups  # noqa: PLW0603 - of the one event loop
        _lookups = None


_entries: dict[Hashable, tuple[tuple[_Dependency, ...], LoadedPolicy]] = {}


def recall(key: Hashable, known: Mapping[str, object] = _NOTHING) -> LoadedPolicy | None:
    """Return a policy, if nothing that it depends on has changed.

    `known` are statuses of files and folders that were just looked up.
    """
    entry = _entries.get(key)
    if entry is None:
        return None
    lookups = {} if _lookups is None else _lookups
    if known:
        lookups |= _known_stamps(known)
    for dependency in entry[0]:
        path, before = dependency.path, dependency.stamp
        stamp = lookups.get(path, False)
        if stamp is False:
            stamp = lookups[path] = _stamp(path) if before is not None or _exists(path) else None
        if stamp != before and not dependency.is_current():
            _entries.pop(key, None)
            return None
    return entry[1]


def _exists(path: str) -> bool:
    """Return whether there is something, in half the time of a `stat` that raises an error because there is nothing."""
    try:
        return os.access(path, os.F_OK)
    except ValueError:  # it contains a NUL
        return False


def _known_stamps(known: Mapping[str, object]) -> dict[str, Stamp]:
    return {
        path: None if status is None else (status.st_ctime_ns, status.st_ino)
        for path, status in known.items()
        if status is None or isinstance(status, os.stat_result)
    }


def remember(key: Hashable, loaded: LoadedPolicy, others: Iterable[str], folders: Mapping[str, FolderContents]) -> None:
    """Cache a policy, unless a file that it depends on has just changed: a second change could leave the same stamp.

    `others` are the files and folders that it depends on beside its own files, `folders` those that were searched.
    """
    paths = dict.fromkeys((*others, *(layer.file for layer in loaded.layers)))
    dependencies = [_Dependency(path, _stamp(path)) for path in paths]
    newest = max((one.stamp[0] for one in dependencies if one.stamp is not None), default=0)
    now = time_ns()
    if now - newest <= MIN_AGE:
        return
    for folder, contents in folders.items():
        if folder in paths:
            continue
        stamp = _stamp(folder)
        if stamp is not None and now - stamp[0] <= MIN_AGE:
            stamp = _UNSTABLE, stamp[1]
        dependencies.append(_Dependency(folder, stamp, contents))
    if len(_entries) >= _MAX_ENTRIES:
        _entries.clear()
    _entries[key] = tuple(dependencies), loaded


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_ino
