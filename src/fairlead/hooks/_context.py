"""`HookContext`: the caller's data for hooks, and the token by which it cancels them."""

from __future__ import annotations

import msgspec

from fairlead.process import CancellationToken


class HookContext(msgspec.Struct, frozen=True):
    """The context of one event. All hooks share it; it is immutable."""

    session_id: str
    cancellation: CancellationToken = msgspec.field(default_factory=CancellationToken)
    cwd: str | None = None
    env: dict[str, str] = {}
    """Environment variables that commands get in addition to those of this process."""
    deadline: float | None = None
    """A time of `time.monotonic()` by which every hook must have returned, whatever its own timeout."""

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits. A long-running hook should check this."""
        return self.cancellation.cancelled
