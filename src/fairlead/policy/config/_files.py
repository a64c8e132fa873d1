"""Finds the policy files that apply in a folder, and loads them: from a cache if they have not changed."""

from __future__ import annotations

import os
import stat
from time import time_ns

from fairlead.paths import config_folder, state_folder
from fairlead.policy.config import _memory_cache
from fairlead.policy.config._disk_cache import (
    FileContents,
    cache_path,
    read_cached_policy,
    stamp_of,
    write_cached_policy,
)
from fairlead.policy.config._errors import Diagnostic, PolicyError
from fairlead.policy.config._lookup import FolderSearch, PolicyFile, exists, unreadable_error
from fairlead.policy.config._types import USER_WIDE, Layer, Policy
from fairlead.structs import LIGHT, Struct, ValidationError, convert, replace, require_msgspec

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Any  # msgspec reads the annotations
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.policy.config._disk_cache import CachedPolicy, Stamp

_MAX_LAYERS = 256


class Notice(Struct, frozen=True):
    """Something about a file that the person is told once in a session."""

    digest: str
    """Of the file as it is now."""
    text: str


class LoadedPolicy(Struct, frozen=True):
    """The layers that apply, nearest first, and warnings about them for the user."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    """What the person has not been told yet."""
    unreadable: tuple[Diagnostic, ...] = ()
    """The first mistake of each file that could not be loaded, if the call may go on without it."""


class NotCached(Exception):
    """The file as it is now is not in the memory of this process, which may not read it."""


def find_policy_files(
    cwd: str, *, projects: Sequence[str] = (), config_home: str | None = None, also_deleted: bool = False
) -> tuple[PolicyFile, ...]:
    """Return the files that apply in `cwd` and to `projects`, nearest first: all above these folders, and the user's.

    `also_deleted`: also a file that does not exist any more, if its last good version is cached.
    """
    return find_files(FolderSearch(policy_cache_folder() if also_deleted else ""), cwd, projects, config_home)


def find_files(
    search: FolderSearch, cwd: str, projects: Sequence[str] = (), config_home: str | None = None
) -> tuple[PolicyFile, ...]:
    """Return what `find_policy_files` does, by a search that knows afterwards which folders it depends on."""
    start = os.path.abspath(cwd)
    above = [search.above(start)]
    real = os.path.realpath(start)
    above += [search.above(folder) for folder in dict.fromkeys((real, *projects)) if folder != start]
    files = dict.fromkeys(file for found in above for file in found.files)
    user_wide = user_wide_file(config_home)
    if exists(user_wide):
        files[PolicyFile(user_wide, _user_wide_folder(start, projects, search))] = None
    return tuple(files)


def _user_wide_folder(cwd: str, projects: Sequence[str], search: FolderSearch) -> str:
    """Return the folder that the user-wide file is relative to: of the nearest policy, the project's first."""
    for folder in (*projects, cwd):
        if files := search.above(folder).files:
            return files[0].folder
    return projects[0] if projects else cwd


def find_layers(cwd: str, *, config_home: str | None = None) -> tuple[Layer, ...]:
    """Read the files that apply in `cwd` as they are now, nearest first.

    `config_home` is the folder of the user-wide file, if not the default. Raises `PolicyError` with the mistakes of
    all files.
    """
    layers: list[Layer] = []
    mistakes: list[Diagnostic] = []
    files = find_policy_files(cwd, config_home=config_home)
    for file in files:
        try:
            layers.append(read_layer(file.file, file.folder))
        except PolicyError as error:
            mistakes += error.mistakes
    if mistakes:
        raise PolicyError(tuple(dict.fromkeys(mistakes)))
    return with_commands_once(files, layers)


def read_layer(file: str, folder: str | None = None) -> Layer:
    """Read one file as it is now; its patterns are relative to `folder`, by default the file's own."""
    own = os.path.dirname(os.path.abspath(file)) if folder is None else folder
    contents = _read(file)
    return layer_of(file, own, contents.document, contents.digest)


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
    if cached_only and (recent := _memory_cache.recall(cwd, is_watching=True)) is not None:
        return recent
    search = FolderSearch(policy_cache_folder())
    files = find_files(search, cwd, config_home=config_home)
    loaded = load_files(files, clock=clock, validating=validating, cached_only=cached_only)
    if cached_only:
        others = policy_cache_folder(), user_wide_file(config_home)
        _memory_cache.remember(cwd, loaded, others, search.visited)
    return loaded


def load_files(
    files: Sequence[PolicyFile],
    *,
    clock: Callable[[], int] = time_ns,
    validating: bool = False,
    cached_only: bool = False,
    optional: frozenset[PolicyFile] = frozenset(),
) -> LoadedPolicy:
    """Load files that were found, as `load_policy` does. Those in `optional` are left out if they are broken."""
    layers: list[Layer] = []
    warnings: list[str] = []
    mistakes: list[Diagnostic] = []
    unreadable: dict[PolicyFile, Diagnostic] = {}
    for file in files:
        try:
            layer, more = _load(file.file, file.folder, clock, validating=validating, cached_only=cached_only)
        except PolicyError as error:
            if file in optional:
                unreadable[file] = error.mistakes[0]
            else:
                mistakes += error.mistakes
        else:
            layers.append(layer)
            warnings += more
    if mistakes:
        raise PolicyError(tuple(dict.fromkeys(mistakes)))
    loaded = with_commands_once([file for file in files if file not in unreadable], layers)
    return LoadedPolicy(loaded, tuple(dict.fromkeys(warnings)), unreadable=tuple(unreadable.values()))


def with_commands_once(files: Sequence[PolicyFile], layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the layers so that no file's commands run twice, in a worktree and in its main checkout.

    They run in the worktree: by the file that is there, or else by that of the main checkout.
    """
    copied = {file.file for file in files if file.is_main_checkout}
    if not copied:
        return tuple(layers)
    own = {file.folder for file in files if not file.is_main_checkout}
    quiet = (file.folder in own if file.is_main_checkout else file.file in copied for file in files)
    return tuple(
        variant_of(layer, runs_commands=False) if is_quiet else layer
        for layer, is_quiet in zip(layers, quiet, strict=True)
    )


def load_user_wide(*, config_home: str | None = None, clock: Callable[[], int] = time_ns) -> Policy:
    """Load the user-wide file alone; if it is broken, its last good version.

    Raises `PolicyError` if there is no such version. Its file patterns mean nothing, as there is no folder.
    """
    user_wide = user_wide_file(config_home)
    if not exists(user_wide):
        return Policy()
    return _load(user_wide, "/", clock, validating=False, cached_only=False)[0].policy


def has_decided_events(file: str) -> bool:
    """Return whether an event was decided by a file: its last good version then applies even if it is deleted."""
    cached = read_cached_policy(policy_cache_folder(), file)
    return cached is not None and not cached.only_validated


def policy_cache_folder() -> str:
    """Return the folder of the disk cache."""
    return f"{state_folder()}/policies"


def user_wide_file(config_home: str | None = None) -> str:
    """Return the path of the user-wide file, which need not exist."""
    return os.path.join(config_home or config_folder(), USER_WIDE)


# -- reading -------------------------------------------------------------------------------------------


_layers: dict[tuple[str, str], tuple[Stamp, Layer]] = {}
"""The layers that this process has loaded: file and folder → the file's stamp and the layer."""


def _load(
    file: str, folder: str, clock: Callable[[], int], *, validating: bool, cached_only: bool
) -> tuple[Layer, list[str]]:
    is_there = exists(file)
    stamp = _stamp(file) if is_there else None
    known_stamp, layer = _layers.get((file, folder), (None, None))
    if layer is not None and stamp is not None and known_stamp == stamp:
        return layer, []
    if cached_only:
        raise NotCached(file)
    if not is_there:
        return _load_deleted(file, folder)
    cached = read_cached_policy(policy_cache_folder(), file)
    is_current = cached is not None and cached.stamp == stamp and bool(cached.digest)
    if cached is None or stamp is None or not is_current or (cached.only_validated and not validating):
        return _load_changed(file, folder, cached, clock, validating=validating)
    try:
        layer = layer_of(file, folder, cached.document, cached.digest)
    except ValidationError:
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
        return layer_of(file, folder, cached.document, cached.digest), [str(error)]
    except ValidationError:
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
        contents = _read(file)
    except PolicyError as error:
        return _fall_back(file, folder, cached, error)
    layer, cache = layer_of(file, folder, contents.document, contents.digest), policy_cache_folder()
    only_validated = validating and (cached is None or cached.only_validated)
    try:
        write_cached_policy(cache, file, contents, clock(), only_validated=only_validated)
    except OSError as error:
        return layer, [_cannot_cache(cache, error)]
    return layer, []


def _fall_back(file: str, folder: str, cached: CachedPolicy | None, error: PolicyError) -> tuple[Layer, list[str]]:
    if cached is None:
        raise error
    try:
        layer = layer_of(file, folder, cached.document, cached.digest)
    except ValidationError:
        raise error from None
    first, others = str(error.mistakes[0]), len(error.mistakes) - 1
    more = f" There {'is 1 more mistake' if others == 1 else f'are {others} more mistakes'}." if others else ""
    advice = "The last good version of the file is used until you fix it; `fairlead validate` lists all mistakes."
    return layer, [f"{first}{'' if first.endswith(('?', '…')) else '.'}{more} {advice}"]


def _cannot_cache(cache: str, error: OSError) -> str:
    reason = error.strerror or error
    return f"{cache}: cannot cache the policy: {reason}; it is read again each time, and has no last good version"


def layer_of(file: str, folder: str, document: dict[str, Any], digest: str = "") -> Layer:
    """Return the layer of a file's document. Raises `ValidationError` if it is not one of a policy."""
    return Layer(file, folder, convert(document, Policy), document, digest=digest)


_variants: dict[tuple[str, str, bool, bool], tuple[Layer, Layer]] = {}
"""File, folder, `trusted`, `runs_commands` → a layer as it was loaded, and with these values.

Guards are compiled once for each layer, so the same layer must stay the same object."""


def variant_of(layer: Layer, *, trusted: bool | None = None, runs_commands: bool | None = None) -> Layer:
    """Return a layer with other values of `trusted` and `runs_commands`: the same object for the same layer."""
    trusted = layer.trusted if trusted is None else trusted
    runs_commands = layer.runs_commands if runs_commands is None else runs_commands
    if (trusted, runs_commands) == (layer.trusted, layer.runs_commands):
        return layer
    key = layer.file, layer.folder, trusted, runs_commands
    source, variant = _variants.get(key, (None, None))
    if variant is None or source is not layer:
        variant = replace(layer, trusted=trusted, runs_commands=runs_commands)
        if len(_variants) >= _MAX_LAYERS:
            _variants.clear()
        _variants[key] = layer, variant
    return variant


def _read(file: str) -> FileContents:
    require_msgspec()
    from fairlead.policy.config._reader import MAX_POLICY_BYTES, read_document

    text, status = _read_bytes(file, MAX_POLICY_BYTES + 1)
    from hashlib import sha256

    return FileContents(read_document(text, file), status, sha256(text).hexdigest())


def read_policy_text(file: str) -> bytes:
    """Read a policy file as it is. Raises `PolicyError` if it cannot be read."""
    from fairlead.policy.config._reader import MAX_POLICY_BYTES

    return _read_bytes(file, MAX_POLICY_BYTES + 1)[0]


def parse_layer(text: bytes, file: str) -> Layer:
    """Return the layer of a file with these contents. Raises `PolicyError` if they are not valid."""
    from fairlead.policy.config._reader import read_document

    return layer_of(file, os.path.dirname(os.path.abspath(file)), read_document(text, file))


def _read_bytes(file: str, limit: int) -> tuple[bytes, os.stat_result]:
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise unreadable_error(file, IsADirectoryError() if stat.S_ISDIR(status.st_mode) else OSError())
            with open(descriptor, "rb", closefd=False) as stream:
                return stream.read(limit), status
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unreadable_error(file, error) from None
