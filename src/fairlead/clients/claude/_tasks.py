"""Reads Claude Code's to-do list of a session: a folder for each session, a file for each task. Never writes them."""

from __future__ import annotations

import os
import re
from contextlib import suppress

import msgspec

from fairlead.clients._reports import Task

MAX_FILES = 500
MAX_SIZE = 64 * 1024
"""Bytes of a task's file. Larger files are skipped."""

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""A session id that is safe as the name of a folder: it cannot lead out of the folder of all tasks."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_tasks(folder: str, session: str) -> tuple[Task, ...] | None:
    """Return the tasks of a session from the client's folder, in any order; `None` if the session has none."""
    if not _SESSION.fullmatch(session):
        return None
    path = f"{folder}/tasks/{session}"
    try:
        names = [name for name in os.listdir(path) if name.endswith(".json")][:MAX_FILES]
    except OSError:
        return None
    tasks = (_read(f"{path}/{name}", name.removesuffix(".json")) for name in names)
    return tuple(task for task in tasks if task is not None)


def _read(path: str, name: str) -> Task | None:
    """Return the task in a file; `None` if the file cannot be read as a task."""
    with suppress(OSError, ValueError):
        descriptor = os.open(path, _FLAGS)
        with open(descriptor, "rb") as file:
            content = file.read(MAX_SIZE + 1)
        document = msgspec.json.decode(content)
        if len(content) <= MAX_SIZE and isinstance(document, dict):
            texts = [document.get(key) for key in ("id", "status", "subject")]
            task_id, status, subject = (text if isinstance(text, str) else "" for text in texts)
            return Task(task_id or name, status, subject)
    return None
