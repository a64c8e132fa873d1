"""Passes requests of other threads to the thread that owns the connection to the relay."""

from __future__ import annotations

from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from fairlead.errors import FairleadError
from fairlead.team import RelayUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.daemon.team._connection import TeamConnection

    T = TypeVar("T")


class ConnectionRequests:
    """A queue of requests. Each one is executed or fails once; cancelled ones are skipped."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[TeamConnection], Any], Future[Any]]] = SimpleQueue()

    @property
    def is_empty(self) -> bool:
        """Whether there are no requests."""
        return self._queue.empty()

    def put(self, work: Callable[[TeamConnection], T]) -> Future[T]:
        """Add a request, from any thread. The future gets the result of `work`, or its error.

        The error is `RelayUnreachable` if there is no connection, or if the connection was lost meanwhile.
        """
        done: Future[T] = Future()
        self._queue.put((work, done))
        return done

    def execute_all(self, connection: TeamConnection) -> None:
        """Execute all requests, in the thread of the team. The error of a request is set in its future.

        A `RelayUnreachable`, and an error that is not expected, is also raised. The next requests then stay queued.
        """
        for work, done in self._take():
            try:
                done.set_result(work(connection))
            except Exception as error:
                done.set_exception(error)
                if not isinstance(error, FairleadError) or isinstance(error, RelayUnreachable):
                    raise

    def fail(self, reason: str) -> None:
        """Fail every request, because the relay cannot be reached."""
        for _, done in self._take():
            done.set_exception(RelayUnreachable(f"the team's relay cannot be reached: {reason}"))

    def _take(self) -> Iterator[tuple[Callable[[TeamConnection], Any], Future[Any]]]:
        while True:
            try:
                work, done = self._queue.get_nowait()
            except Empty:
                return
            if done.set_running_or_notify_cancel():
                yield work, done
