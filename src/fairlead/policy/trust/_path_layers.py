"""Loads the policies above the files that a call touches. Only what a person has trusted loosens anything."""

from __future__ import annotations

from fairlead.policy.config._files import load_files, user_wide_file, variant_of
from fairlead.policy.config._lookup import FolderSearch, PolicyFile, exists
from fairlead.policy.config._memory_cache import recall, remember
from fairlead.policy.trust._store import is_trusted, trust_folder
from fairlead.structs import Struct, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.policy.config._files import LoadedPolicy


class TouchedFolders(Struct, frozen=True):
    """The folders of the files that a call touches."""

    files: frozenset[str] = frozenset()
    """The folders of single files that the call touches."""
    whole: frozenset[str] = frozenset()
    """Folders that are touched as a whole, and folders with a policy below them. Broken policies there are left out."""


def load_layers_above(
    folders: TouchedFolders, cwd: str, known: Mapping[str, object], cache: str, *, cached_only: bool = False
) -> LoadedPolicy:
    """Load the policies above folders, but not those above `cwd`; nearest first for each folder.

    `known` are statuses of folders that were just looked up, `cache` is the folder of the disk cache.

    The user-wide file is included, relative to each folder with a policy and to each repository. Raises `PolicyError`
    if a file is broken. With `cached_only`, raises `NotCached` instead of reading a file.
    """
    key = cache, cwd, folders
    recent = recall(key, known, is_watching=cached_only)
    if recent is not None:
        return recent
    search = FolderSearch(cache)
    user_wide = user_wide_file()
    needed, _ = _find(search, sorted(folders.files), cwd, user_wide)
    files, has_roots = _find(search, [*sorted(folders.files), *sorted(folders.whole)], cwd, user_wide)
    optional = frozenset(file for file in files if file.file != user_wide) - frozenset(needed)
    loaded = load_files(files, cached_only=cached_only, optional=optional)
    layers = (
        variant_of(layer, trusted=layer.file == user_wide or is_trusted(layer.file, layer.digest))
        for layer in loaded.layers
    )
    loaded = replace(loaded, layers=tuple(layers))
    others = (user_wide, trust_folder()) if files or has_roots else ()
    broken = (error.file for error in loaded.unreadable)
    remember(key, loaded, (cache, *others, *broken), search.visited)
    return loaded


def _find(
    search: FolderSearch, folders: Iterable[str], cwd: str, user_wide: str
) -> tuple[tuple[PolicyFile, ...], bool]:
    """Return the files, and whether there is a folder that the user-wide file would be relative to."""
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
