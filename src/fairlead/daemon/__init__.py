"""The background process that answers the events of all sessions of one user.

Modules are loaded on first use: starting a daemon needs only the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.daemon._lifecycle import MAX_SOCKET_PATH
    from fairlead.daemon._start import NO_DAEMON_VARIABLE, daemon_log_file, start_daemon, start_on_demand
    from fairlead.daemon.events._messages import is_newer

__all__ = [
    "MAX_SOCKET_PATH",
    "NO_DAEMON_VARIABLE",
    "daemon_log_file",
    "is_newer",
    "start_daemon",
    "start_on_demand",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_lifecycle": ("MAX_SOCKET_PATH",),
        "_start": (
            "NO_DAEMON_VARIABLE",
            "daemon_log_file",
            "start_daemon",
            "start_on_demand",
        ),
        "events._messages": ("is_newer",),
    },
)
