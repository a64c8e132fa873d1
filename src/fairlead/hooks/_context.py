"""`HookContext`: what the caller passes to hooks beside the event, with the token by which it cancels them."""

from __future__ import annotations

import msgspec

from fairlead.process import CancellationToken


class HookContext(msgspec.Struct, frozen=True):
    """The context of one event. It is immutable. Each hook gets it with its own deadline."""

    session_id: str
    cancellation: CancellationToken = msgspec.field(default_factory=CancellationToken)
    """Cancelled when the caller no longer waits."""
    cwd: str | None = None
    """The caller's working directory; `None` if it is not known."""
    env: dict[str, str] = {}
    """The caller's environment variables for hooks. Commands get them in addition to those of this process."""
    deadline: float | None = None
    """The time of `time.monotonic()` by which a hook must have returned, whatever its timeout; `None` for no limit."""

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits. A hook that runs for a long time should check this."""
        return self.cancellation.cancelled
