"""Ends a process that is identified by its pid *and* its start time, never one that reuses the pid."""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError
from fairlead.process._table import is_alive, process_start_time

if TYPE_CHECKING:
    from collections.abc import Iterator


class ProcessNotEnded(FairleadError):
    """A process was not ended; the message says why."""


def terminate_process(pid: int, start: int, timeout: float) -> bool:
    """Send SIGTERM to a process, and return whether it has ended within `timeout` seconds.

    Raises `ProcessNotEnded` if the process belongs to another user, or if it is not certain that a process with this
    pid and start time runs, as on every system but Linux. The pidfd is opened before the start time is compared, so the
    signal goes to the compared process even if the pid is reused.
    """
    with _descriptor(pid, start) as descriptor:
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        except ProcessLookupError:
            return True
        except PermissionError:
            raise ProcessNotEnded(f"the process {pid} belongs to another user") from None
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(int(timeout * 1000)))


@contextmanager
def _descriptor(pid: int, start: int) -> Iterator[int]:
    if sys.platform != "linux":
        raise ProcessNotEnded("this system does not tell when a process started; end it in its own terminal")
    if pid <= 0 or start <= 0:
        raise ProcessNotEnded("its process, or when that started, is not known")
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        raise ProcessNotEnded(f"its process {pid} is gone") from None
    try:
        if process_start_time(pid) != start:
            raise ProcessNotEnded(f"its process {pid} is gone, and another one has that pid now")
        if not is_alive(pid, start):
            raise ProcessNotEnded(f"its process {pid} is gone")
        yield descriptor
    finally:
        os.close(descriptor)
