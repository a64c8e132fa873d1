"""Whether a process is still there: by its pid and by when it began, because pids are used again."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Process = tuple[int, int]
"""A pid and when the process started: pids are reused, the pair is not."""


def process_start_time(pid: int) -> int:
    """Tell when a process began: in clock ticks since the machine's start on Linux; 0 if that cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            told = file.read(4096)
    except OSError:
        return 0
    fields = told.rpartition(b")")[2].split()  # the name may hold spaces and brackets of its own
    return int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else 0  # noqa: PLR2004 - field 22, by proc(5)


def is_alive(pid: int, start: int = 0) -> bool:
    """Tell whether this very process is there. Where we cannot tell, it is taken to be: nobody is buried alive.

    Where there is no `/proc`, a process of another user counts as alive, and so does one that took over the pid.
    """
    if pid <= 0:
        return True
    if sys.platform.startswith("linux"):
        now = process_start_time(pid)
        if now:
            return _is_no_zombie(pid) and start in (0, now)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def dead_processes(processes: Iterable[Process]) -> list[Process]:
    """Give those that are gone."""
    return [(pid, start) for pid, start in processes if not is_alive(pid, start)]


def _is_no_zombie(pid: int) -> bool:
    """A process that has died and was not waited for is still listed."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return not file.read(4096).rpartition(b")")[2].lstrip().startswith((b"Z", b"X"))
    except OSError:
        return False
