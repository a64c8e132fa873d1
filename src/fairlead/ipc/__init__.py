"""The client side of the daemon's socket. Standard library only; nothing is imported before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.ipc._async_client import open_stream
    from fairlead.ipc._client import exchange, request, stream_events
    from fairlead.ipc._errors import ConnectionLost, DaemonNotResponding, DaemonUnavailable, RequestRefused
    from fairlead.ipc._http import Response, ServerSentEvent
    from fairlead.ipc._lock import daemon_pid
    from fairlead.ipc._receipts import PRINTING, begin_printing, give_receipt, receipts_folder

__all__ = [
    "PRINTING",
    "ConnectionLost",
    "DaemonNotResponding",
    "DaemonUnavailable",
    "RequestRefused",
    "Response",
    "ServerSentEvent",
    "begin_printing",
    "daemon_pid",
    "exchange",
    "give_receipt",
    "open_stream",
    "receipts_folder",
    "request",
    "stream_events",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_async_client": ("open_stream",),
        "_client": ("exchange", "request", "stream_events"),
        "_errors": ("ConnectionLost", "DaemonNotResponding", "DaemonUnavailable", "RequestRefused"),
        "_http": ("Response", "ServerSentEvent"),
        "_lock": ("daemon_pid",),
        "_receipts": ("PRINTING", "begin_printing", "give_receipt", "receipts_folder"),
    },
)
