"""The process that sends: a letter on stdin, the log as stderr. Nobody waits for it."""

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
from fairlead.notify._send import NO_CHANNEL, NO_DESKTOP, Letter
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

LIFETIME = 30
"""Seconds after which it gives up, whatever a service is doing."""
LOG_LIMIT = 100_000
LOG_KEPT = 50_000
LINE_LIMIT = 500


def main() -> int:
    """Tell the person; write down what did not work, and say it by the exit code."""
    os.chdir("/")  # so that no folder is held that somebody wants to remove
    shorten(sys.stderr.fileno())
    letter = msgspec.json.decode(sys.stdin.buffer.read(), type=Letter)
    log = _log_for(letter)
    _end_in_time(log, NO_CHANNEL if letter.channels else NO_DESKTOP)
    is_shown = not letter.desktop or show(letter.note, log)
    is_sent = publish(letter.note, letter.channels, log)
    return (0 if is_shown else NO_DESKTOP) | (0 if is_sent else NO_CHANNEL)


def shorten(log: int) -> None:
    """Keep the end of a log that has grown too long."""
    with suppress(OSError):  # no file, or not ours to read
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = os.fstat(log).st_size
        if size > LOG_LIMIT:
            kept = os.pread(log, LOG_KEPT, size - LOG_KEPT)
            os.ftruncate(log, 0)
            os.write(log, kept.partition(b"\n")[2])
        fcntl.flock(log, fcntl.LOCK_UN)


def _log_for(letter: Letter) -> Callable[[str], None]:
    def log(text: str) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = f"{now} {letter.note.title}: {one_line(text, LINE_LIMIT)}\n"
        os.write(sys.stderr.fileno(), line.encode())  # at once and whole, also beside other processes

    return log


def _end_in_time(log: Callable[[str], None], code: int) -> None:
    def give_up(*_: object) -> None:
        log(f"gave up after {LIFETIME} s")
        os._exit(code)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIFETIME)


if __name__ == "__main__":
    sys.exit(main())
