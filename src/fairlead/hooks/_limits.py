"""The time limits of hooks, and the errors of hooks that do not return in time."""

from __future__ import annotations

from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import HookCancelled, HookFailure, HookTimeout
from fairlead.process import CancellationToken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.hooks._context import HookContext
    from fairlead.hooks._hook import RegisteredHook


def time_left(hook: RegisteredHook, ctx: HookContext, cap: float) -> float:
    """Return the hook's timeout, limited by the manager's timeout and by the caller's deadline."""
    timeout = min(hook.timeout, cap)
    return timeout if ctx.deadline is None else min(timeout, ctx.deadline - monotonic())


def skip_reason(ctx: HookContext, timeout: float) -> Exception | None:
    """Return an error if it is too late to call a hook; `None` if it can be called."""
    if ctx.cancelled:
        return HookCancelled("the caller no longer waits")
    if timeout <= 0:
        return HookTimeout("no time was left to call it")
    return None


def as_failure(raised: BaseException) -> Exception:
    """Return the `Exception` for anything that a hook raised: `exit()` in a hook must not end the process."""
    if isinstance(raised, Exception) and not isinstance(
        raised, StopIteration
    ):  # futures and generators cannot propagate StopIteration
        return raised
    return HookFailure(f"it raised {type(raised).__name__}")


def timeout_error(timeout: float) -> HookTimeout:
    """Return the error of a hook that exceeded its timeout."""
    return HookTimeout(f"no answer within {round(timeout, 2) or timeout:.3g} s")


def with_deadline(ctx: HookContext, timeout: float) -> HookContext:
    """Return the context with the hook's own deadline."""
    return msgspec.structs.replace(ctx, deadline=monotonic() + timeout)


@contextmanager
def own_cancellation(ctx: HookContext) -> Iterator[HookContext]:
    """Yield a context for a hook in a thread. It is cancelled if the event is cancelled, or this hook is abandoned."""
    token = _HookToken(ctx.cancellation)
    undo = ctx.cancellation.on_cancel(token.cancel_this)
    try:
        yield msgspec.structs.replace(ctx, cancellation=token)
    except BaseException:
        token.cancel_this()
        raise
    finally:
        undo()


class _HookToken(CancellationToken):
    """The cancellation token of one hook. `cancel` cancels the caller's token, and so all hooks of the event."""

    __slots__ = ("_caller_token",)

    def __init__(self, caller_token: CancellationToken) -> None:
        super().__init__()
        self._caller_token = caller_token

    def cancel(self) -> None:
        """Cancel all hooks of the event."""
        self._caller_token.cancel()

    def cancel_this(self) -> None:
        """Cancel this hook only."""
        super().cancel()
