"""The time limits of hooks, their cancellation, and the errors of hooks that do not return in time."""

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
    """Return the seconds that a hook may take: its timeout, limited by `cap` and by the deadline of `ctx`.

    This is 0 or less if no time is left. `cap` is the manager's timeout.
    """
    timeout = min(hook.timeout, cap)
    return timeout if ctx.deadline is None else min(timeout, ctx.deadline - monotonic())


def skip_reason(ctx: HookContext, timeout: float) -> Exception | None:
    """Return the error if it is too late to call a hook; `None` if it can be called.

    `timeout` is the number of seconds that are left.
    """
    if ctx.cancelled:
        return HookCancelled("the caller no longer waits")
    if timeout <= 0:
        return HookTimeout("no time was left to call it")
    return None


def as_failure(raised: BaseException) -> Exception:
    """Return an `Exception` for what a hook has raised, so that `exit()` in a hook does not end the process."""
    if isinstance(raised, Exception) and not isinstance(
        raised, StopIteration
    ):  # futures and generators cannot propagate StopIteration
        return raised
    return HookFailure(f"it raised {type(raised).__name__}")


def timeout_error(timeout: float) -> HookTimeout:
    """Return the error of a hook that exceeded its timeout."""
    return HookTimeout(f"no answer within {round(timeout, 2) or timeout:.3g} s")


def with_deadline(ctx: HookContext, timeout: float) -> HookContext:
    """Return the context for one hook, with a deadline in `timeout` seconds."""
    return msgspec.structs.replace(ctx, deadline=monotonic() + timeout)


@contextmanager
def own_cancellation(ctx: HookContext) -> Iterator[HookContext]:
    """Yield a context for one hook that runs in a thread.

    Its token is cancelled if the token of `ctx` is, and if the block raises, because then nobody waits for the hook.
    """
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
    """The cancellation token of one hook, which is also cancelled with the caller's."""

    __slots__ = ("_caller_token",)

    def __init__(self, caller_token: CancellationToken) -> None:
        super().__init__()
        self._caller_token = caller_token

    def cancel(self) -> None:
        """Cancel the caller's token, and so all hooks of the event."""
        self._caller_token.cancel()

    def cancel_this(self) -> None:
        """Cancel this hook only."""
        super().cancel()
