"""What a hook may know about its caller, and how the caller says that it no longer waits."""

from __future__ import annotations

import msgspec

from fairlead.process import CancellationToken


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
