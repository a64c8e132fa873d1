"""Understand a shell command before it runs: what it runs, which files it touches, what nobody can tell.

Pure: nothing is run, and no file is looked at. The parser is loaded with the first command, not with the module.
"""

from __future__ import annotations

from fairlead.policy.bash._types import Analysis, FileUse, Simple

__all__ = ["Analysis", "FileUse", "Simple", "analyse"]


def analyse(command: str) -> Analysis:
    """Take a command apart; never raises, whatever the text."""
    from fairlead.policy.bash._interpreter import walk  # the parser costs some milliseconds

    return walk(command)
