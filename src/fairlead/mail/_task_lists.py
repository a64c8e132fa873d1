"""The task lists of agents, as the client stores them or as events reported them."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import Task

_MAX_TASKS = 500
_MAX_SESSIONS = 1000


def incomplete(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return the tasks that are not done, in order."""
    return tuple(task for task in tasks if task.is_incomplete)


def _order(task: Task) -> tuple[int, int, str]:
    is_number = task.id.isascii() and task.id.isdigit() and len(task.id) < 10  # noqa: PLR2004 - no client numbers that high
    return (0, int(task.id), "") if is_number else (1, 0, task.id)


class TaskLists:
    """The tasks that events reported, for sessions whose client stores no tasks. Thread-safe.

    Keeps only the sessions that were updated last, and a limited number of tasks for each session.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, dict[str, Task]] = OrderedDict()
        self._lock = Lock()

    def update(self, session: str, task: Task) -> None:
        """Add a task to a session, or replace the one with the same id. Ignores a new task above the limit."""
        with self._lock:
            tasks = self._sessions.setdefault(session, {})
            self._sessions.move_to_end(session)
            if len(tasks) < _MAX_TASKS or task.id in tasks:
                tasks[task.id] = task
            while len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def forget(self, session: str) -> None:
        """Remove the tasks of a session that has ended."""
        with self._lock:
            self._sessions.pop(session, None)

    def tasks_of(self, session: str, stored: Iterable[Task] | None) -> tuple[Task, ...]:
        """Return the tasks of a session, ordered by id.

        `stored` are the tasks that the client stores. If it is None, the tasks that events reported are returned.
        """
        if stored is None:
            with self._lock:
                stored = tuple(self._sessions.get(session, {}).values())
        return tuple(sorted(stored, key=_order))
