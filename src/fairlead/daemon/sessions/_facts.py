"""Finds out about sessions from the client's files and the process table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fairlead.clients import known_clients
from fairlead.process import dead_processes, is_alive

if TYPE_CHECKING:
    from fairlead.clients import ClientSessionFile
    from fairlead.process import Process
    from fairlead.sessions import Session

Facts: TypeAlias = "tuple[list[ClientSessionFile], list[Process]]"


def collect_facts(processes: set[Process]) -> Facts:
    """Return the session files of all clients, and a list of those `processes` that have ended.

    For a thread, because it reads files.
    """
    files = [file for client in known_clients() for file in client.find_sessions()]
    return files, dead_processes(processes)


def reporting_pid(session: Session, caller: Process) -> int:
    """Return the pid of the client's process to which a report of a session's cost is attributed.

    That is the process of the session's events. If it has ended and `caller`, which has sent the report, has not, it is
    the caller: a client that continues a session reports a cost before its first event.
    """
    was_killed = not is_alive(session.pid, session.pid_start) and is_alive(*caller)
    return caller[0] if was_killed else session.pid
