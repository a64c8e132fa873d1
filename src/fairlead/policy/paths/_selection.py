"""Selects the files below a folder that a program accesses: by name, and without those that searches leave out."""

from __future__ import annotations

from fairlead.policy.paths._gitignore import Pattern, PatternSet
from fairlead.policy.paths._resolve import BaseFolder
from fairlead.policy.paths._translate import PatternError
from fairlead.structs import LIGHT, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.paths._resolve import ResolvedPath

if TYPE_CHECKING or not LIGHT:
    from typing import Literal

    LeftOut = Literal["hidden", "ignored"]
_MAX_PATTERNS = 32
"""The maximum number of patterns in `among` that are compared. With more, all files count as accessed."""


class Selection(Struct, frozen=True):
    """The files below a folder that are accessed."""

    among: tuple[str, ...] = ()
    """Patterns, as in a `.gitignore`, of the files that are accessed; empty means all files."""
    without: tuple[str, ...] = ()
    """Patterns of files and folders that are left out."""
    skips: tuple[LeftOut, ...] = ()
    """What is left out: `hidden`, names that begin with a dot; `ignored`, what git ignores."""


ALL_FILES = Selection()


class SelectedFiles:
    """The files below one folder that a selection contains."""

    def __init__(self, selection: Selection, folder: ResolvedPath) -> None:
        self._base = BaseFolder(folder.real, tuple(f"{name.rstrip('/')}/" for name in folder.names))
        self._among = self._patterns(selection.among) if 0 < len(selection.among) <= _MAX_PATTERNS else None
        self._without = self._patterns(selection.without) if selection.without else None
        self._skips = selection.skips

    def _patterns(self, texts: Iterable[str]) -> PatternSet:
        return PatternSet(pattern for text in [*texts][:_MAX_PATTERNS] for pattern in _pattern(text, self._base))

    def has(self, file: ResolvedPath) -> bool:
        """Return whether a file is accessed."""
        if self._among is not None and not self._among.may_match(file):
            return False
        if self._without is not None and self._without.may_match(file):
            return False
        return not self._skips or not self._is_skipped(file)

    def enters(self, folder: ResolvedPath) -> bool:
        """Return whether a folder is searched."""
        left_out = self._without is not None and self._without.may_match(folder)
        return not left_out and not (self._skips and self._is_skipped(folder))

    def _is_skipped(self, file: ResolvedPath) -> bool:
        if "hidden" in self._skips and any("/." in f"/{name}" for name in file.below(self._base)):
            return True
        if "ignored" in self._skips:
            from fairlead.policy.paths._git_ignored import find_ignored

            return find_ignored(file) is not None
        return False


def _pattern(text: str, base: BaseFolder) -> Iterable[Pattern]:
    try:
        return (Pattern(text, base, own_base=True),)
    except PatternError:
        return ()
