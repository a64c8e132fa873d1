"""Finds the policy files that hold in a folder, and reads them: from the cache if they have not changed."""

from __future__ import annotations

import os
import stat
from time import time_ns
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.paths import config_folder, state_folder
from fairlead.policy.config._disk_cache import TRUSTED_AGE, place_of, recall_policy, remember_policy, stamp_of
from fairlead.policy.config._errors import Mistake, PolicyError
from fairlead.policy.config._memory_cache import recall_recent, remember_recent
from fairlead.policy.config._types import USER_WIDE, Layer, Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.policy.config._disk_cache import CachedPolicy, Stamp

NAMES = (".fairlead.yaml", ".fairlead.yml", ".conclaude.yaml", ".conclaude.yml")
"""In a folder, the first of these is the policy."""

_MAX_FOLDERS = 12
_MOST_HELD = 256
_MOST_REMEMBERED = 4096


class Loaded(msgspec.Struct, frozen=True):
    """The layers that hold, nearest first, and what the person should be told about them."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()


class NotCached(Exception):
    """This process has not read the file as it is now, and was not to read it."""


def find_files(cwd: str, *, config_home: str | None = None, also_gone: bool = False) -> tuple[tuple[str, str], ...]:
    """Find the files that hold in `cwd`, nearest first, each with the folder that its patterns are relative to.

    `also_gone`: also one that was there and is not any more, if its last good version is kept.
    """
    start = os.path.abspath(cwd)
    nearest = _nearest(start, also_gone=also_gone)
    folder = os.path.dirname(nearest) if nearest else start
    everywhere = _everywhere(config_home)
    found = [(nearest, folder)] if nearest else []
    if _exists(everywhere):
        found.append((everywhere, folder))
    return tuple(found)


def find_layers(cwd: str, *, config_home: str | None = None) -> tuple[Layer, ...]:
    """Read the files that hold in `cwd` as they are now, nearest first.

    `config_home` is the folder of the user-wide file, if not the usual one. Raises `PolicyError` with the mistakes of
    all files.
    """
    layers: list[Layer] = []
    mistakes: list[Mistake] = []
    for file, folder in find_files(cwd, config_home=config_home):
        try:
            layers.append(read_layer(file, folder))
        except PolicyError as error:
            mistakes += error.mistakes
    if mistakes:
        raise PolicyError(tuple(mistakes))
    return tuple(layers)


def read_layer(file: str, folder: str | None = None) -> Layer:
    """Read one file as it is now; its patterns are relative to `folder`, by default its own."""
    home = os.path.dirname(os.path.abspath(file)) if folder is None else folder
    return _layer(file, home, _read(file)[0])


def hints_on(file: str) -> tuple[Mistake, ...]:
    """Say what in a valid file probably does not do what its writer meant. Raises `PolicyError` if it is not valid."""
    from fairlead.policy.config._reader import MAX_POLICY_BYTES, read_hints

    return read_hints(_read_bytes(file, MAX_POLICY_BYTES + 1)[0], file)


def load(
    cwd: str,
    *,
    config_home: str | None = None,
    clock: Callable[[], int] = time_ns,
    tried: bool = False,
    cached_only: bool = False,
) -> Loaded:
    """Give the layers that hold in `cwd`: of a file that is broken now, its last good version, with a warning.

    Raises `PolicyError` if there is none. `clock` tells the time in nanoseconds. `tried`: nothing is decided by them, a
    person only wants to know; what is kept then holds if the file breaks, but not if it goes. `cached_only`: raise
    `NotCached` rather than read a file.
    """
    if cached_only and (recent := recall_recent(cwd)) is not None:
        return recent
    layers: list[Layer] = []
    warnings: list[str] = []
    mistakes: list[Mistake] = []
    for file, folder in find_files(cwd, config_home=config_home, also_gone=True):
        try:
            layer, remarks = _load(file, folder, clock, tried=tried, cached_only=cached_only)
        except PolicyError as error:
            mistakes += error.mistakes
        else:
            layers.append(layer)
            warnings += remarks
    if mistakes:
        raise PolicyError(tuple(mistakes))
    loaded = Loaded(tuple(layers), tuple(warnings))
    if cached_only:
        remember_recent(cwd, loaded, (policy_cache_folder(), _everywhere(config_home)))
    return loaded


def load_user_wide(*, config_home: str | None = None, clock: Callable[[], int] = time_ns) -> Policy:
    """Give what the user-wide file says, by itself: of one that is broken now, its last good version.

    Raises `PolicyError` if there is none. What it says of files means nothing, as it is asked for no folder.
    """
    everywhere = _everywhere(config_home)
    if not _exists(everywhere):
        return Policy()
    return _load(everywhere, "/", clock, tried=False, cached_only=False)[0].policy


def policy_cache_folder() -> str:
    """Give the folder in which the last good versions are kept."""
    return f"{state_folder()}/policies"


def _everywhere(config_home: str | None) -> str:
    return os.path.join(config_home or config_folder(), USER_WIDE)


# -- finding -------------------------------------------------------------------------------------------


def _nearest(start: str, *, also_gone: bool) -> str | None:
    folder, cache = start, policy_cache_folder() if also_gone else ""
    kept = _changed(cache) if cache else 0
    for _ in range(_MAX_FOLDERS):
        if (found := _policy_of(folder, cache, kept)) is not None:
            return found
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return None


_without: dict[tuple[str, str], tuple[int, int]] = {}
"""Folders that have no policy, and none that is kept: by folder and cache, when the two were last changed.

Every event asks for all folders above it, and nearly all of them have none."""


def _policy_of(folder: str, cache: str, kept: int) -> str | None:
    """Find the policy of a folder, or (with a `cache`) one that is gone, but whose last good version is kept."""
    times = _changed(folder), kept
    if cache and _without.get((folder, cache)) == times:
        return None
    files = [os.path.join(folder, name) for name in NAMES]
    for file in files:
        if _exists(file):
            return file
    if not cache:
        return None
    for file in files:
        entry = recall_policy(cache, file) if kept else None
        if entry is not None and not entry.tried:
            return file
    if times[0] and time_ns() - max(times) > TRUSTED_AGE:  # a change within a tick of the clock does not show
        if len(_without) >= _MOST_REMEMBERED:
            _without.clear()
        _without[folder, cache] = times
    return None


def _changed(folder: str) -> int:
    """Tell when something was last put into a folder, or taken out; 0 if it cannot be told. Nobody can set it back."""
    try:
        return os.stat(folder).st_ctime_ns
    except (OSError, ValueError):
        return 0


def _exists(file: str) -> bool:
    """Look for a file. A link that leads nowhere is one: it was meant to protect something."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a path that holds NUL is a ValueError
        raise _unreadable(file, error) from None
    return True


# -- reading -------------------------------------------------------------------------------------------


_held: dict[tuple[str, str], tuple[Stamp, Layer]] = {}
"""The layers that this process has loaded, by file and folder, for one that loads at every event."""


def _load(
    file: str, folder: str, clock: Callable[[], int], *, tried: bool, cached_only: bool
) -> tuple[Layer, list[str]]:
    is_there = _exists(file)
    stamp = _stamp(file) if is_there else None
    held_stamp, layer = _held.get((file, folder), (None, None))
    if layer is not None and stamp is not None and held_stamp == stamp:
        return layer, []
    if cached_only:
        raise NotCached(file)
    if not is_there:
        return _of_gone(file, folder)
    kept = recall_policy(policy_cache_folder(), file)
    if kept is None or kept.stamp != stamp or (kept.tried and not tried):
        return _load_anew(file, folder, kept, clock, tried=tried)
    try:
        layer = _layer(file, folder, kept.document)
    except msgspec.ValidationError:
        return _load_anew(file, folder, None, clock, tried=tried)
    if len(_held) >= _MOST_HELD:
        _held.clear()
    _held[file, folder] = (stamp, layer)
    return layer, []


def _of_gone(file: str, folder: str) -> tuple[Layer, list[str]]:
    """Give the last good version of a file that is not there any more: to switch branches must not lift a policy."""
    kept, place = recall_policy(policy_cache_folder(), file), place_of(policy_cache_folder(), file)
    advice = f"Its last good version holds. Put it back, or, to lift it, delete {place}"
    error = PolicyError((Mistake(file, 0, 0, f"the file is gone. {advice}"),))
    if kept is None:
        raise error
    try:
        return _layer(file, folder, kept.document), [str(error)]
    except msgspec.ValidationError:
        raise error from None


def _stamp(file: str) -> Stamp | None:
    try:
        return stamp_of(os.stat(file))
    except OSError:
        return None  # reading it says what is wrong


def _load_anew(
    file: str, folder: str, kept: CachedPolicy | None, clock: Callable[[], int], *, tried: bool
) -> tuple[Layer, list[str]]:
    try:
        document, status = _read(file)
    except PolicyError as error:
        return _fall_back(file, folder, kept, error)
    layer, cache = _layer(file, folder, document), policy_cache_folder()
    try:
        remember_policy(cache, file, status, document, clock(), tried=tried and (kept is None or kept.tried))
    except OSError as error:
        return layer, [_cannot_keep(cache, error)]
    return layer, []


def _fall_back(file: str, folder: str, kept: CachedPolicy | None, error: PolicyError) -> tuple[Layer, list[str]]:
    if kept is None:
        raise error
    try:
        layer = _layer(file, folder, kept.document)
    except msgspec.ValidationError:
        raise error from None
    first, others = str(error.mistakes[0]), len(error.mistakes) - 1
    more = f" There {'is 1 more mistake' if others == 1 else f'are {others} more mistakes'}." if others else ""
    advice = "The file's last good version holds until a person mends it; `fairlead validate` lists all mistakes."
    return layer, [f"{first}{'' if first.endswith(('?', '…')) else '.'}{more} {advice}"]


def _cannot_keep(cache: str, error: OSError) -> str:
    reason = error.strerror or error
    return f"{cache}: cannot keep the policy here: {reason}; it is read anew each time, and has no last good version"


def _layer(file: str, folder: str, document: dict[str, Any]) -> Layer:
    return Layer(file, folder, msgspec.convert(document, Policy), document)


def _read(file: str) -> tuple[dict[str, Any], os.stat_result]:
    from fairlead.policy.config._reader import MAX_POLICY_BYTES, read_document

    text, status = _read_bytes(file, MAX_POLICY_BYTES + 1)
    return read_document(text, file), status


def _read_bytes(file: str, most: int) -> tuple[bytes, os.stat_result]:
    try:
        # Without O_NONBLOCK a named pipe would keep us waiting for a writer.
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _unreadable(file, IsADirectoryError() if stat.S_ISDIR(status.st_mode) else OSError())
            with open(descriptor, "rb", closefd=False) as stream:
                return stream.read(most), status
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(file: str, error: OSError | ValueError) -> PolicyError:
    if isinstance(error, IsADirectoryError):
        message = "is a folder; a policy is a file, so remove or rename the folder"
    elif isinstance(error, PermissionError):
        message = f"cannot be read: permission denied; allow it with chmod u+r {file}, and u+x on its folders"
    elif isinstance(error, FileNotFoundError):
        message = "is a link that leads nowhere; remove it, or put the file where it leads"
    else:
        reason = getattr(error, "strerror", None) or str(error) or "no regular file"
        message = f"cannot be read: {reason}; put a plain text file in its place"
    return PolicyError((Mistake(file, 0, 0, message),))
