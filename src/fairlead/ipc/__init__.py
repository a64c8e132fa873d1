"""The client side of the daemon's socket: one request, one stream, and the errors of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.ipc._async_client import asked
    from fairlead.ipc._exchange import Response, exchange
    from fairlead.ipc._requests import (
        ConnectionLost,
        DaemonNotResponding,
        DaemonUnavailable,
        RequestRefused,
        daemon_pid,
        request,
        stream_events,
    )

__all__ = [
    "ConnectionLost",
    "DaemonNotResponding",
    "DaemonUnavailable",
    "RequestRefused",
    "Response",
    "asked",
    "daemon_pid",
    "exchange",
    "request",
    "stream_events",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_async_client": ("asked",),
        "_exchange": (
            "Response",
            "exchange",
        ),
        "_requests": (
            "ConnectionLost",
            "DaemonNotResponding",
            "DaemonUnavailable",
            "RequestRefused",
            "daemon_pid",
            "request",
            "stream_events",
        ),
    },
)
