"""Reads the files that a command reads and may run: `head -5 x.sh | sh` runs lines of x.sh."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from fairlead.policy.bash._context import AnalysisContext
from fairlead.policy.paths._resolve import PathResolver
from fairlead.policy.paths._search import TooManyFiles, expand, files_below
from fairlead.policy.paths._selection import SelectedFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.bash._analysis import Analysis, FileAccess
    from fairlead.policy.paths._resolve import ResolvedPath

_MAX_FILES = 32
_MAX_BYTES = 64 * 1024


def read_texts(analysis: Analysis, cwd: str, *, may_wait: bool) -> Iterator[str]:
    """Yield the contents of the files that a command reads or gets as arguments.

    Files that cannot be read, are too large or too many are left out. Without `may_wait`, raises `NeedsThread` instead
    of reading more than a few kilobytes.
    """
    context = AnalysisContext(cwd, may_wait=may_wait)
    paths = PathResolver(cwd)
    read = (access for access in chain(analysis.files, analysis.mentions) if access.mode in {"read", "any"})
    for path in islice((path for access in read for path in _files_of(access, paths)), _MAX_FILES):
        contents = context.read_file(path, _MAX_BYTES)
        if contents is not None and contents.data is not None:
            yield contents.data.decode("utf-8", "replace")


def _files_of(access: FileAccess, paths: PathResolver) -> Iterator[str]:
    target = paths.resolve(access.path)
    if not access.glob and not (access.below and target.is_folder):
        yield access.path
        return
    try:
        found = expand(access.path, paths) if access.glob else _below(target, access)
        yield from (file.real for file in found if not file.is_folder)
    except TooManyFiles:
        return


def _below(folder: ResolvedPath, access: FileAccess) -> Iterator[ResolvedPath]:
    selected = SelectedFiles(access.selection, folder)
    return (file for file in files_below(folder, selected.enters) if selected.has(file))
