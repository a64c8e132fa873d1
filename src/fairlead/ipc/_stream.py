"""HTTP over a Unix socket, for what is read while it is written."""

from __future__ import annotations

import socket
from http.client import HTTPConnection


class Connection(HTTPConnection):
    """A connection to the daemon."""

    def __init__(self, place: str, timeout: float) -> None:
        """Connect to that socket when something is asked."""
        super().__init__("fairlead", timeout=timeout)
        self._place = place

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._place)
