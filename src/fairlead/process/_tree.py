"""The ancestors of a process, from the process table. Blocking: it reads files, or runs `ps`.

Processes end during the walk and others reuse their pids. A parent starts before its child; a "parent" that started
later is another process, and the walk ends there.
"""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import CommandFailed
from fairlead.process._alive import PARENT, START_TIME, TERMINAL, stat_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.process._alive import Process

    ReadRow = Callable[[int], "Row | None"]

MAX_ANCESTORS = 128
"""No user nests shells deeper."""

_TIMEOUT = 5.0


class Row(msgspec.Struct, frozen=True):
    """One row of the process table."""

    parent: int
    start: int
    """In clock ticks since boot; 0 if it is not known, as on every system but Linux."""
    has_terminal: bool
    """Whether the process has a controlling terminal."""


class Ancestry(msgspec.Struct, frozen=True):
    """A process and its ancestors."""

    processes: tuple[Process, ...] = ()
    """Pid and start time of each, the process itself first."""
    has_terminal: bool = False
    """Whether the process itself has a controlling terminal."""


def ancestries_of(*pids: int) -> list[Ancestry]:
    """Return each process and its ancestors. A shared ancestor is read once."""
    read_row, rows = _process_table(), dict[int, "Row | None"]()

    def read_once(pid: int) -> Row | None:
        if pid not in rows:
            rows[pid] = read_row(pid)
        return rows[pid]

    return [ancestry_of(pid, read_once) for pid in pids]


def ancestry_of(pid: int, read_row: ReadRow | None = None) -> Ancestry:
    """Return a process and its ancestors; empty if it has ended, or is not visible from here (pid 0)."""
    read_row = read_row or _process_table()
    row = read_row(pid) if pid > 0 else None
    if row is None:
        return Ancestry()
    processes = [(pid, row.start)]
    has_terminal = row.has_terminal
    while len(processes) < MAX_ANCESTORS and row.parent > 0:
        parent = read_row(row.parent)
        if parent is None or parent.start > row.start:
            break
        processes.append((row.parent, parent.start))
        row = parent
    return Ancestry(tuple(processes), has_terminal)


def _process_table() -> ReadRow:
    return _row_from_proc if sys.platform.startswith("linux") else _rows_from_ps()


def _row_from_proc(pid: int) -> Row | None:
    fields = stat_fields(pid)
    if not fields:
        return None
    return Row(int(fields[PARENT]), int(fields[START_TIME]), has_terminal=fields[TERMINAL] != b"0")


def _rows_from_ps() -> ReadRow:
    """Read the whole table at once, so that it contains no process that starts during the walk."""
    from fairlead.process._run import run_process

    try:
        listed = run_process(["/bin/ps", "-axo", "pid=,ppid=,tty="], deadline=monotonic() + _TIMEOUT).stdout
    except CommandFailed:
        return lambda _: None
    rows = [line.split() for line in listed.splitlines()]
    table = {int(row[0]): Row(int(row[1]), 0, not row[2].startswith(b"?")) for row in rows if len(row) == 3}  # noqa: PLR2004
    return table.get
