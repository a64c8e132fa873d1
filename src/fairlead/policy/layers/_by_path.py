"""Finds, loads and merges the policies above the files that a call touches, in addition to those of the session.

Only what a person has trusted loosens anything.
"""

from __future__ import annotations

import os
from itertools import islice

from fairlead.policy.config._files import LoadedPolicy, load_files, policy_cache_folder, user_wide_file, variant_of
from fairlead.policy.config._lookup import NAMES, FolderSearch, PolicyFile, exists
from fairlead.policy.config._memory_cache import cache_policy, get_cached_policy
from fairlead.policy.config._merge import merge_layers
from fairlead.policy.paths._resolve import BaseFolder
from fairlead.policy.paths._search import TooManyFiles, expand
from fairlead.policy.trust._store import is_trusted, trust_folder
from fairlead.structs import Struct, replace

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlead.policy.config._types import Layer, PreToolUse
    from fairlead.policy.paths._resolve import PathResolver, ResolvedPath


class FileSettings(Struct, frozen=True):
    """The settings for a file, the folders with a policy that it is in, and the file of the nearest policy, if any."""

    rules: PreToolUse
    roots: tuple[BaseFolder, ...]
    file: str


class SettingsByFile:
    """Merges the settings for each file: nearest policy above it first, then those of the session.

    `path_layers` are the layers above some files of a call. Each of them applies only to the files below it.
    """

    def __init__(self, layers: Sequence[Layer], path_layers: Sequence[Layer] = ()) -> None:
        self._session = tuple(layers)
        in_folders = [layer for layer in (*layers, *path_layers) if _has_root(layer)]
        self._roots = tuple((BaseFolder.at(layer.folder), layer) for layer in in_folders)
        self._bases = tuple(base for base, _ in self._roots)
        self._merged: dict[tuple[bool, ...], FileSettings] = {}

    def settings_for(self, target: ResolvedPath) -> FileSettings:
        """Return the settings for a file."""
        key = tuple([bool(target.below(base)) for base in self._bases])
        settings = self._merged.get(key)
        if settings is None:
            settings = self._merged[key] = self._merge(key)
        return settings

    def _merge(self, contains: tuple[bool, ...]) -> FileSettings:
        above = [root for root, is_above in zip(self._roots, contains, strict=True) if is_above]
        above.sort(key=lambda root: -max(map(len, root[0].prefixes)))
        layers = [layer for _, layer in above]
        layers += [layer for layer in self._session if layer not in layers]
        file = layers[0].file if layers else ""
        return FileSettings(merge_layers(layers).pre_tool_use, tuple(base for base, _ in above), file)


def _has_root(layer: Layer) -> bool:
    """Return whether a layer is the policy of its folder. The user-wide one is not, and has no root."""
    folder, _, name = layer.file.rpartition("/")
    return name in NAMES or folder.rstrip("/") == layer.folder.rstrip("/")


_NOTHING = LoadedPolicy()
_MAX_ENTRIES_BELOW = 2000
_NO_FOLDERS: frozenset[str] = frozenset()
_GLOB_CHARACTERS = frozenset("*?[")


class PathPolicies:
    """Finds the policies above files, without the layers that are known already."""

    def __init__(self, known: Sequence[Layer]) -> None:
        self._known = frozenset((layer.file, layer.folder) for layer in known)
        self._cache = policy_cache_folder()

    def above(self, paths: PathResolver, *, may_wait: bool) -> LoadedPolicy:
        """Return the further policies above the paths that were resolved, and warnings about them.

        Policies above the agent's folder are known already. Raises `PolicyError` if one above a single file is broken.
        Without `may_wait`, raises `NeedsThread` instead of reading a file.
        """
        files, whole = _folders(paths)
        if not (files or whole):
            return _NOTHING

        folders = TouchedFolders(files, whole)
        loaded = load_layers_above(folders, paths.cwd, paths.statuses, self._cache, may_wait=may_wait)
        if not loaded.layers:
            return loaded
        layers = tuple(layer for layer in loaded.layers if (layer.file, layer.folder) not in self._known)
        return LoadedPolicy(layers, loaded.warnings, unreadable=loaded.unreadable)


def _folders(paths: PathResolver) -> tuple[frozenset[str], frozenset[str]]:
    """Return two sets of folders that are touched and not above the agent's own folder.

    The first are the folders of all paths, under all their names. The second are the paths that are folders themselves,
    and the folders with a policy below a folder that is touched as a whole.
    """
    folders: set[str] = set()
    whole: set[str] = set()
    for target in paths.resolved():
        if target.is_folder:
            whole.update(target.names)
            folders.update([name[: name.rfind("/")] for name in target.names])
            continue
        if len(target.names) > 1:
            folders.update(_folders_of(target, paths))
            continue
        folder = target.real[: target.real.rfind("/")]  # nearly every path has one name
        if folder not in folders:
            folders.update((folder,) if target.exists or not _has_glob(folder) else _folders_of(target, paths))
    for folder in paths.whole_folders:
        whole.update(_policies_below(folder))
    own = f"{paths.cwd}/"
    return _not_above(folders, own), _not_above(whole - folders, own)


def _not_above(folders: set[str], own: str) -> frozenset[str]:
    if not folders:
        return _NO_FOLDERS
    return frozenset([folder for folder in folders if not own.startswith(f"{folder.rstrip('/')}/")])


def _policies_below(folder: str) -> Iterable[str]:
    """Yield the folders with a policy below a folder that is touched as a whole.

    The search is bounded, and finds the nearest first: a policy is rarely deep in a folder.
    """
    waiting, left = [folder], _MAX_ENTRIES_BELOW
    for step in waiting:
        try:
            with os.scandir(step) as entries:
                for entry in islice(entries, left):
                    left -= 1
                    if entry.name in NAMES:
                        yield step
                    elif entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                        waiting.append(entry.path)
        except OSError:
            continue


def _folders_of(target: ResolvedPath, paths: PathResolver) -> Iterable[str]:
    folders = [name[: name.rfind("/")] or "/" for name in target.names]
    if target.exists or not _has_glob(folders[0]):
        return folders
    try:
        return [name for match in expand(folders[0], paths) for name in match.names]
    except (TooManyFiles, OSError):
        return [os.path.dirname(folder[: _first_glob(folder)]) for folder in folders]


def _has_glob(path: str) -> bool:
    return "*" in path or "?" in path or "[" in path


def _first_glob(path: str) -> int:
    return min(path.find(character) for character in _GLOB_CHARACTERS if character in path)


class TouchedFolders(Struct, frozen=True):
    """The folders of the files that a call touches."""

    files: frozenset[str] = frozenset()
    """The folders of single files that the call touches."""
    whole: frozenset[str] = frozenset()
    """Folders that are touched as a whole, and folders with a policy below them. Broken policies there are left out."""


def load_layers_above(
    folders: TouchedFolders, cwd: str, known: Mapping[str, object], cache: str, *, may_wait: bool = True
) -> LoadedPolicy:
    """Load the policies above folders, but not those above `cwd`; nearest first for each folder.

    `known` are statuses of folders that were just looked up, `cache` is the folder of the disk cache.

    The user-wide file is included, relative to each folder with a policy and to each repository. Raises `PolicyError`
    if a file above one of `folders.files` is broken. Without `may_wait`, raises `NeedsThread` instead of reading one.
    """
    key = cache, cwd, folders
    recent = get_cached_policy(key, known, is_watching=not may_wait)
    if recent is not None:
        return recent
    search = FolderSearch(cache)
    user_wide = user_wide_file()
    needed, _ = _find(search, sorted(folders.files), cwd, user_wide)
    files, has_roots = _find(search, [*sorted(folders.files), *sorted(folders.whole)], cwd, user_wide)
    optional = frozenset(file for file in files if file.file != user_wide) - frozenset(needed)
    loaded = load_files(files, may_wait=may_wait, optional=optional)
    layers = (
        variant_of(layer, trusted=layer.file == user_wide or is_trusted(layer.file, layer.digest))
        for layer in loaded.layers
    )
    loaded = replace(loaded, layers=tuple(layers))
    others = (user_wide, trust_folder()) if files or has_roots else ()
    broken = (error.file for error in loaded.unreadable)
    cache_policy(key, loaded, (cache, *others, *broken), search.visited)
    return loaded


def _find(
    search: FolderSearch, folders: Iterable[str], cwd: str, user_wide: str
) -> tuple[tuple[PolicyFile, ...], bool]:
    """Return the policy files above folders, and whether the user-wide file would be relative to one of those above.

    Files above `cwd` are left out.
    """
    files: dict[PolicyFile, None] = {}
    roots: dict[str, None] = {}
    for folder in folders:
        policies = search.above(folder, below=cwd)
        files.update(dict.fromkeys(policies.files))
        if policies.root is not None:
            roots[policies.root] = None
    if roots and exists(user_wide):
        files.update((PolicyFile(user_wide, root), None) for root in roots)
    return tuple(files), bool(roots)
