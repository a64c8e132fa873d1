"""The live view of every session and subagent, `fairlead watch`. `model` computes it without a screen.

Modules are loaded on first use: a plain list of sessions needs no screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.tui._app import WatchApp
    from fairlead.tui._source import Reset, Source, fetch_once
    from fairlead.tui.model._plain import plain_text, plain_view, project_of, row_texts
    from fairlead.tui.model._projects import Place, find_place
    from fairlead.tui.model._view import View

__all__ = [
    "Place",
    "Reset",
    "Source",
    "View",
    "WatchApp",
    "fetch_once",
    "find_place",
    "plain_text",
    "plain_view",
    "project_of",
    "row_texts",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_app": ("WatchApp",),
        "_source": (
            "Reset",
            "Source",
            "fetch_once",
        ),
        "model._plain": (
            "plain_text",
            "plain_view",
            "project_of",
            "row_texts",
        ),
        "model._projects": (
            "Place",
            "find_place",
        ),
        "model._view": ("View",),
    },
)
