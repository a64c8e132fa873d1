"""What a hook may know about its caller, and how the caller says that it no longer waits."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class CancellationToken:
    """Says once, to every thread, that nobody waits for the answer any more."""

    __slots__ = ("_callbacks", "_cancelled", "_lock")

    def __init__(self) -> None:
        """Start uncancelled."""
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []
        self._lock = RLock()  # a signal handler may cancel while its own thread is in here

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancel; a second call does nothing."""
        with self._lock:
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back at cancellation, at once if it has happened. Returns the undo."""
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


class HookContext(msgspec.Struct, frozen=True):
    """The surroundings of one firing. Hooks share it; none can change it."""

    session_id: str
    cancellation: CancellationToken = msgspec.field(default_factory=CancellationToken)
    cwd: str | None = None
    env: dict[str, str] = {}
    """Variables that commands get on top of the process's own."""
    deadline: float | None = None
    """By `time.monotonic()`: every hook must have answered by then, whatever its own timeout."""

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits; a long hook looks here now and then."""
        return self.cancellation.cancelled
