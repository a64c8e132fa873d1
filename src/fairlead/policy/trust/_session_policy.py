"""Loads the policy of a session, and decides which of its files are trusted.

Trusted are the user-wide file, the files above the folder in which the session began, as they were then, and what a
person has trusted. The rules of all other files apply too, but they cannot loosen a rule or have a command run.
"""

from __future__ import annotations

import os

from fairlead.policy.config._files import (
    LoadedPolicy,
    NotCached,
    Notice,
    find_files,
    layer_of,
    load_files,
    policy_cache_folder,
    user_wide_file,
    variant_of,
)
from fairlead.policy.config._lookup import FolderSearch, is_at_or_above
from fairlead.policy.config._memory_cache import recall, remember
from fairlead.policy.trust._beginnings import begin, beginning_path, may_renew, read_beginning, write_beginning
from fairlead.policy.trust._store import is_trusted, trust_folder
from fairlead.structs import ValidationError, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._lookup import PolicyFile
    from fairlead.policy.config._types import Layer
    from fairlead.policy.trust._beginnings import Beginning, SessionCaller

_MAX_SNAPSHOTS = 256


def load_session_policy(caller: SessionCaller, cwd: str, *, cached_only: bool = False) -> LoadedPolicy:
    """Load the files that apply to an event of a session, nearest first.

    The first event of a session records how its files are. Raises `PolicyError` as `load_policy` does, and with
    `cached_only` `NotCached` rather than read a policy file or record a session.
    """
    key = policy_cache_folder(), cwd, caller.project, caller.id
    if not caller.begins and (recent := recall(key, is_watching=cached_only)) is not None:
        return recent
    beginning = read_beginning(caller.id)
    if beginning is not None and may_renew(beginning, caller):
        beginning = None
    if beginning is None and cached_only:
        raise NotCached(cwd)
    search = FolderSearch(policy_cache_folder())
    projects = _projects(caller, cwd, beginning)
    files = find_files(search, cwd, projects)
    loaded = load_files(files, cached_only=cached_only)
    if beginning is None:
        beginning, more = _record(caller, projects, files, loaded.layers)
        loaded = replace(loaded, warnings=(*loaded.warnings, *more))
    loaded = _with_trust(files, loaded, beginning)
    remember(
        key,
        loaded,
        (policy_cache_folder(), user_wide_file(), beginning_path(caller.id), trust_folder()),
        search.visited,
    )
    return loaded


def _projects(caller: SessionCaller, cwd: str, beginning: Beginning | None) -> tuple[str, ...]:
    """Return the folders of the session: of its project, and that in which it began."""
    named = (caller.project,) if os.path.isabs(caller.project) else ()
    if beginning is not None:
        return tuple(dict.fromkeys((*named, *beginning.projects)))
    began = (os.path.abspath(cwd),) if caller.begins or not named else ()
    return tuple(dict.fromkeys((*named, *began)))


def _record(
    caller: SessionCaller, projects: tuple[str, ...], files: Sequence[PolicyFile], layers: Sequence[Layer]
) -> tuple[Beginning, tuple[str, ...]]:
    """Record how a session begins; if that fails, its files are trusted as they are at each event, with a warning."""
    user_wide = user_wide_file()
    begun = [
        layer
        for file, layer in zip(files, layers, strict=True)
        if layer.file != user_wide and _is_covered(file, projects)
    ]
    beginning = begin(caller, projects, begun)
    try:
        write_beginning(beginning)
    except OSError as error:
        reason = error.strerror or error
        return beginning, (f"{os.path.dirname(beginning_path(caller.id))}: cannot record the session: {reason}",)
    return beginning, ()


def _is_covered(file: PolicyFile, projects: Sequence[str]) -> bool:
    """Return whether a person who starts a session in a folder trusts a file: it is above, and not another user's."""
    if not any(is_at_or_above(file.folder, project) for project in projects):
        return False
    try:
        # A file above the folder itself may be anybody's, as one in /tmp.
        return file.folder in projects or os.lstat(file.file).st_uid in {os.geteuid(), 0}
    except OSError:
        return True  # it was deleted: its last good version is this user's


# -- trust ---------------------------------------------------------------------------------------------


def _with_trust(files: Sequence[PolicyFile], loaded: LoadedPolicy, beginning: Beginning) -> LoadedPolicy:
    trusted = [_is_trusted(layer, beginning) for layer in loaded.layers]
    trusted = [is_ok or _is_copy(at, files, loaded.layers, trusted) for at, is_ok in enumerate(trusted)]
    if all(trusted):
        return loaded
    layers: list[Layer] = []
    for layer, is_ok in zip(loaded.layers, trusted, strict=True):
        if not is_ok:
            snapshot = _snapshot(layer, beginning)
            layers += [] if snapshot is None else [snapshot]
        layers.append(variant_of(layer, trusted=is_ok))
    return replace(loaded, layers=tuple(layers), notices=tuple(_notices(layers, beginning)))


def _is_trusted(layer: Layer, beginning: Beginning) -> bool:
    if layer.file == user_wide_file():
        return True
    begun = beginning.files.get(layer.file)
    return (begun is not None and begun.digest == layer.digest) or is_trusted(layer.file, layer.digest)


def _is_copy(at: int, files: Sequence[PolicyFile], layers: Sequence[Layer], trusted: Sequence[bool]) -> bool:
    """Return whether a file of a worktree is the same as the one of the main checkout, which is trusted."""
    own, digest = files[at], layers[at].digest
    return any(
        file.is_main_checkout and file.folder == own.folder and is_ok and layer.digest == digest
        for file, layer, is_ok in zip(files, layers, trusted, strict=True)
    )


_snapshots: dict[tuple[str, str, str, bool], Layer] = {}
"""File, folder, digest, `runs_commands` → the layer: guards are compiled once for each layer."""


def _snapshot(layer: Layer, beginning: Beginning) -> Layer | None:
    """Return the layer of a file as it was when the session began; `None` if it was not there."""
    begun = beginning.files.get(layer.file)
    if begun is None:
        return None
    key = layer.file, layer.folder, begun.digest, layer.runs_commands
    snapshot = _snapshots.get(key)
    if snapshot is None:
        try:
            snapshot = layer_of(layer.file, layer.folder, begun.document, begun.digest)
        except ValidationError:
            return None  # recorded by a version with other settings
        if len(_snapshots) >= _MAX_SNAPSHOTS:
            _snapshots.clear()
        snapshot = _snapshots[key] = variant_of(snapshot, runs_commands=layer.runs_commands)
    return snapshot


def _notices(layers: Sequence[Layer], beginning: Beginning) -> list[Notice]:
    from fairlead.policy.trust._withheld import withheld_settings

    notices: dict[str, Notice] = {}
    for layer in layers:
        if layer.trusted or layer.digest in beginning.told:
            continue
        if layer.file in beginning.files:
            notices[layer.digest] = Notice(layer.digest, _changed(layer.file))
        elif withheld := withheld_settings(layer, [other for other in layers if other.trusted]):
            notices[layer.digest] = Notice(layer.digest, _untrusted(layer.file, withheld))
    return list(notices.values())


def _changed(file: str) -> str:
    return (
        f"{file} has changed since this session began. Its rules apply at once; what it loosens or newly runs waits "
        f"for `fairlead trust {file}`, or for the next session."
    )


def _untrusted(file: str, withheld: Sequence[str]) -> str:
    return (
        f"{file} is not trusted. Its rules apply, but not {', '.join(withheld)}. Read it, and if it may loosen rules "
        f"and run commands: fairlead trust {file}"
    )
