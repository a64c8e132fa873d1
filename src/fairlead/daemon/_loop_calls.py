"""Calls functions of the event loop from a thread."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from fairlead.ipc import DaemonNotResponding

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    T = TypeVar("T")

_TIMEOUT = 2.0
"""Seconds that a thread waits for the loop. A loop that has ended never answers, and waiting delays the shutdown."""


def call_in_loop(loop: asyncio.AbstractEventLoop, work: Callable[..., T], *args: object) -> T:
    """Call a function in the event loop from another thread, and return its result or raise its exception.

    Raises `DaemonNotResponding` if the loop has ended, or if there is no result within two seconds; the function may
    still be called then. `work` is no coroutine, which would need a task and another iteration of the loop.
    """
    done: Future[T] = Future()

    def call() -> None:
        try:
            done.set_result(work(*args))
        except BaseException as error:  # raised in the thread
            done.set_exception(error)

    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # it is closed
        raise DaemonNotResponding("the daemon shuts down") from None
    try:
        return done.result(_TIMEOUT)
    except TimeoutError:
        raise DaemonNotResponding(f"the daemon is busy for more than {_TIMEOUT:g} s, or shuts down") from None
