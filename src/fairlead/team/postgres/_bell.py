"""The bell of a relay: waits for a NOTIFY of another host, or to be woken by another thread."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

from fairlead.team._types import Ring
from fairlead.team.postgres._statements import LEASE_CHANNEL, PARCELS_RING, PROGRESS_RING, TEAM_CHANNEL

if TYPE_CHECKING:
    from psycopg import Notify
    from psycopg.pq.abc import PGconn


_HOST_RINGS = {PARCELS_RING: Ring.PARCELS, PROGRESS_RING: Ring.PROGRESS}


class Bell:
    """Remembers what it rang for until someone has waited: a NOTIFY may come with the result of any statement."""

    def __init__(self) -> None:
        """Create the pipe that ends a wait."""
        self.host = ""
        self._rung = Ring(0)
        self.has_lease_news = False
        """Whether another host rang because of a lease since somebody has read them all."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def hear(self, notify: Notify) -> None:
        """Remember a NOTIFY that came with the result of a statement."""
        self._remember(notify.channel, notify.payload)

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

    def wait(self, connection: PGconn, seconds: float) -> Ring:
        """Wait for a ring or a wake, and return for what it rang. Raises the driver's error if the server is lost."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN)
        poll.register(self._reader, select.POLLIN)
        while True:
            self._read(connection)
            left = deadline - time.monotonic()
            if self._rung or left <= 0:
                return self._take()
            ready = {descriptor for descriptor, _ in poll.poll(left * 1000)}
            if self._reader in ready:
                self._read(connection)
                self._empty_pipe()
                return self._take()

    def _take(self) -> Ring:
        rung, self._rung = self._rung, Ring(0)
        return rung

    def _read(self, connection: PGconn) -> None:
        connection.consume_input()
        while found := connection.notifies():
            self._remember(found.relname.decode(), found.extra.decode())

    def _remember(self, channel: str, payload: str) -> None:
        kind, colon, sender = payload.rpartition(":")
        if sender == self.host:
            return
        if channel == TEAM_CHANNEL:
            self._rung |= Ring.REGISTRY
        elif channel == LEASE_CHANNEL:
            self._rung |= Ring.LEASES
            self.has_lease_news = True
        else:
            self._rung |= _HOST_RINGS.get(kind + colon, Ring.PARCELS | Ring.PROGRESS)

    def _empty_pipe(self) -> None:
        try:
            while os.read(self._reader, 4096):
                pass
        except BlockingIOError:
            return
