"""Finds the policy files that apply in a folder, and loads them: from a cache if they have not changed."""

from __future__ import annotations

import os
import stat
from time import time_ns
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.paths import config_folder, state_folder
from fairlead.policy.config import _memory_cache
from fairlead.policy.config._disk_cache import MIN_AGE, cache_path, read_cached_policy, stamp_of, write_cached_policy
from fairlead.policy.config._errors import Diagnostic, PolicyError
from fairlead.policy.config._types import USER_WIDE, Layer, Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.policy.config._disk_cache import CachedPolicy, Stamp

NAMES = (".fairlead.yaml", ".fairlead.yml", ".conclaude.yaml", ".conclaude.yml")
"""The first of these in a folder is its policy."""

_MAX_FOLDERS = 12
_MAX_LAYERS = 256
_MAX_WITHOUT_POLICY = 4096


class LoadedPolicy(msgspec.Struct, frozen=True):
    """The layers that apply, nearest first, and warnings about them for the user."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()


class NotCached(Exception):
    """The file as it is now is not in the memory of this process, which may not read it."""


def find_policy_files(
    cwd: str, *, config_home: str | None = None, also_deleted: bool = False
) -> tuple[tuple[str, str], ...]:
    """Return the files that apply in `cwd`, nearest first, each with the folder that its patterns are relative to.

    `also_deleted`: also a file that does not exist any more, if its last good version is cached.
    """
    start = os.path.abspath(cwd)
    nearest = _nearest(start, also_deleted=also_deleted)
    folder = os.path.dirname(nearest) if nearest else start
    user_wide = _user_wide_file(config_home)
    files = [(nearest, folder)] if nearest else []
    if _exists(user_wide):
        files.append((user_wide, folder))
    return tuple(files)


def find_layers(cwd: str, *, config_home: str | None = None) -> tuple[Layer, ...]:
    """Read the files that apply in `cwd` as they are now, nearest first.

    `config_home` is the folder of the user-wide file, if not the default. Raises `PolicyError` with the mistakes of
    all files.
    """
    layers: list[Layer] = []
    mistakes: list[Diagnostic] = []
    for file, folder in find_policy_files(cwd, config_home=config_home):
        try:
            layers.append(read_layer(file, folder))
        except PolicyError as error:
            mistakes += error.mistakes
    if mistakes:
        raise PolicyError(tuple(mistakes))
    return tuple(layers)


def read_layer(file: str, folder: str | None = None) -> Layer:
    """Read one file as it is now; its patterns are relative to `folder`, by default the file's own."""
    own = os.path.dirname(os.path.abspath(file)) if folder is None else folder
    return _layer(file, own, _read(file)[0])


def find_hints(file: str) -> tuple[Diagnostic, ...]:
    """Return hints on entries that are valid but probably not what was meant. Raises `PolicyError` if invalid."""
    from fairlead.policy.config._reader import MAX_POLICY_BYTES, read_hints

    return read_hints(_read_bytes(file, MAX_POLICY_BYTES + 1)[0], file)


def load_policy(
    cwd: str,
    *,
    config_home: str | None = None,
    clock: Callable[[], int] = time_ns,
    validating: bool = False,
    cached_only: bool = False,
) -> LoadedPolicy:
    """Load the layers that apply in `cwd`; of a file that is broken, its last good version, with a warning.

    Raises `PolicyError` if there is no such version. `clock` returns the time in nanoseconds. `validating`: no event is
    decided by the layers; the version that is cached then applies if the file breaks, but not if it is deleted.
    `cached_only`: raise `NotCached` rather than read a file.
    """
    if cached_only and (recent := _memory_cache.recall(cwd)) is not None:
        return recent
    layers: list[Layer] = []
    warnings: list[str] = []
    mistakes: list[Diagnostic] = []
    for file, folder in find_policy_files(cwd, config_home=config_home, also_deleted=True):
        try:
            layer, more = _load(file, folder, clock, validating=validating, cached_only=cached_only)
        except PolicyError as error:
            mistakes += error.mistakes
        else:
            layers.append(layer)
            warnings += more
    if mistakes:
        raise PolicyError(tuple(mistakes))
    loaded = LoadedPolicy(tuple(layers), tuple(warnings))
    if cached_only:
        _memory_cache.remember(cwd, loaded, (policy_cache_folder(), _user_wide_file(config_home)))
    return loaded


def load_user_wide(*, config_home: str | None = None, clock: Callable[[], int] = time_ns) -> Policy:
    """Load the user-wide file alone; if it is broken, its last good version.

    Raises `PolicyError` if there is no such version. Its file patterns mean nothing, as there is no folder.
    """
    user_wide = _user_wide_file(config_home)
    if not _exists(user_wide):
        return Policy()
    return _load(user_wide, "/", clock, validating=False, cached_only=False)[0].policy


def has_decided_events(file: str) -> bool:
    """Return whether an event was decided by a file: its last good version then applies even if it is deleted."""
    cached = read_cached_policy(policy_cache_folder(), file)
    return cached is not None and not cached.only_validated


def policy_cache_folder() -> str:
    """Return the folder of the disk cache."""
    return f"{state_folder()}/policies"


def _user_wide_file(config_home: str | None) -> str:
    return os.path.join(config_home or config_folder(), USER_WIDE)


# -- finding -------------------------------------------------------------------------------------------


def _nearest(start: str, *, also_deleted: bool) -> str | None:
    folder, cache = start, policy_cache_folder() if also_deleted else ""
    cache_changed = _change_time(cache) if cache else 0
    for _ in range(_MAX_FOLDERS):
        if (file := _policy_of(folder, cache, cache_changed)) is not None:
            return file
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return None


_without_policy: dict[tuple[str, str], tuple[int, int]] = {}
"""Folders without a policy, also without a cached one: folder and cache → the change times of the two.

Every event searches all folders above it, and nearly all of them have no policy."""


def _policy_of(folder: str, cache: str, cache_changed: int) -> str | None:
    """Return the policy of a folder, or (with a `cache`) one that was deleted, if its last good version is cached."""
    times = _change_time(folder), cache_changed
    if cache and _without_policy.get((folder, cache)) == times:
        return None
    files = [os.path.join(folder, name) for name in NAMES]
    for file in files:
        if _exists(file):
            return file
    if not cache:
        return None
    for file in files:
        entry = read_cached_policy(cache, file) if cache_changed else None
        if entry is not None and not entry.only_validated:
            return file
    if times[0] and time_ns() - max(times) > MIN_AGE:  # a change within a tick of the clock does not show
        if len(_without_policy) >= _MAX_WITHOUT_POLICY:
            _without_policy.clear()
        _without_policy[folder, cache] = times
    return None


def _change_time(folder: str) -> int:
    """Return when a file was last created or deleted in a folder; 0 if unknown. Nobody can set it back."""
    try:
        return os.stat(folder).st_ctime_ns
    except (OSError, ValueError):
        return 0


def _exists(file: str) -> bool:
    """Return whether there is a file. A broken link counts: it was meant to protect something."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        raise _unreadable(file, error) from None
    return True


# -- reading -------------------------------------------------------------------------------------------


_layers: dict[tuple[str, str], tuple[Stamp, Layer]] = {}
"""The layers that this process has loaded: file and folder → the file's stamp and the layer."""


def _load(
    file: str, folder: str, clock: Callable[[], int], *, validating: bool, cached_only: bool
) -> tuple[Layer, list[str]]:
    exists = _exists(file)
    stamp = _stamp(file) if exists else None
    known_stamp, layer = _layers.get((file, folder), (None, None))
    if layer is not None and stamp is not None and known_stamp == stamp:
        return layer, []
    if cached_only:
        raise NotCached(file)
    if not exists:
        return _load_deleted(file, folder)
    cached = read_cached_policy(policy_cache_folder(), file)
    if cached is None or cached.stamp != stamp or (cached.only_validated and not validating):
        return _load_changed(file, folder, cached, clock, validating=validating)
    try:
        layer = _layer(file, folder, cached.document)
    except msgspec.ValidationError:
        return _load_changed(file, folder, None, clock, validating=validating)
    if len(_layers) >= _MAX_LAYERS:
        _layers.clear()
    _layers[file, folder] = (stamp, layer)
    return layer, []


def _load_deleted(file: str, folder: str) -> tuple[Layer, list[str]]:
    """Load the last good version of a file that was deleted: switching branches must not switch a policy off."""
    cache = policy_cache_folder()
    cached = read_cached_policy(cache, file)
    advice = f"Its last good version is used. Restore it, or delete {cache_path(cache, file)} to stop using it"
    error = PolicyError((Diagnostic(file, 0, 0, f"the file was deleted. {advice}"),))
    if cached is None:
        raise error
    try:
        return _layer(file, folder, cached.document), [str(error)]
    except msgspec.ValidationError:
        raise error from None


def _stamp(file: str) -> Stamp | None:
    try:
        return stamp_of(os.stat(file))
    except OSError:
        return None  # the error is raised when it is read


def _load_changed(
    file: str, folder: str, cached: CachedPolicy | None, clock: Callable[[], int], *, validating: bool
) -> tuple[Layer, list[str]]:
    try:
        document, status = _read(file)
    except PolicyError as error:
        return _fall_back(file, folder, cached, error)
    layer, cache = _layer(file, folder, document), policy_cache_folder()
    only_validated = validating and (cached is None or cached.only_validated)
    try:
        write_cached_policy(cache, file, status, document, clock(), only_validated=only_validated)
    except OSError as error:
        return layer, [_cannot_cache(cache, error)]
    return layer, []


def _fall_back(file: str, folder: str, cached: CachedPolicy | None, error: PolicyError) -> tuple[Layer, list[str]]:
    if cached is None:
        raise error
    try:
        layer = _layer(file, folder, cached.document)
    except msgspec.ValidationError:
        raise error from None
    first, others = str(error.mistakes[0]), len(error.mistakes) - 1
    more = f" There {'is 1 more mistake' if others == 1 else f'are {others} more mistakes'}." if others else ""
    advice = "The last good version of the file is used until you fix it; `fairlead validate` lists all mistakes."
    return layer, [f"{first}{'' if first.endswith(('?', '…')) else '.'}{more} {advice}"]


def _cannot_cache(cache: str, error: OSError) -> str:
    reason = error.strerror or error
    return f"{cache}: cannot cache the policy: {reason}; it is read again each time, and has no last good version"


def _layer(file: str, folder: str, document: dict[str, Any]) -> Layer:
    return Layer(file, folder, msgspec.convert(document, Policy), document)


def _read(file: str) -> tuple[dict[str, Any], os.stat_result]:
    from fairlead.policy.config._reader import MAX_POLICY_BYTES, read_document

    text, status = _read_bytes(file, MAX_POLICY_BYTES + 1)
    return read_document(text, file), status


def _read_bytes(file: str, limit: int) -> tuple[bytes, os.stat_result]:
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _unreadable(file, IsADirectoryError() if stat.S_ISDIR(status.st_mode) else OSError())
            with open(descriptor, "rb", closefd=False) as stream:
                return stream.read(limit), status
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
        message = "is a broken link; remove it, or create the file that it points to"
    else:
        reason = getattr(error, "strerror", None) or str(error) or "not a regular file"
        message = f"cannot be read: {reason}; replace it with a text file"
    return PolicyError((Diagnostic(file, 0, 0, message),))
