"""Waits for a NOTIFY from another host, or until another thread ends the wait."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

from fairlead.team._types import Changes
from fairlead.team.postgres._statements import LEASE_CHANNEL, PACKETS_NOTICE, PROGRESS_NOTICE, TEAM_CHANNEL

if TYPE_CHECKING:
    from psycopg import Notify
    from psycopg.pq.abc import PGconn


_HOST_CHANGES = {PACKETS_NOTICE: Changes.PACKETS, PROGRESS_NOTICE: Changes.PROGRESS}


class NotifyListener:
    """Collects notifications until the next `wait`, because a NOTIFY may arrive with the result of any statement."""

    def __init__(self) -> None:
        self.host = ""
        """The id of this host, whose own notifications are ignored."""
        self._changes = Changes(0)
        self.has_lease_changes = False
        """Whether another host has changed a lease since all leases were last read."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._reader, self._writer = os.pipe()
        """The pipe through which `wake` ends a wait."""
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def on_notify(self, notify: Notify) -> None:
        """Record a NOTIFY that arrived with the result of a statement. Called by the driver."""
        self._remember(notify.channel, notify.payload)

    def wake(self) -> None:
        """End the current wait, or the next one. May be called from any thread, also after `close`."""
        with self._lock:
            if not self._is_closed:
                try:
                    os.write(self._writer, b"w")
                except BlockingIOError:  # the pipe is full, so the wait ends anyway
                    return

    def close(self) -> None:
        """Close the pipe. Can be called again."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._reader)
                os.close(self._writer)

    def wait(self, connection: PGconn, seconds: float) -> Changes:
        """Wait for a NOTIFY of another host, a call of `wake`, or the end of the time, and return what has changed.

        Raises the driver's error if the connection is lost.
        """
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN)
        poll.register(self._reader, select.POLLIN)
        while True:
            self._read(connection)
            left = deadline - time.monotonic()
            if self._changes or left <= 0:
                return self._take()
            ready = {descriptor for descriptor, _ in poll.poll(left * 1000)}
            if self._reader in ready:
                self._read(connection)
                self._empty_pipe()
                return self._take()

    def _take(self) -> Changes:
        changes, self._changes = self._changes, Changes(0)
        return changes

    def _read(self, connection: PGconn) -> None:
        connection.consume_input()
        while notify := connection.notifies():
            self._remember(notify.relname.decode(), notify.extra.decode())

    def _remember(self, channel: str, payload: str) -> None:
        kind, colon, sender = payload.rpartition(":")
        if sender == self.host:
            return
        if channel == TEAM_CHANNEL:
            self._changes |= Changes.REGISTRY
        elif channel == LEASE_CHANNEL:
            self._changes |= Changes.LEASES
            self.has_lease_changes = True
        else:
            self._changes |= _HOST_CHANGES.get(kind + colon, Changes.PACKETS | Changes.PROGRESS)

    def _empty_pipe(self) -> None:
        try:
            while os.read(self._reader, 4096):
                pass
        except BlockingIOError:
            return
