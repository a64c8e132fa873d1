"""Reads the output of a worker's hooks. It is never sent to a client, but its last line may explain a crash."""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_READ_SIZE = 65536
_TAIL_SIZE = 2000
"""How many bytes of the output are kept."""
_JOIN_LIMIT = 0.2
"""Seconds to wait for the rest of the output of a process that has ended."""


class WorkerOutput:
    """The last part of a worker's output."""

    def __init__(self) -> None:
        self._tail = b""
        self._thread: Thread | None = None

    @contextmanager
    def open(self) -> Iterator[int]:
        """Yield a file descriptor for a worker to write to, and close it afterwards. A thread reads what is written.

        Start the worker within the block.
        """
        reading, writing = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        self._thread = Thread(target=self._read, args=(reading,), name="hook-output", daemon=True)
        self._thread.start()
        try:
            yield writing
        finally:
            os.close(writing)

    def last_line(self) -> str:
        """Return the last output line of a worker that has ended, as an addition to a message; "" if there is none."""
        if self._thread is not None:
            self._thread.join(_JOIN_LIMIT)
        line = self._tail.decode(errors="replace").strip().rpartition("\n")[2].strip()
        return f"; the last line that they printed: {line}" if line else ""

    def _read(self, reading: int) -> None:
        with open(reading, "rb", buffering=0) as pipe:
            while data := pipe.read(_READ_SIZE):
                self._tail = (self._tail + data)[-_TAIL_SIZE:]
