"""The single settings of `preToolUse` that apply to a file: those of the policies above it come first."""

from __future__ import annotations

from fairlead.policy.config._lookup import NAMES
from fairlead.policy.config._merge import merge_layers
from fairlead.policy.paths._resolve import BaseFolder
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._types import Layer, PreToolUse
    from fairlead.policy.paths._resolve import ResolvedPath


class FileSettings(Struct, frozen=True):
    """The settings for a file, the folders with a policy that it is in, and the file of the nearest policy."""

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

    def of(self, target: ResolvedPath) -> FileSettings:
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
