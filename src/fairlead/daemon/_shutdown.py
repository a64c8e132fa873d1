"""The request to shut the daemon down, and the functions that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Shutdown:
    """The request to shut down. Only the first one has an effect. Not thread-safe: it is used in the event loop."""

    def __init__(self) -> None:
        self.reason = ""
        """Why shutdown was requested; empty while the daemon runs."""
        self._callbacks: list[Callable[[], None]] = []

    def request(self, reason: str) -> None:
        """Call the callbacks, which make the daemon accept no more requests, finish those in progress, and exit."""
        if not self.reason:
            self.reason = reason
            for callback in self._callbacks:
                callback()

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call a function when shutdown is requested; at once if it was requested already."""
        self._callbacks.append(callback)
        if self.reason:
            callback()
