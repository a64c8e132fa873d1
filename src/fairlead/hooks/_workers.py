"""Daemon threads that run sync hooks, so that a hook that never returns does not block the caller or the exit."""

from __future__ import annotations

import os
from contextvars import copy_context
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_IDLE = 8

_idle: list[_Worker] = []
_lock = Lock()


def submit(call: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
    """Run `call` in a worker thread with the caller's context variables, then `done(result, error)` in the same thread.

    `error` is what `call` has raised; `None` if it has returned.
    """
    context = copy_context()
    with _lock:
        worker = _idle.pop() if _idle else None
    (worker or _Worker()).jobs.put((lambda: context.run(call), done))


class _Worker:
    """A thread that runs the jobs of its queue.

    After a job it becomes idle and can be reused; if `_MAX_IDLE` threads are idle already, it ends.
    """

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Any] = SimpleQueue()
        Thread(target=self._serve, name="fairlead-hook", daemon=True).start()

    def _serve(self) -> None:
        while True:
            call, done = self.jobs.get()
            result, error = None, None
            try:
                result = call()
            except BaseException as raised:  # it is passed to the caller
                error = raised
            with _lock:  # before `done`, so that the caller finds this thread idle
                is_kept = len(_idle) < _MAX_IDLE
                if is_kept:
                    _idle.append(self)
            done(result, error)
            if not is_kept:
                return
            del call, done, result, error  # an idle thread must not keep objects alive


def _reset_after_fork() -> None:
    """Reset the pool in a forked child, because a fork copies no threads, and may copy a lock that is held."""
    global _lock  # noqa: PLW0603 - one pool per process
    _lock = Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_reset_after_fork)
