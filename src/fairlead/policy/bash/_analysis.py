"""Analyses a shell command: what it runs, which files it accesses, and what is not known before it runs.

Runs nothing. It opens files only through a context: the scripts, task files and archives that the command uses. The
parser is imported with the first command, not with the module.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._types import Analysis, FileAccess, SimpleCommand

if TYPE_CHECKING:
    from fairlead.policy.bash._context import AnalysisContext, Version

__all__ = ["Analysis", "FileAccess", "SimpleCommand", "analyse"]

_MAX_CACHED: Final = 256
_cached: OrderedDict[tuple[str, str, str], tuple[dict[str, Version], Analysis]] = OrderedDict()
"""Command, working folder and home folder → the versions of the files it depends on, and the result."""


def analyse(command: str, context: AnalysisContext | None = None) -> Analysis:
    """Return the analysis of a command. Raises nothing but the `NeedsThread` of a context, whatever the text is.

    Without a context, no file is opened.
    """
    from fairlead.policy.bash._interpreter import interpret  # importing the parser takes some milliseconds

    command = command.replace("\0", "")  # no argument and no path can contain a NUL
    if context is None:
        return interpret(command)
    key = command, context.cwd, os.environ.get("HOME", "")
    cached = _cached.get(key)
    if cached is not None and _is_current(cached[0]):
        return cached[1]
    analysis = interpret(command, context)
    if not context.has_searched and (context.versions or not context.has_used_disk):
        _cached[key] = context.versions, analysis
        while len(_cached) > _MAX_CACHED:
            _cached.popitem(last=False)
    return analysis


def _is_current(versions: dict[str, Version]) -> bool:
    from fairlead.policy.bash._context import version_of

    return all(version_of(path) == version for path, version in versions.items())
