"""Finds the folders on the disk that can contain files of some patterns."""

from __future__ import annotations

import os
from itertools import takewhile

from fairlead.policy.paths._spelling import nfc
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.paths._gitignore import Pattern

_GLOB_CHARACTERS = frozenset("*?[{\\")


class SearchRoot(Struct, frozen=True):
    """A folder below which there can be files that patterns match."""

    folder: str
    """The real path of the folder."""
    prefixes: tuple[tuple[str, ...], ...]
    """The subfolders that have to be searched, each by its parts in lower case; `()` is the whole folder."""

    def may_contain(self, relative: str) -> bool:
        """Return whether a subfolder can contain a file that a pattern names."""
        parts = tuple(relative.lower().split("/"))
        return any(part[: len(parts)] == parts[: len(part)] for part in self.prefixes)


def search_roots(patterns: Iterable[Pattern]) -> tuple[SearchRoot, ...]:
    """Return the folders below which files can match one of the patterns."""
    prefixes: dict[str, set[tuple[str, ...]]] = {}
    for pattern in patterns:
        prefixes.setdefault(os.path.realpath(pattern.base.folder), set()).add(_literal_prefix(pattern))
    return tuple(SearchRoot(folder, tuple(parts)) for folder, parts in prefixes.items())


def _literal_prefix(pattern: Pattern) -> tuple[str, ...]:
    """Return the parts of a pattern before its first wildcard; empty if it can match in any folder."""
    text, base = pattern.text.strip(), pattern.base
    is_absolute = base.folder != "/" and text.startswith((base.folder, *base.prefixes))
    if pattern.loose or is_absolute:
        return ()
    parts = [part for part in text.removeprefix("~").lower().split("/") if part not in {"", "."}]
    is_anchored = "/" in text.removeprefix("./").rstrip("/")
    return tuple(map(nfc, takewhile(_GLOB_CHARACTERS.isdisjoint, parts))) if is_anchored else ()
