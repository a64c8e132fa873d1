"""Daemon threads that run plain hooks, so that one which never returns holds neither caller nor process."""

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
    """Run `call` in a worker, with the caller's context variables; then `done(result, error)`, there."""
    context = copy_context()
    with _lock:
        worker = _idle.pop() if _idle else None
    (worker or _Worker()).jobs.put((lambda: context.run(call), done))


class _Worker:
    """One thread and its queue. A thread whose hook never returns is simply never idle again."""

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
            except BaseException as raised:  # noqa: BLE001 - it is handed to whoever waits
                error = raised
            with _lock:  # before `done`, so that whoever waits finds this thread free again
                stays = len(_idle) < _MAX_IDLE
                if stays:
                    _idle.append(self)
            done(result, error)
            if not stays:
                return
            del call, done, result, error  # an idle thread keeps nothing alive


def _start_anew() -> None:
    """Forget the threads of the parent: a fork takes none along, and may find the lock taken."""
    global _lock  # noqa: PLW0603 - there is one pool in a process
    _lock = Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_start_anew)
