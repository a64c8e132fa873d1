"""The tasks that an agent has set itself: as its client keeps them, or else those that events told of."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import Task

_MOST_TASKS = 500
_MOST_SESSIONS = 1000


def incomplete(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Give those that are not done, in order."""
    return tuple(task for task in tasks if task.is_incomplete)


def _order(task: Task) -> tuple[int, int, str]:
    is_number = task.id.isascii() and task.id.isdigit() and len(task.id) < 10  # noqa: PLR2004 - as no client numbers
    return (0, int(task.id), "") if is_number else (1, 0, task.id)


class TasksHeard:
    """The tasks that events told of, for sessions whose client keeps no files. Any thread may call it."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, dict[str, Task]] = OrderedDict()
        self._lock = Lock()

    def take(self, session: str, task: Task) -> None:
        """Note that a task was made, or is done."""
        with self._lock:
            tasks = self._sessions.setdefault(session, {})
            self._sessions.move_to_end(session)
            if len(tasks) < _MOST_TASKS or task.id in tasks:
                tasks[task.id] = task
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def forget(self, session: str) -> None:
        """Forget a session that has ended."""
        with self._lock:
            self._sessions.pop(session, None)

    def of(self, session: str, kept: Iterable[Task] | None) -> tuple[Task, ...]:
        """Return the tasks of a session in order: those that its client keeps, else those that were heard of."""
        if kept is None:
            with self._lock:
                kept = tuple(self._sessions.get(session, {}).values())
        return tuple(sorted(kept, key=_order))
