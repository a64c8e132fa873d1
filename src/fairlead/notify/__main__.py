"""The process that sends a note: reads a request from stdin, and writes errors to the log, which is its stderr."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.notify._channels import publish
from fairlead.notify._desktop import show
from fairlead.notify._send import NO_CHANNEL, NO_DESKTOP, NotifyRequest
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

TIME_LIMIT = 30
"""Seconds after which this process gives up, whatever a service is doing."""
MAX_LOG_BYTES = 100_000
KEPT_LOG_BYTES = 50_000
MAX_LINE_LENGTH = 500


def main() -> int:
    """Send the note, log what failed, and return the exit code: `NO_DESKTOP`, `NO_CHANNEL`, both combined, or 0."""
    os.chdir("/")  # not to keep a folder in use that the user wants to remove
    trim_log(sys.stderr.fileno())
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=NotifyRequest)
    log = _logger(request)
    _set_time_limit(log, NO_CHANNEL if request.channels else NO_DESKTOP)
    is_shown = not request.desktop or show(request.note, log)
    is_published = publish(request.note, request.channels, log)
    return (0 if is_shown else NO_DESKTOP) | (0 if is_published else NO_CHANNEL)


def trim_log(log: int) -> None:
    """Cut a log of more than `MAX_LOG_BYTES` to its end, at most `KEPT_LOG_BYTES`. `log` is its file descriptor.

    Does nothing if another process has locked the log, or if it is not a file that can be cut.
    """
    with suppress(OSError):  # not a file, or not ours to read
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = os.fstat(log).st_size
        if size > MAX_LOG_BYTES:
            kept = os.pread(log, KEPT_LOG_BYTES, size - KEPT_LOG_BYTES)
            os.ftruncate(log, 0)
            os.write(log, kept.partition(b"\n")[2])
        fcntl.flock(log, fcntl.LOCK_UN)


def _logger(request: NotifyRequest) -> Callable[[str], None]:
    def log(text: str) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = f"{now} {request.note.title}: {one_line(text, MAX_LINE_LENGTH)}\n"
        os.write(sys.stderr.fileno(), line.encode())  # one write, so that lines of several processes do not mix

    return log


def _set_time_limit(log: Callable[[str], None], code: int) -> None:
    def give_up(*_: object) -> None:
        log(f"gave up after {TIME_LIMIT} s")
        os._exit(code)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(TIME_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
