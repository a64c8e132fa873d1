"""The live view of every session and subagent, `fairlead watch`. `model` computes it without a screen.

Modules are loaded on first use: a plain list of sessions needs no screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.tui._app import WatchApp
    from fairlead.tui._source import SessionSource, SessionsReset, fetch_sessions
    from fairlead.tui.model._plain import plain_view, project_of, row_texts
    from fairlead.tui.model._projects import Location, find_location
    from fairlead.tui.model._view import View

__all__ = [
    "Location",
    "SessionSource",
    "SessionsReset",
    "View",
    "WatchApp",
    "fetch_sessions",
    "find_location",
    "plain_view",
    "project_of",
    "row_texts",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_app": ("WatchApp",),
        "_source": ("SessionSource", "SessionsReset", "fetch_sessions"),
        "model._plain": ("plain_view", "project_of", "row_texts"),
        "model._projects": ("Location", "find_location"),
        "model._view": ("View",),
    },
)
