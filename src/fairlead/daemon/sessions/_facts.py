"""Reads facts about sessions from the disk and the process table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fairlead.clients import known_clients
from fairlead.process import dead_processes

if TYPE_CHECKING:
    from fairlead.clients import ClientSessionFile
    from fairlead.process import Process

Facts: TypeAlias = "tuple[list[ClientSessionFile], list[Process]]"


def look_up(processes: set[Process]) -> Facts:
    """Read the client's session files, and find the processes that are gone. For a thread."""
    files = [file for client in known_clients() for file in client.find_sessions()]
    return files, dead_processes(processes)
