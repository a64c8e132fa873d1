"""Analyses a shell command: what it runs, which files it accesses, and what is not known before it runs.

Runs nothing and opens no file. The parser is imported with the first command, not with the module.
"""

from __future__ import annotations

from fairlead.policy.bash._types import Analysis, FileAccess, SimpleCommand

__all__ = ["Analysis", "FileAccess", "SimpleCommand", "analyse"]


def analyse(command: str) -> Analysis:
    """Analyse a command. Never raises, whatever the text."""
    from fairlead.policy.bash._interpreter import interpret  # importing the parser takes some milliseconds

    return interpret(command)
