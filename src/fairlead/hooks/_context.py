"""What a hook knows about its caller, and how the caller cancels it."""

from __future__ import annotations

import msgspec

from fairlead.process import CancellationToken


class HookContext(msgspec.Struct, frozen=True):
    """The context of one event. All hooks share it; it is immutable."""

    session_id: str
    cancellation: CancellationToken = msgspec.field(default_factory=CancellationToken)
    cwd: str | None = None
    env: dict[str, str] = {}
    """Variables that commands get in addition to the process's own."""
    deadline: float | None = None
    """In `time.monotonic()`: every hook must have returned by then, whatever its own timeout."""

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits. A long-running hook should check this."""
        return self.cancellation.cancelled
