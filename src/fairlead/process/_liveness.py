"""Speeds up repeated checks of whether processes are alive, by a file descriptor for each process (pidfd)."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

from fairlead.process._table import is_alive

if TYPE_CHECKING:
    from fairlead.process._table import Process


class LivenessCache:
    """Checks whether processes are alive. Keeps a pidfd for each, so that `/proc` is read only at the first check.

    A pidfd becomes readable when its process ends, and never refers to another process. At most `size` pidfds are open.
    Not thread-safe.
    """

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._watched: dict[Process, tuple[int, select.poll]] = {}

    def is_alive(self, process: Process) -> bool:
        """Return whether a process is alive; `True` if that cannot be determined."""
        known = self._watched.get(process)
        if known is None:
            return self._first_check(process)
        if not known[1].poll(0):
            return True
        os.close(self._watched.pop(process)[0])
        return False

    def close(self) -> None:
        """Close all pidfds."""
        while self._watched:
            os.close(self._watched.popitem()[1][0])

    def _first_check(self, process: Process) -> bool:
        pid, start = process
        watch = _watch(pid) if start else None
        if watch is None:
            return is_alive(pid, start)
        if not is_alive(pid, start):
            os.close(watch[0])
            return False
        if len(self._watched) >= self._size:
            os.close(self._watched.pop(next(iter(self._watched)))[0])
        self._watched[process] = watch
        return True


def _watch(pid: int) -> tuple[int, select.poll] | None:
    """Return a pidfd and a poll object for it; `None` if no pidfd can be opened."""
    if sys.platform != "linux" or pid <= 0:
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return descriptor, poll
