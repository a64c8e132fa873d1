"""Loads the policy of a session, and decides which of its files are trusted.

Trusted are the user-wide file, the files above the folder in which the session began, with their contents at that time,
and what a person has trusted. The rules of all other files apply too, but cannot loosen a rule or have a command run.
"""

from __future__ import annotations

import os

from fairlead.errors import NeedsThread
from fairlead.policy.config._files import (
    LoadedPolicy,
    PolicyNotice,
    find_files,
    layer_of,
    load_files,
    policy_cache_folder,
    user_wide_file,
    variant_of,
)
from fairlead.policy.config._lookup import FolderSearch, is_at_or_above
from fairlead.policy.config._memory_cache import cache_policy, get_cached_policy
from fairlead.policy.trust._session_snapshots import (
    may_renew,
    read_snapshot,
    snapshot_path,
    take_snapshot,
    write_snapshot,
)
from fairlead.policy.trust._store import is_trusted, trust_folder
from fairlead.structs import ValidationError, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._lookup import PolicyFile
    from fairlead.policy.config._types import Layer
    from fairlead.policy.trust._session_snapshots import PolicySnapshot, SessionCaller

_MAX_SNAPSHOT_LAYERS = 256


def load_session_policy(caller: SessionCaller, cwd: str, *, may_wait: bool = True) -> LoadedPolicy:
    """Load the files that apply to an event of a session, nearest first.

    The first event of a session records the contents of its files. Raises `PolicyError` as `load_policy` does. Without
    `may_wait`, raises `NeedsThread` instead of reading a policy file or recording a session.
    """
    key = cwd, caller.project, caller.id
    if not caller.begins and (recent := get_cached_policy(key, is_watching=not may_wait)) is not None:
        return recent
    snapshot = read_snapshot(caller.id)
    if snapshot is not None and may_renew(snapshot, caller):
        snapshot = None
    if snapshot is None and not may_wait:
        raise NeedsThread(cwd)
    search = FolderSearch(policy_cache_folder())
    projects = _projects(caller, cwd, snapshot)
    files = find_files(search, cwd, projects)
    loaded = load_files(files, may_wait=may_wait)
    if snapshot is None:
        snapshot, more = _record(caller, projects, files, loaded.layers)
        loaded = replace(loaded, warnings=(*loaded.warnings, *more))
    loaded = _with_trust(files, loaded, snapshot)
    cache_policy(
        key,
        loaded,
        (policy_cache_folder(), user_wide_file(), snapshot_path(caller.id), trust_folder()),
        search.visited,
    )
    return loaded


def _projects(caller: SessionCaller, cwd: str, snapshot: PolicySnapshot | None) -> tuple[str, ...]:
    """Return the folders of the session: its project, and the folder in which it began."""
    named = (caller.project,) if os.path.isabs(caller.project) else ()
    if snapshot is not None:
        return tuple(dict.fromkeys((*named, *snapshot.projects)))
    began = (os.path.abspath(cwd),) if caller.begins or not named else ()
    return tuple(dict.fromkeys((*named, *began)))


def _record(
    caller: SessionCaller, projects: tuple[str, ...], files: Sequence[PolicyFile], layers: Sequence[Layer]
) -> tuple[PolicySnapshot, tuple[str, ...]]:
    """Take and write the snapshot of a session; return it with warnings.

    If it cannot be written, its files are trusted all the same, with a warning.
    """
    user_wide = user_wide_file()
    covered = [
        layer
        for file, layer in zip(files, layers, strict=True)
        if layer.file != user_wide and _is_covered(file, projects)
    ]
    snapshot = take_snapshot(caller, projects, covered)
    try:
        write_snapshot(snapshot)
    except OSError as error:
        reason = error.strerror or error
        return snapshot, (f"{os.path.dirname(snapshot_path(caller.id))}: cannot record the session: {reason}",)
    return snapshot, ()


def _is_covered(file: PolicyFile, projects: Sequence[str]) -> bool:
    """Return whether a file is trusted by starting a session: it is above a project, and not another user's."""
    if not any(is_at_or_above(file.folder, project) for project in projects):
        return False
    try:
        # A file above the project's own folder may be another user's, such as one in /tmp.
        return file.folder in projects or os.lstat(file.file).st_uid in {os.geteuid(), 0}
    except OSError:
        return True  # it was deleted: its last good version is this user's


# -- trust ---------------------------------------------------------------------------------------------


def _with_trust(files: Sequence[PolicyFile], loaded: LoadedPolicy, snapshot: PolicySnapshot) -> LoadedPolicy:
    trusted = [_is_trusted(layer, snapshot) for layer in loaded.layers]
    trusted = [is_ok or _is_copy(index, files, loaded.layers, trusted) for index, is_ok in enumerate(trusted)]
    if all(trusted):
        return loaded
    layers: list[Layer] = []
    for layer, is_ok in zip(loaded.layers, trusted, strict=True):
        if not is_ok:
            earlier = _snapshot_layer(layer, snapshot)
            layers += [] if earlier is None else [earlier]
        layers.append(variant_of(layer, trusted=is_ok))
    return replace(loaded, layers=tuple(layers), notices=tuple(_notices(layers, snapshot)))


def _is_trusted(layer: Layer, snapshot: PolicySnapshot) -> bool:
    if layer.file == user_wide_file():
        return True
    recorded = snapshot.files.get(layer.file)
    return (recorded is not None and recorded.digest == layer.digest) or is_trusted(layer.file, layer.digest)


def _is_copy(index: int, files: Sequence[PolicyFile], layers: Sequence[Layer], trusted: Sequence[bool]) -> bool:
    """Return whether a file has the same contents as a trusted file of the main checkout for the same folder."""
    own, digest = files[index], layers[index].digest
    return any(
        file.is_main_checkout and file.folder == own.folder and is_ok and layer.digest == digest
        for file, layer, is_ok in zip(files, layers, trusted, strict=True)
    )


_snapshot_layers: dict[tuple[str, str, str, bool], Layer] = {}
"""File, folder, digest, `runs_commands` → the layer: guards are compiled once for each layer."""


def _snapshot_layer(layer: Layer, snapshot: PolicySnapshot) -> Layer | None:
    """Return the layer of a file as recorded when the session began; `None` if none was, or if it is not valid now."""
    recorded = snapshot.files.get(layer.file)
    if recorded is None:
        return None
    key = layer.file, layer.folder, recorded.digest, layer.runs_commands
    earlier = _snapshot_layers.get(key)
    if earlier is None:
        try:
            earlier = layer_of(layer.file, layer.folder, recorded.document, recorded.digest)
        except ValidationError:
            return None  # recorded by a version with other settings
        if len(_snapshot_layers) >= _MAX_SNAPSHOT_LAYERS:
            _snapshot_layers.clear()
        earlier = _snapshot_layers[key] = variant_of(earlier, runs_commands=layer.runs_commands)
    return earlier


def _notices(layers: Sequence[Layer], snapshot: PolicySnapshot) -> list[PolicyNotice]:
    from fairlead.policy.trust._withheld import only_adds_hooks, withheld_settings

    notices: dict[str, PolicyNotice] = {}
    for layer in layers:
        if layer.trusted or layer.digest in snapshot.notified:
            continue
        if recorded := snapshot.files.get(layer.file):
            if not only_adds_hooks(layer, recorded.document):
                notices[layer.digest] = PolicyNotice(layer.digest, _changed(layer.file))
        elif withheld := withheld_settings(layer, [other for other in layers if other.trusted]):
            notices[layer.digest] = PolicyNotice(layer.digest, _untrusted(layer.file, withheld))
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
