"""Reports what goes wrong inside the daemon: a record in the journal, and a counter."""

from __future__ import annotations

import os
from contextlib import suppress
from time import monotonic, time
from typing import TYPE_CHECKING

from fairlead.journal import DaemonRecord

if TYPE_CHECKING:
    from fairlead.daemon._metrics import Metrics
    from fairlead.journal import Journal

_MIN_INTERVAL = 10.0
"""Seconds between two lines on stdout while the journal cannot be written."""


class ErrorLog:
    """Writes records about the daemon itself to the journal."""

    def __init__(self, journal: Journal, metrics: Metrics, version: str) -> None:
        self._journal = journal
        self._metrics = metrics
        self._version = version
        self._last_printed = -_MIN_INTERVAL

    def report(self, message: str) -> None:
        """Count an error, and write it to the journal. Raises nothing."""
        self._metrics.error_count += 1
        self.record(message)

    def record(self, message: str) -> None:
        """Write a message about the daemon itself to the journal. Raises nothing.

        If the journal cannot be written, the message is printed to stdout, at most once in ten seconds.
        """
        record = DaemonRecord(at=time(), what=message, pid=os.getpid(), version=self._version)
        try:
            self._journal.append(record)
        except Exception as error:  # a full disk; the log file must not grow either
            if monotonic() - self._last_printed > _MIN_INTERVAL:
                self._last_printed = monotonic()
                with suppress(OSError):
                    print(f"fairlead: {message} ({error})", flush=True)  # noqa: T201 - the daemon's log
