"""How long a hook may take, and what is made of one that does not answer."""

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
    from fairlead.hooks._hook import Registered


def time_left(hook: Registered, ctx: HookContext, cap: float) -> float:
    """Give the hook's own timeout, under the manager's and under the caller's deadline."""
    timeout = min(hook.timeout, cap)
    return timeout if ctx.deadline is None else min(timeout, ctx.deadline - monotonic())


def refused(ctx: HookContext, timeout: float) -> Exception | None:
    """Say why a hook is not even called, if it is not."""
    if ctx.cancelled:
        return HookCancelled("the caller no longer waits")
    if timeout <= 0:
        return HookTimeout("no time was left to call it")
    return None


def as_failure(raised: BaseException) -> Exception:
    """Make an error of whatever a hook raised; `exit()` in a hook must not end the process."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):  # no future or generator passes that on
        return raised
    return HookFailure(f"it raised {type(raised).__name__}")


def out_of_time(timeout: float) -> HookTimeout:
    """Say that a hook took too long."""
    return HookTimeout(f"no answer within {round(timeout, 2) or timeout:.3g} s")


def with_deadline(ctx: HookContext, timeout: float) -> HookContext:
    """Tell a hook when it must have answered."""
    return msgspec.structs.replace(ctx, deadline=monotonic() + timeout)


@contextmanager
def watched(ctx: HookContext) -> Iterator[HookContext]:
    """Give a hook in a thread a context of its own, which is cancelled when it alone is given up."""
    token = _OwnToken(ctx.cancellation)
    undo = ctx.cancellation.on_cancel(token.give_up)
    try:
        yield msgspec.structs.replace(ctx, cancellation=token)
    except BaseException:
        token.give_up()
        raise
    finally:
        undo()


class _OwnToken(CancellationToken):
    """One hook's view of the caller's token: to cancel it is to cancel the caller's."""

    __slots__ = ("_callers",)

    def __init__(self, callers: CancellationToken) -> None:
        super().__init__()
        self._callers = callers

    def cancel(self) -> None:
        """Cancel the whole firing."""
        self._callers.cancel()

    def give_up(self) -> None:
        """Cancel this hook alone."""
        super().cancel()
