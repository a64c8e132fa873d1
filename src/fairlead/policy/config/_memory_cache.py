"""Caches the policy of each folder in a process that answers many events, as long as nothing has changed.

A folder's change time changes when a file is created, renamed or deleted in it, and no program can set it back. So an
entry is valid while the change times of all folders above, of the policies, of the user-wide policy and of the disk
cache are the same. A folder above may change for many reasons (a home, `/tmp`): then it is enough that it is the same
folder, and has the same policy and repository as before.

The daemon also watches the folders (`watch_folders`): as long as nothing has changed in any of them, only the files are
checked. The kernel does not report what is written to them through a memory mapping, another name, or a mount.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISREG
from time import time_ns

from fairlead.policy.config._disk_cache import MIN_AGE
from fairlead.policy.config._lookup import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from fairlead.policy.config._files import LoadedPolicy
    from fairlead.policy.config._lookup import FolderContents
    from fairlead.policy.paths._folder_watch import FolderWatch

    Stamp = tuple[int, int] | None
    """Change time and inode, which differ once a file or folder has changed; `None` if it does not exist."""

_MAX_ENTRIES = 1024
_NOTHING: Mapping[str, object] = {}
_UNSTABLE = 0
"""Stored instead of the change time of a folder that has just changed: a further change could leave the same time."""


class _Dependency:
    """A file or folder that a policy depends on, and its state when the policy was loaded."""

    __slots__ = ("contents", "path", "stamp")

    def __init__(self, path: str, stamp: Stamp, contents: FolderContents | None = None) -> None:
        self.path = path
        self.stamp = stamp
        self.contents = contents
        """The relevant contents of a folder that was searched; `None` for any other path."""

    def is_current(self) -> bool:
        """Return whether a changed folder has the same relevant contents; if so, keep its new stamp if old enough.

        A home folder changes all the time. Always `False` for a file.
        """
        if self.stamp is None or self.contents is None:
            return False
        stamp = _stamp(self.path)
        if stamp is None or stamp[1] != self.stamp[1] or not self.contents.is_current(self.path):
            return False
        if time_ns() - stamp[0] > MIN_AGE:
            self.stamp = stamp
        return True


class _Entry:
    """A policy, and the files and folders that it depends on."""

    __slots__ = ("dependencies", "files", "generation", "is_watchable", "loaded")

    def __init__(self, loaded: LoadedPolicy, dependencies: tuple[_Dependency, ...]) -> None:
        self.loaded = loaded
        self.dependencies = dependencies
        self.files: tuple[_Dependency, ...] = ()
        """The files that are checked even if nothing has changed in the folders."""
        self.generation = 0
        """The generation of the watch when the entry was last checked."""
        self.is_watchable = True

    def watch(self, watch: FolderWatch) -> bool:
        """Start to watch the folders. If one cannot be watched, return `False`, and no longer ask the watch."""
        files: list[_Dependency] = []
        for dependency in self.dependencies:
            path = dependency.path
            if dependency.stamp is not None and dependency.contents is None and _is_file(path):
                files.append(dependency)
            elif not watch.add(path, every_name=dependency.contents is None):
                self.is_watchable = False
                return False
        self.files = tuple(files)
        return True


class _Watching:
    """The watch of this process, and its last answer to events that share their lookups."""

    watch: FolderWatch | None = None
    """`None` if the folders are not watched."""
    generation = 0
    """The last answer: a number that differs once anything has changed in the watched folders."""
    asked_for: dict[str, Stamp] | None = None
    """The `SharedLookups.stamps` of the events for which the watch was asked last."""


def watch_folders() -> None:
    """Watch the folders of policies from now on, if the system can.

    Only one thread may call `get_cached_policy` with `is_watching`.
    """
    if not sys.platform.startswith("linux"):
        return
    from fairlead.policy.paths._folder_watch import FolderWatch

    try:
        _Watching.watch = FolderWatch((*NAMES, ".git"))
    except OSError:
        _Watching.watch = None


class SharedLookups:
    """Lookups of files and folders that events share, so that each path is looked up once for all of them.

    Only events that have already arrived share lookups: a change that was made before an event arrived was also made
    before the lookup, so each event sees it. The event loop sets `stamps` before it handles such events, and resets it
    after them. The events that threads decide meanwhile use `stamps` as well, because they have arrived earlier.
    """

    __slots__ = ("stamps",)

    def __init__(self) -> None:
        self.stamps: dict[str, Stamp] | None = None
        """Path → the stamp that was looked up; `None` if no lookups are shared."""


shared_lookups = SharedLookups()


_entries: dict[Hashable, _Entry] = {}


def get_cached_policy(
    key: Hashable, known: Mapping[str, object] = _NOTHING, *, is_watching: bool = False
) -> LoadedPolicy | None:
    """Return a cached policy; `None` if there is none. A policy of which a dependency has changed is removed first.

    `known` has paths that were just looked up: path → its `os.stat_result`; `None` if it does not exist. Other values
    are ignored. `is_watching`: ask the watch of the folders, which only the event loop may do.
    """
    entry = _entries.get(key)
    if entry is None:
        return None
    stamps = shared_lookups.stamps
    watch = _Watching.watch if is_watching and entry.is_watchable else None
    if watch is None:
        return entry.loaded if _is_current(key, entry.dependencies, known, stamps) else None
    generation = _generation(watch, stamps)
    if entry.generation == generation:
        is_current = _is_current(key, entry.files, known, stamps)
    elif entry.watch(watch):  # earlier lookups are older than the watch
        is_current = _is_current(key, entry.dependencies, _NOTHING, None)
    else:
        is_current = _is_current(key, entry.dependencies, known, stamps)
    entry.generation = generation
    return entry.loaded if is_current else None


def _generation(watch: FolderWatch, stamps: dict[str, Stamp] | None) -> int:
    """Return the generation of the watch. It is asked once for all events that share the lookups `stamps`."""
    if stamps is None:
        return watch.generation()
    if _Watching.asked_for is not stamps:
        _Watching.generation, _Watching.asked_for = watch.generation(), stamps
    return _Watching.generation


def _is_current(
    key: Hashable,
    dependencies: tuple[_Dependency, ...],
    known: Mapping[str, object],
    lookups: dict[str, Stamp] | None,
) -> bool:
    """Return whether all dependencies are unchanged; if not, remove the entry `key` from the cache.

    `known` and `lookups` hold paths that were already looked up. Further ones are added to `lookups`.
    """
    lookups = {} if lookups is None else lookups
    if known and dependencies:
        lookups |= _known_stamps(known)
    for dependency in dependencies:
        path, before = dependency.path, dependency.stamp
        stamp = lookups.get(path, False)
        if stamp is False:
            stamp = lookups[path] = _stamp(path) if before is not None or _exists(path) else None
        if stamp != before and not dependency.is_current():
            _entries.pop(key, None)
            return False
    return True


def _exists(path: str) -> bool:
    """Return whether a path exists. If not, this takes half the time of a `stat`, which raises an error."""
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


def cache_policy(
    key: Hashable, loaded: LoadedPolicy, others: Iterable[str], folders: Mapping[str, FolderContents]
) -> None:
    """Cache a policy, unless a file that it depends on has just changed: a second change could leave the same stamp.

    `others` are the files and folders that it depends on besides its own files. `folders`: searched folder → contents.
    """
    paths = dict.fromkeys((*others, *(layer.file for layer in loaded.layers)))
    dependencies = [_Dependency(path, _stamp(path)) for path in paths]
    newest = max((dependency.stamp[0] for dependency in dependencies if dependency.stamp is not None), default=0)
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
    _entries[key] = _Entry(loaded, tuple(dependencies))


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_ino


def _is_file(path: str) -> bool:
    try:
        return S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
