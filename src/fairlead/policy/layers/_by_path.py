"""Finds the policies above the files that a call touches, beside those of the session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairlead.policy.config._files import policy_cache_folder
from fairlead.policy.paths._search import TooManyFiles, expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.paths._resolve import PathResolver, ResolvedPath

_GLOB_CHARACTERS = frozenset("*?[")


class PathPolicies:
    """The policies above files, without the layers that are known."""

    def __init__(self, known: Sequence[Layer]) -> None:
        self._known = frozenset((layer.file, layer.folder) for layer in known)
        self._cache = policy_cache_folder()

    def above(self, paths: PathResolver, *, cached_only: bool) -> tuple[Layer, ...]:
        """Return the further policies above the paths that were resolved.

        Those above the agent's folder are known. With `cached_only`, raises `NotCached` rather than read a file.
        """
        folders = _folders(paths)
        if not folders:
            return ()
        from fairlead.policy.trust._path_layers import load_layers_above

        found = load_layers_above(folders, paths.cwd, paths.statuses, self._cache, cached_only=cached_only)
        return tuple(layer for layer in found if (layer.file, layer.folder) not in self._known)


def _folders(paths: PathResolver) -> tuple[str, ...]:
    """Return the folders of all paths, under all their names, that are not above the agent's own."""
    folders: set[str] = set()
    for target in paths.resolved():
        if target.exists and not target.is_folder and len(target.names) == 1:  # nearly every path
            folders.add(target.real[: target.real.rfind("/")])
        else:
            folders.update(_folders_of(target, paths))
    own = f"{paths.cwd}/"
    return tuple(sorted(folder for folder in folders if not own.startswith(f"{folder.rstrip('/')}/")))


def _folders_of(target: ResolvedPath, paths: PathResolver) -> Iterable[str]:
    if target.is_folder:
        return target.names
    folders = [name[: name.rfind("/")] or "/" for name in target.names]
    if target.exists or _GLOB_CHARACTERS.isdisjoint(folders[0]):
        return folders
    try:
        return [name for match in expand(folders[0], paths) for name in match.names]
    except (TooManyFiles, OSError):
        return [os.path.dirname(folder[: _first_glob(folder)]) for folder in folders]


def _first_glob(path: str) -> int:
    return min(path.find(character) for character in _GLOB_CHARACTERS if character in path)
