"""Finds out whether a process runs below a session of a client, by its environment and its ancestor processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.clients.protocol import Client


def client_above(environ: Mapping[str, str], pid: int = 0) -> Client | None:
    """Return the client below whose session a process runs; `None` if there is none.

    `environ` is the environment of the process, which is examined first; `pid` is its id, 0 for this process. This
    blocks, because it reads the process table.
    """
    from fairlead.clients import known_clients

    clients = list(known_clients())
    for client in clients:
        names = (*client.variables.session_id, *client.program.command_variables)
        if any(environ.get(name) for name in names):
            return client
    return _client_among_ancestors(clients, pid or os.getpid())


def _client_among_ancestors(clients: list[Client], pid: int) -> Client | None:
    from fairlead.process import ancestry_of, command_line

    above = ancestry_of(pid).processes[1:]
    starts = dict(above)
    lines = [command_line(ancestor) for ancestor in starts]
    for client in clients:
        if any(client.program.matches(words) for words in lines):
            return client
        listed = (session for session in client.find_sessions() if session.pid in starts)
        if any(not session.start or starts[session.pid] in {0, session.start} for session in listed):
            return client
    return None
