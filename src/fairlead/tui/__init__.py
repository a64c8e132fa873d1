"""The live view of all sessions and subagents, `fairlead watch`. `model` computes its content without a screen.

Modules are imported on first use: a plain list of sessions needs no screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.tui._app import WatchApp
    from fairlead.tui._plain import count_sessions, folder_name, plain_view, row_texts
    from fairlead.tui._session_control import (
        end_session,
        interrupt_session,
        require_process,
        send_mail,
        show_in_pager,
        transcript_lines,
    )
    from fairlead.tui._source import SessionSource, SessionsReset, fetch_sessions
    from fairlead.tui._tmux import go_to_pane
    from fairlead.tui.model._projects import Location, find_location
    from fairlead.tui.model._view import View

__all__ = [
    "Location",
    "SessionSource",
    "SessionsReset",
    "View",
    "WatchApp",
    "count_sessions",
    "end_session",
    "fetch_sessions",
    "find_location",
    "folder_name",
    "go_to_pane",
    "interrupt_session",
    "plain_view",
    "require_process",
    "row_texts",
    "send_mail",
    "show_in_pager",
    "transcript_lines",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_app": ("WatchApp",),
        "_session_control": (
            "end_session",
            "interrupt_session",
            "require_process",
            "send_mail",
            "show_in_pager",
            "transcript_lines",
        ),
        "_tmux": ("go_to_pane",),
        "_source": ("SessionSource", "SessionsReset", "fetch_sessions"),
        "_plain": ("count_sessions", "plain_view", "folder_name", "row_texts"),
        "model._projects": ("Location", "find_location"),
        "model._view": ("View",),
    },
)
