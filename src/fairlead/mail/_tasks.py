"""The tasks that an agent has set itself, as its client keeps them: a folder for each session, a file for each task.

Where there is no such folder, the tasks are those that events told of. Nothing is ever written.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_FILES = 500
LARGEST = 64 * 1024
"""Bytes of a task's file; what is larger is none."""

_INCOMPLETE = frozenset({"pending", "in_progress"})
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What names a folder, and nothing but a folder beside the others."""
_MOST_SESSIONS = 1000
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Task(msgspec.Struct, frozen=True):
    """One task."""

    id: str
    status: str = ""
    """`pending`, `in_progress`, `completed`, or what a newer client says."""
    subject: str = ""

    @property
    def is_incomplete(self) -> bool:
        """Whether something is left to be done. Of a status that we do not know, we do not say so."""
        return self.status in _INCOMPLETE


def config_folder(environ: Mapping[str, str], cwd: str = "/") -> str:
    """Give the client's folder, as the client finds it."""
    moved = environ.get("CLAUDE_CONFIG_DIR", "")
    return os.path.join(cwd, moved) if moved else f"{environ.get('HOME', '')}/.claude"


def incomplete(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Give those that are not done, in order."""
    return tuple(task for task in tasks if task.is_incomplete)


def read_tasks(folder: str, session: str) -> tuple[Task, ...] | None:
    """Read the tasks of a session from the client's folder, in order; `None` if it keeps none there."""
    if not _SESSION.fullmatch(session):
        return None
    place = f"{folder}/tasks/{session}"
    try:
        names = [name for name in os.listdir(place) if name.endswith(".json")][:MOST_FILES]
    except OSError:
        return None
    found = (_read(f"{place}/{name}", name.removesuffix(".json")) for name in names)
    return tuple(sorted((task for task in found if task is not None), key=_order))


def _read(path: str, name: str) -> Task | None:
    """Read one file; one that is no task is none."""
    with suppress(OSError, ValueError):
        descriptor = os.open(path, _FLAGS)
        with open(descriptor, "rb") as file:
            content = file.read(LARGEST + 1)
        told = msgspec.json.decode(content)
        if len(content) <= LARGEST and isinstance(told, dict):
            texts = [told.get(key) for key in ("id", "status", "subject")]
            own, status, subject = (text if isinstance(text, str) else "" for text in texts)
            return Task(own or name, status, subject)
    return None


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
            if len(tasks) < MOST_FILES or task.id in tasks:
                tasks[task.id] = task
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def forget(self, session: str) -> None:
        """Forget a session that has ended."""
        with self._lock:
            self._sessions.pop(session, None)

    def of(self, session: str, folder: str) -> tuple[Task, ...]:
        """Give the tasks of a session: from its files, else as far as they were heard of."""
        kept = read_tasks(folder, session)
        if kept is not None:
            return kept
        with self._lock:
            return tuple(sorted(self._sessions.get(session, {}).values(), key=_order))
