"""A TCP proxy that a test can stall or cut.

Stalled, connections stay open and nothing passes, as if all packets were dropped. Cut, all connections are refused.
With a delay, everything passes that much later in both directions.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


class StallingProxy:
    """Forwards connections to a port of this machine until `stall` or `cut`."""

    def __init__(self, target: int, *, delay: float = 0.0) -> None:
        self._target = target
        self._delay = delay
        self._late: list[tuple[float, socket.socket, bytes]] = []
        """What is on its way: when it is due, to whom, and what; in order."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._stalled = threading.Event()
        self._is_cut = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def stall(self) -> None:
        """Forward nothing any more."""
        self._stalled.set()

    def cut(self) -> None:
        """Close all connections, and each new one."""
        self._is_cut.set()

    def resume(self) -> None:
        """Forward again."""
        self._stalled.clear()
        self._is_cut.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        peers: dict[socket.socket, socket.socket] = {}
        while not self._ended.is_set():
            if self._stalled.is_set():
                self._ended.wait(0.02)
                continue
            self._deliver()
            ready, _, _ = select.select([self._listener, *peers], [], [], 0.002 if self._late else 0.02)
            for one in ready:
                if one is self._listener:
                    self._accept(peers)
                elif one in peers:
                    self._forward(one, peers)
            if self._is_cut.is_set():
                self._close_all(peers)
        self._close_all(peers)

    def _accept(self, peers: dict[socket.socket, socket.socket]) -> None:
        client = self._listener.accept()[0]
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
        else:
            peers |= {client: server, server: client}

    @staticmethod
    def _close_all(peers: dict[socket.socket, socket.socket]) -> None:
        for one in peers:
            one.close()
        peers.clear()

    def _deliver(self) -> None:
        """Send what is due."""
        while self._late and self._late[0][0] <= time.monotonic():
            _, end, data = self._late.pop(0)
            with suppress(OSError):
                end.sendall(data)

    def _forward(self, one: socket.socket, peers: dict[socket.socket, socket.socket]) -> None:
        other = peers[one]
        data = b""
        with suppress(OSError):
            data = one.recv(65536)
        if data and self._delay:
            self._late.append((time.monotonic() + self._delay, other, data))
            return
        if data:
            with suppress(OSError):
                other.sendall(data)
                return
        for end in (one, other):
            del peers[end]
            end.close()
