"""Reads the process table: whether a process is alive, its ancestors, command line, folder and variables.

Blocking: it reads files, or runs `ps`. A process is identified by its pid and its start time, because pids are reused.
"""

from __future__ import annotations

import os
import sys
from time import monotonic, time

from fairlead.errors import CommandFailed
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    ReadRow = Callable[[int], "ProcessRow | None"]

Process = tuple[int, int]
"""A pid, and the start time of the process (see `process_start_time`). Pids are reused, the pair is not."""

MAX_ANCESTORS = 128
"""The maximum number of processes in an `Ancestry`. No user nests shells deeper."""

_STATE, _PARENT, _TERMINAL, _START_TIME = 0, 1, 4, 19
"""Indexes into `_stat_fields`."""
_ZOMBIE_STATES = (b"Z", b"X")
_PS_TIMEOUT = 5.0
_MAX_COMMAND_LINE = 4096
_MAX_VARIABLES = 1 << 20


def process_start_time(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot; 0 if it is not known, and without `/proc`."""
    fields = _stat_fields(pid)
    return int(fields[_START_TIME]) if fields else 0


def is_alive(pid: int, start: int = 0) -> bool:
    """Return whether the process with this pid and start time is alive; `True` if that cannot be determined.

    A `start` of 0 matches any process with the pid, and a pid of 0 is that of an unknown process. Without `/proc` only
    the pid is checked: a process of another user, and one that reuses the pid, count as alive.
    """
    if pid <= 0:
        return True
    if sys.platform.startswith("linux") and (fields := _stat_fields(pid)):
        is_zombie = fields[_STATE] in _ZOMBIE_STATES  # ended, not yet waited for
        return not is_zombie and start in (0, int(fields[_START_TIME]))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def dead_processes(processes: Iterable[Process]) -> list[Process]:
    """Return the processes that are not alive; see `is_alive`."""
    return [(pid, start) for pid, start in processes if not is_alive(pid, start)]


# -- ancestors -----------------------------------------------------------------------------------------


class ProcessRow(Struct, frozen=True):
    """One row of the process table."""

    parent: int
    start: int
    """In clock ticks since boot; 0 if it is not known, as on every system but Linux."""
    has_terminal: bool
    """Whether the process has a controlling terminal."""


class Ancestry(Struct, frozen=True):
    """A process and its ancestors."""

    processes: tuple[Process, ...] = ()
    """Pid and start time of each, the process itself first."""
    has_terminal: bool = False
    """Whether the process itself has a controlling terminal."""


def ancestries_of(*pids: int) -> list[Ancestry]:
    """Return the result of `ancestry_of` for each process. An ancestor of several processes is read once."""
    read_row, rows = _process_table(), dict[int, "ProcessRow | None"]()

    def read_once(pid: int) -> ProcessRow | None:
        if pid not in rows:
            rows[pid] = read_row(pid)
        return rows[pid]

    return [ancestry_of(pid, read_once) for pid in pids]


def ancestry_of(pid: int, read_row: ReadRow | None = None) -> Ancestry:
    """Return a process and its ancestors; empty if it has ended, or is not visible from here (pid 0).

    While the table is read, processes may end and others may reuse their pids. So a "parent" that started after its
    child is another process; it is left out, as are its ancestors. `read_row` returns the row of a pid.
    """
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


def _row_from_proc(pid: int) -> ProcessRow | None:
    fields = _stat_fields(pid)
    if not fields:
        return None
    return ProcessRow(int(fields[_PARENT]), int(fields[_START_TIME]), has_terminal=fields[_TERMINAL] != b"0")


def _rows_from_ps() -> ReadRow:
    """Read the complete table at once, and return a function that looks up a pid in it."""
    from fairlead.process._run import run_process

    try:
        listed = run_process(["/bin/ps", "-axo", "pid=,ppid=,tty="], deadline=monotonic() + _PS_TIMEOUT).stdout
    except CommandFailed:
        return lambda _: None
    rows = [line.split() for line in listed.splitlines()]
    table = {int(row[0]): ProcessRow(int(row[1]), 0, not row[2].startswith(b"?")) for row in rows if len(row) == 3}  # noqa: PLR2004
    return table.get


# -- details -------------------------------------------------------------------------------------------


def command_line(pid: int) -> list[str]:
    """Return the program and the arguments of a process, at most 4 KiB of them; empty if they are not known.

    Without `/proc` the command line is split at spaces.
    """
    if sys.platform.startswith("linux"):
        try:
            with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
                words = file.read(_MAX_COMMAND_LINE)
        except OSError:
            return []
        return words.decode(errors="replace").removesuffix("\0").split("\0") if words else []
    return _command_line_from_ps(pid)


def _command_line_from_ps(pid: int) -> list[str]:
    from fairlead.process._run import run_process

    try:
        listed = run_process(["/bin/ps", "-o", "args=", "-p", str(pid)], deadline=monotonic() + _PS_TIMEOUT).stdout
    except CommandFailed:
        return []
    return listed.decode(errors="replace").split()


def process_variables(pid: int, names: Iterable[str]) -> dict[str, str]:
    """Return the named variables that a process was started with. Variables that are unset or unknown are left out."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            pairs = (pair.partition(b"=") for pair in file.read(_MAX_VARIABLES).split(b"\0"))
            variables = {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}
    except OSError:
        return {}
    return {name: variables[name] for name in names if name in variables}


def process_folder(pid: int) -> str:
    """Return the working directory of a process; "" if it is not known."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def process_started_at(pid: int) -> float:
    """Return when a process started, in Unix time; 0 if it is not known."""
    fields = _stat_fields(pid)
    try:
        with open("/proc/uptime", "rb", buffering=0) as file:
            uptime = float(file.read(64).split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return time() - uptime + int(fields[_START_TIME]) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _stat_fields(pid: int) -> list[bytes]:
    """Return the fields of `/proc/<pid>/stat` from the state on (see proc(5)); empty if it cannot be read."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # twice as fast as `open`
        try:
            stat = os.read(file, 4096)
        finally:
            os.close(file)
    except OSError:
        return []
    fields = stat.rpartition(b")")[2].split()  # the program's name may contain spaces and parentheses
    return fields if len(fields) > _START_TIME and fields[_START_TIME].isdigit() else []
