"""The background process that answers the events of all sessions of one user.

Modules are loaded on first use: starting a daemon needs only the standard library.
"""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.daemon._lifecycle import MAX_SOCKET_PATH
    from fairlead.daemon._start import NO_DAEMON_VARIABLE, START_STAMP, daemon_log_file, start_daemon, start_on_demand
    from fairlead.daemon.commands._service import (
        CommandCall,
        CommandDeclined,
        CommandOutput,
        DaemonRequest,
        StdinWanted,
        WaitWanted,
    )
    from fairlead.daemon.events._messages import is_newer

__all__ = [
    "MAX_SOCKET_PATH",
    "NO_DAEMON_VARIABLE",
    "START_STAMP",
    "CommandCall",
    "CommandDeclined",
    "CommandOutput",
    "DaemonRequest",
    "StdinWanted",
    "WaitWanted",
    "daemon_log_file",
    "is_newer",
    "start_daemon",
    "start_on_demand",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_lifecycle": ("MAX_SOCKET_PATH",),
        "_start": ("NO_DAEMON_VARIABLE", "START_STAMP", "daemon_log_file", "start_daemon", "start_on_demand"),
        "commands._service": (
            "CommandCall",
            "CommandDeclined",
            "CommandOutput",
            "DaemonRequest",
            "StdinWanted",
            "WaitWanted",
        ),
        "events._messages": ("is_newer",),
    },
)
