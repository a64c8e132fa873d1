"""Finds policy files: in a folder and its parents, and in the main checkout of a git worktree.

Every event searches all parent folders, and nearly all of them have no policy. The result for a folder is cached until
the folder's change time differs. That time changes when a file in the folder is created, renamed or deleted, and cannot
be set back.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG
from time import time_ns

from fairlead.policy.config._disk_cache import MIN_AGE, read_cached_policy
from fairlead.policy.config._errors import Diagnostic, PolicyError
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = (".fairlead.yaml", ".fairlead.yml", ".conclaude.yaml", ".conclaude.yml")
"""The names of policy files. The first that exists in a folder is its policy."""

_MAX_CACHED = 4096
_MAX_GIT_FILE = 4096
_MISSING = 0
"""The change time of a folder that does not exist."""
_UNKNOWN = -1


class PolicyFile(Struct, frozen=True):
    """A policy file, and the folder that its patterns are relative to."""

    file: str
    folder: str
    is_main_checkout: bool = False
    """The file is in a main checkout, and applies to one of its worktrees."""


class FolderContents(Struct, frozen=True):
    """The contents of a folder that matter for the lookup."""

    policy: str | None = None
    """The path of its policy file; `None` if it has none."""
    is_repository: bool = False
    """It has a `.git`, so it is the root of a repository or worktree."""
    main_checkout: str | None = None
    """The root of the main checkout, if the folder is the root of a worktree; else `None`."""

    def is_current(self, folder: str) -> bool:
        """Return whether a changed folder still has these contents; `False` if only a search can tell."""
        if self.main_checkout is not None:
            return False
        try:
            for name in NAMES:
                file = f"{folder}/{name}"
                if exists(file):
                    return file == self.policy and self._is_repository(folder)
        except PolicyError:
            return False
        return self.policy is None and self._is_repository(folder)

    def _is_repository(self, folder: str) -> bool:
        """Return whether `.git` is still a folder, or still missing. As a file it may now name another repository."""
        try:
            return S_ISDIR(os.lstat(f"{folder}/.git").st_mode) and self.is_repository
        except OSError:
            return not self.is_repository


_CHANGING = FolderContents(main_checkout="")
"""Marks a folder whose contents changed during the search."""


class PoliciesAbove(Struct, frozen=True):
    """The policy files of a folder and of its parents, nearest first."""

    files: tuple[PolicyFile, ...] = ()
    root: str | None = None
    """The nearest folder with a policy, or else the root of the repository; `None` if there is neither."""


class FolderSearch:
    """Searches folders for policy files.

    With `cache`, the folder of a disk cache, files that were deleted after they decided events are found, too.
    """

    def __init__(self, cache: str = "") -> None:
        self._cache = cache
        self._cache_changed = _change_time(cache) if cache else _MISSING
        self.visited: dict[str, FolderContents] = {}
        """The folders that were searched, in order, and what was found in each."""

    def above(self, folder: str, *, below: str = "") -> PoliciesAbove:
        """Search a folder and its parents. With `below`, stop at the first folder that contains that path."""
        files: list[PolicyFile] = []
        copies: list[PolicyFile] = []
        root = repository = None
        for step in _upward(folder):
            if below and is_at_or_above(step, below):
                break
            contents = self._contents(step)
            if contents.policy is not None:
                files.append(PolicyFile(contents.policy, step))
                root = root or step
            if contents.is_repository:
                repository = repository or step
                copies += self._of_main_checkout(folder, step, contents.main_checkout)
        return PoliciesAbove((*files, *copies), root or repository)

    def _of_main_checkout(self, folder: str, worktree: str, main: str | None) -> Iterator[PolicyFile]:
        """Yield the files of the main checkout for a folder of a worktree, as if they were in the worktree."""
        if main is None:
            return
        for step in _upward(main + folder[len(worktree) :]):
            if (policy := self._contents(step).policy) is not None:
                yield PolicyFile(policy, worktree + step[len(main) :], is_main_checkout=True)
            if step == main:
                return

    def _contents(self, folder: str) -> FolderContents:
        contents = self._find_contents(folder)
        if self.visited.setdefault(folder, contents) != contents:
            self.visited[folder] = _CHANGING
        return contents

    def _find_contents(self, folder: str) -> FolderContents:
        changed = _change_time(folder)
        key, times = (folder, self._cache), (changed, self._cache_changed)
        cached = _cached.get(key)
        if cached is not None and cached[0] == times:
            return cached[1]
        contents = self._look_up(folder)
        # A second change within one tick of the clock would be missed.
        if changed != _UNKNOWN and time_ns() - max(times) > MIN_AGE:
            if len(_cached) >= _MAX_CACHED:
                _cached.clear()
            _cached[key] = times, contents
        return contents

    def _look_up(self, folder: str) -> FolderContents:
        files = [os.path.join(folder, name) for name in NAMES]
        policy = next(filter(exists, files), None)
        if policy is None and self._cache_changed > _MISSING:
            policy = next(filter(self._has_decided_events, files), None)
        git = os.path.join(folder, ".git")
        is_repository = os.path.lexists(git)
        return FolderContents(policy, is_repository, _main_checkout(git, folder) if is_repository else None)

    def _has_decided_events(self, file: str) -> bool:
        entry = read_cached_policy(self._cache, file)
        return entry is not None and not entry.only_validated


_cached: dict[tuple[str, str], tuple[tuple[int, int], FolderContents]] = {}
"""Folder and disk cache → the change times of both, and the contents of the folder."""


def exists(file: str) -> bool:
    """Return whether a file exists. A broken link counts, so that a missing policy is reported.

    Raise `PolicyError` if that cannot be found out.
    """
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        raise unreadable_error(file, error) from None
    return True


def unreadable_error(file: str, error: OSError | ValueError) -> PolicyError:
    """Return the error for a policy file that cannot be read."""
    if isinstance(error, IsADirectoryError):
        message = "is a folder; a policy is a file, so remove or rename the folder"
    elif isinstance(error, PermissionError):
        message = f"cannot be read: permission denied; allow it with chmod u+r {file}, and u+x on its folders"
    elif isinstance(error, FileNotFoundError):
        message = "is a broken link; remove it, or create the file that it points to"
    else:
        reason = getattr(error, "strerror", None) or str(error) or "not a regular file"
        message = f"cannot be read: {reason}; replace it with a text file"
    return PolicyError((Diagnostic(file, 0, 0, message),))


def is_at_or_above(folder: str, path: str) -> bool:
    """Return whether a folder is the path itself or one of its parents."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _upward(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _change_time(folder: str) -> int:
    """Return the time when a file in a folder was last created, renamed or deleted, in nanoseconds.

    Return `_MISSING` if the folder does not exist, and `_UNKNOWN` if its time cannot be read.
    """
    try:
        return os.stat(folder).st_ctime_ns
    except (FileNotFoundError, NotADirectoryError):
        return _MISSING
    except (OSError, ValueError):
        return _UNKNOWN


# -- worktrees -----------------------------------------------------------------------------------------


def _main_checkout(git: str, worktree: str) -> str | None:
    """Return the root of the main checkout that the `.git` file of a worktree refers to; `None` if there is none.

    git's folder for the worktree must refer back to it, because a `.git` file alone could name any repository.
    """
    own = _read_line(git).removeprefix("gitdir: ")
    if not own:
        return None
    own = os.path.join(worktree, own)
    back = os.path.join(own, _read_line(f"{own}/gitdir"))
    common = os.path.normpath(os.path.join(own, _read_line(f"{own}/commondir") or "."))
    if os.path.basename(common) != ".git" or os.path.realpath(back) != os.path.realpath(git):
        return None
    main = os.path.dirname(common)
    return main if main != worktree else None


def _read_line(path: str) -> str:
    """Return the first line of a small file; empty if it cannot be opened or is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        is_file = S_ISREG(os.fstat(descriptor).st_mode)
        return os.fsdecode(os.read(descriptor, _MAX_GIT_FILE).split(b"\n", 1)[0]) if is_file else ""
    finally:
        os.close(descriptor)
