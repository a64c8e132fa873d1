"""Finds the policy files that apply in a folder, and loads them: from a cache if they have not changed."""

from __future__ import annotations

import os
import stat
from time import time_ns

from fairlead.errors import NeedsThread
from fairlead.paths import config_folder, state_folder
from fairlead.policy.config import _memory_cache
from fairlead.policy.config._disk_cache import (
    PolicyFileContents,
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


class PolicyNotice(Struct, frozen=True):
    """A message about a file, which the user gets once in a session."""

    digest: str
    """The digest of the current contents of the file."""
    text: str


class LoadedPolicy(Struct, frozen=True):
    """The layers that apply, nearest first, and warnings about them for the user."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[PolicyNotice, ...] = ()
    """Messages that the user has not got yet."""
    unreadable: tuple[Diagnostic, ...] = ()
    """The first mistake of each optional file that could not be loaded."""


def find_policy_files(
    cwd: str, *, projects: Sequence[str] = (), config_home: str | None = None, also_deleted: bool = False
) -> tuple[PolicyFile, ...]:
    """Return the files that apply in `cwd` and to `projects`, nearest first. The user-wide file is the last.

    `projects` are further folders. `config_home` is the folder of the user-wide file, if not the default.
    `also_deleted`: include deleted files whose last good version is cached.
    """
    return find_files(FolderSearch(policy_cache_folder() if also_deleted else ""), cwd, projects, config_home)


def find_files(
    search: FolderSearch, cwd: str, projects: Sequence[str] = (), config_home: str | None = None
) -> tuple[PolicyFile, ...]:
    """Return the files of `find_policy_files`. `search` records the folders that the result depends on."""
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
    """Return the folder that patterns in the user-wide file are relative to.

    It is the folder of the nearest policy above a project, or else above `cwd`. If there is no policy, it is the first
    project, or else `cwd`.
    """
    for folder in (*projects, cwd):
        if files := search.above(folder).files:
            return files[0].folder
    return projects[0] if projects else cwd


def find_layers(cwd: str, *, config_home: str | None = None) -> tuple[Layer, ...]:
    """Read the current files that apply in `cwd`, nearest first.

    `config_home` is the folder of the user-wide file, if not the default. Raises `PolicyError` with the mistakes of
    all files.
    """
    return _read_files(find_policy_files(cwd, config_home=config_home)).layers


def find_layers_in_force(cwd: str) -> LoadedPolicy:
    """Read what `find_layers` reads, and the last good versions of deleted files, with a warning for each of these."""
    return _read_files(find_policy_files(cwd, also_deleted=True))


def _read_files(files: Sequence[PolicyFile]) -> LoadedPolicy:
    layers: list[Layer] = []
    warnings: list[str] = []
    mistakes: list[Diagnostic] = []
    for file in files:
        try:
            if exists(file.file):
                layers.append(read_layer(file.file, file.folder))
            else:
                layer, more = _load_deleted(file.file, file.folder)
                layers.append(layer)
                warnings += more
        except PolicyError as error:
            mistakes += error.mistakes
    if mistakes:
        raise PolicyError(tuple(dict.fromkeys(mistakes)))
    return LoadedPolicy(without_repeated_commands(files, layers), tuple(dict.fromkeys(warnings)))


def read_layer(file: str, folder: str | None = None) -> Layer:
    """Read the current version of a file. Raises `PolicyError` if it is not valid.

    Its patterns are relative to `folder`, by default the folder of the file.
    """
    own = os.path.dirname(os.path.abspath(file)) if folder is None else folder
    contents = _read(file)
    return layer_of(file, own, contents.document, contents.digest)


def find_hints(file: str) -> tuple[Diagnostic, ...]:
    """Return hints on entries that are valid but probably mistakes. Raises `PolicyError` if the file is invalid."""
    from fairlead.policy.config._reader import MAX_POLICY_BYTES, read_hints

    return read_hints(_read_bytes(file, MAX_POLICY_BYTES + 1)[0], file)


def load_policy(
    cwd: str,
    *,
    config_home: str | None = None,
    clock: Callable[[], int] = time_ns,
    validating: bool = False,
    may_wait: bool = True,
) -> LoadedPolicy:
    """Load the layers that apply in `cwd`. For a broken file, load its last good version, with a warning.

    Raises `PolicyError` if there is no such version. `clock` returns the time in nanoseconds. `validating`: the layers
    decide no event, so the version that is cached applies if the file breaks, but not if the file is deleted.
    Without `may_wait`, raises `NeedsThread` instead of reading a file.
    """
    if not may_wait and (recent := _memory_cache.get_cached_policy(cwd, is_watching=True)) is not None:
        return recent
    search = FolderSearch(policy_cache_folder())
    files = find_files(search, cwd, config_home=config_home)
    loaded = load_files(files, clock=clock, validating=validating, may_wait=may_wait)
    if not may_wait:
        others = policy_cache_folder(), user_wide_file(config_home)
        _memory_cache.cache_policy(cwd, loaded, others, search.visited)
    return loaded


def load_files(
    files: Sequence[PolicyFile],
    *,
    clock: Callable[[], int] = time_ns,
    validating: bool = False,
    may_wait: bool = True,
    optional: frozenset[PolicyFile] = frozenset(),
) -> LoadedPolicy:
    """Load some files as `load_policy` does.

    A file in `optional` that cannot be loaded is left out, and its first mistake is in `unreadable`.
    """
    layers: list[Layer] = []
    warnings: list[str] = []
    mistakes: list[Diagnostic] = []
    unreadable: dict[PolicyFile, Diagnostic] = {}
    for file in files:
        try:
            layer, more = _load(file.file, file.folder, clock, validating=validating, may_wait=may_wait)
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
    loaded = without_repeated_commands([file for file in files if file not in unreadable], layers)
    return LoadedPolicy(loaded, tuple(dict.fromkeys(warnings)), unreadable=tuple(unreadable.values()))


def without_repeated_commands(files: Sequence[PolicyFile], layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the layers such that commands do not run twice, for a worktree and for its main checkout.

    The commands run in the worktree: those of the worktree's own file, or else those of the main checkout's file.
    """
    copied = {file.file for file in files if file.is_main_checkout}
    if not copied:
        return tuple(layers)
    own = {file.folder for file in files if not file.is_main_checkout}
    skipped = (file.folder in own if file.is_main_checkout else file.file in copied for file in files)
    return tuple(
        variant_of(layer, runs_commands=False) if skips else layer for layer, skips in zip(layers, skipped, strict=True)
    )


def load_user_wide(*, config_home: str | None = None, clock: Callable[[], int] = time_ns) -> Policy:
    """Load only the user-wide file, or the defaults if there is none. If it is broken, load its last good version.

    Raises `PolicyError` if there is no such version. The file patterns have no meaning, as they have no base folder.
    """
    user_wide = user_wide_file(config_home)
    if not exists(user_wide):
        return Policy()
    return _load(user_wide, "/", clock, validating=False, may_wait=True)[0].policy


def has_decided_events(file: str) -> bool:
    """Return whether a file has decided events. If so, its last good version applies even after it is deleted."""
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
    file: str, folder: str, clock: Callable[[], int], *, validating: bool, may_wait: bool
) -> tuple[Layer, list[str]]:
    file_exists = exists(file)
    stamp = _stamp(file) if file_exists else None
    known_stamp, layer = _layers.get((file, folder), (None, None))
    if layer is not None and stamp is not None and known_stamp == stamp:
        return layer, []
    if not may_wait:
        raise NeedsThread(file)
    if not file_exists:
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
    """Load the last good version of a deleted file, with a warning. Raises `PolicyError` if there is none.

    Switching branches must not disable a policy.
    """
    cached = read_cached_policy(policy_cache_folder(), file)
    error = PolicyError((deleted_file_warning(file),))
    if cached is None:
        raise error
    try:
        return layer_of(file, folder, cached.document, cached.digest), [str(error)]
    except ValidationError:
        raise error from None


def deleted_file_warning(file: str) -> Diagnostic:
    """Return the warning about a deleted file whose last good version applies, with the command that ends this."""
    from shlex import quote

    command = f"rm {quote(cache_path(policy_cache_folder(), file))}"
    advice = f"Its last good version is used. Restore the file, or stop using that version: {command}"
    return Diagnostic(file, 0, 0, f"the file was deleted. {advice}")


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
    """Return the layer of a file's document. Raises `ValidationError` if the document is not a policy."""
    return Layer(file, folder, convert(document, Policy), document, digest=digest)


_variants: dict[tuple[str, str, bool, bool], tuple[Layer, Layer]] = {}
"""File, folder, `trusted`, `runs_commands` → the loaded layer, and its variant with these values.

Guards are compiled once for each layer object, so equal variants must be the same object."""


def variant_of(layer: Layer, *, trusted: bool | None = None, runs_commands: bool | None = None) -> Layer:
    """Return a layer with other values of `trusted` and `runs_commands`; `None`: unchanged.

    Equal calls return the same object.
    """
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


def _read(file: str) -> PolicyFileContents:
    require_msgspec()
    from fairlead.policy.config._reader import MAX_POLICY_BYTES, read_document

    text, status = _read_bytes(file, MAX_POLICY_BYTES + 1)
    from hashlib import sha256

    return PolicyFileContents(read_document(text, file), status, sha256(text).hexdigest())


def read_policy_text(file: str) -> bytes:
    """Return the bytes of a policy file; if it is too large, the start. Raises `PolicyError` if it is unreadable."""
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
