"""The bell of a relay: waits for a NOTIFY of another host, or to be woken by another thread."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg import Notify
    from psycopg.pq.abc import PGconn


class Bell:
    """Remembers that it rang until someone has waited for it: a NOTIFY may come with the result of any statement."""

    def __init__(self) -> None:
        """Create the pipe that ends a wait."""
        self.host = ""
        self._has_rung = False
        self.rung: set[str] = set()
        """The channels on which another host rang. Whoever has read what is new removes its own."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def hear(self, notify: Notify) -> None:
        """Remember a NOTIFY that came with the result of a statement."""
        self._remember(notify.payload.encode(), notify.channel)

    def wake(self) -> None:
        """End a wait, from any thread."""
        with self._lock:
            if not self._is_closed:
                try:
                    os.write(self._writer, b"w")
                except BlockingIOError:  # it is full, so the reader wakes anyway
                    return

    def close(self) -> None:
        """Close the pipe."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._reader)
                os.close(self._writer)

    def wait(self, connection: PGconn, seconds: float) -> bool:
        """Wait for a ring or a wake, and return whether it rang. Raises the driver's error if the server is lost."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN)
        poll.register(self._reader, select.POLLIN)
        while True:
            self._read(connection)
            left = deadline - time.monotonic()
            if self._has_rung or left <= 0:
                has_rung, self._has_rung = self._has_rung, False
                return has_rung
            ready = {descriptor for descriptor, _ in poll.poll(left * 1000)}
            if self._reader in ready:
                self._read(connection)
                self._empty_pipe()
                has_rung, self._has_rung = self._has_rung, False
                return has_rung

    def _read(self, connection: PGconn) -> None:
        connection.consume_input()
        while found := connection.notifies():
            self._remember(found.extra, found.relname.decode())

    def _remember(self, sender: bytes, channel: str) -> None:
        if sender != self.host.encode():
            self._has_rung = True
            self.rung.add(channel)

    def _empty_pipe(self) -> None:
        try:
            while os.read(self._reader, 4096):
                pass
        except BlockingIOError:
            return
