"""The live view of every session and subagent: `fairlead watch`. What is shown is computed without a screen.

The parts are loaded on first use: a list of sessions needs no screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.tui._app import WatchApp
    from fairlead.tui._plain import plain_text, plain_view, project_of, row_texts
    from fairlead.tui._projects import find_place
    from fairlead.tui._source import Source, fetch_once
    from fairlead.tui._text import span
    from fairlead.tui._view import View

__all__ = [
    "Source",
    "View",
    "WatchApp",
    "fetch_once",
    "find_place",
    "plain_text",
    "plain_view",
    "project_of",
    "row_texts",
    "span",
]

_HOMES = {
    "_app": {"WatchApp"},
    "_plain": {"plain_text", "plain_view", "project_of", "row_texts"},
    "_projects": {"find_place"},
    "_source": {"Source", "fetch_once"},
    "_text": {"span"},
    "_view": {"View"},
}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    from importlib import import_module  # noqa: PLC0415 - only the first use pays for it

    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"fairlead.tui.{home}"), name)
            return value
    raise AttributeError(f"module 'fairlead.tui' has no attribute {name!r}")
