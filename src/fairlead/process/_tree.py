"""The line of a process: itself, its parent, and so on, as the system tells it. For a thread: it reads files.

A pid is used again, so a process is its pid and when it began. While we walk, processes end and others take over their
pids; but a parent begins before its child, and what does not is another process.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 128
"""Processes in a line; nobody nests shells deeper."""

_PATIENCE = 5.0


class Row(msgspec.Struct, frozen=True):
    """What the process table says of one."""

    parent: int
    start: int
    """In clock ticks since the machine's start; 0 if the system does not tell, as everywhere but on Linux."""
    has_terminal: bool
    """It has a controlling terminal."""


class Ancestry(msgspec.Struct, frozen=True):
    """A process and those that it comes from."""

    processes: tuple[tuple[int, int], ...] = ()
    """Pid and start of each, the process itself first."""
    has_terminal: bool = False


def ancestry_of(pid: int, look: Callable[[int], Row | None] | None = None) -> Ancestry:
    """Walk up from a process; nothing of one that is gone, or that this system cannot see (pid 0)."""
    look = look or _table()
    row = look(pid) if pid > 0 else None
    if row is None:
        return Ancestry()
    found = [(pid, row.start)]
    has_terminal = row.has_terminal
    while len(found) < MOST and row.parent > 0:
        above = look(row.parent)
        if above is None or above.start > row.start:
            break
        found.append((row.parent, above.start))
        row = above
    return Ancestry(tuple(found), has_terminal)


def _table() -> Callable[[int], Row | None]:
    return _from_proc if sys.platform.startswith("linux") else _from_ps()


def _from_proc(pid: int) -> Row | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            told = file.read(4096)
    except OSError:
        return None
    fields = told.rpartition(b")")[2].split()  # the name may hold spaces and brackets of its own
    if len(fields) < 20:  # noqa: PLR2004 - up to field 22, by proc(5)
        return None
    return Row(int(fields[1]), int(fields[19]), has_terminal=fields[4] != b"0")


def _from_ps() -> Callable[[int], Row | None]:
    """Take one picture of the whole table: a walk through it meets no process that began meanwhile."""
    try:
        done = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid=,tty="], capture_output=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return lambda _: None
    rows = [line.split() for line in done.stdout.splitlines()]
    table = {int(row[0]): Row(int(row[1]), 0, not row[2].startswith(b"?")) for row in rows if len(row) == 3}  # noqa: PLR2004
    return table.get
