"""`fairlead StatusLine`: prints the status line of a session from its payload, if no daemon answers. Without Click.

The client shows this line all day, so an error is never printed there, and the exit code is 0.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from fairlead.clients import DEFAULT_CLIENT, client_named
from fairlead.sessions import MAX_STATUS_BYTES, line_of


def run() -> int:
    """Read the client's payload from stdin, print the status line, and return 0. After an error, print nothing."""
    with suppress(Exception):
        os.write(1, f"{line_of(client_named(DEFAULT_CLIENT).read_status_line(_read_payload()))}\n".encode())
    return 0


def _read_payload() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read(MAX_STATUS_BYTES + 1)
