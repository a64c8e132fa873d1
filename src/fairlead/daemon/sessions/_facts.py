"""Reads facts about sessions from the disk and the process table."""

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
    """Read the client's session files, and find the processes that are gone. For a thread."""
    files = [file for client in known_clients() for file in client.find_sessions()]
    return files, dead_processes(processes)


def reporting_pid(session: Session, caller: Process) -> int:
    """Return the pid of the process that reports the cost of a session.

    A client that continues a session reports a cost before its first event. If the process that has sent the session's
    events was killed, the caller stands for the new one.
    """
    was_killed = not is_alive(session.pid, session.pid_start) and is_alive(*caller)
    return caller[0] if was_killed else session.pid
