"""Counts how often in a row a session was kept from stopping. Each session has a file: each hook is a new process."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from time import time

from fairlead.paths import make_private, state_folder

_MAX_AGE = 30 * 24 * 3600
"""Seconds after which the file of a killed session is removed."""


def read(session_id: str) -> int:
    """Return how often in a row a session was blocked; 0 if its file cannot be read."""
    try:
        with open(_file(session_id), "rb") as file:
            return int(file.read(20))
    except (OSError, ValueError):
        return 0


def write(session_id: str, blocks: int) -> str | None:
    """Store the number of blocks, and remove old files. Returns an error message if that fails, else `None`."""
    try:
        make_private(_folder())
        _remove_old_files()
        descriptor = os.open(_file(session_id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(b"%d" % blocks)
    except OSError as error:
        return f"stop.maxBlocks cannot count: {error}"
    return None


def reset(*session_ids: str) -> None:
    """Set the counts of sessions back to zero, by removing their files."""
    folder = _folder()
    for session_id in session_ids:
        with suppress(OSError):
            os.unlink(f"{folder}/{_name(session_id)}")


def _file(session_id: str) -> str:
    return f"{_folder()}/{_name(session_id)}"


def _name(session_id: str) -> str:
    return sha256(session_id.encode(errors="replace")).hexdigest()


def _folder() -> str:
    return f"{state_folder()}/blocks"


def _remove_old_files() -> None:
    for entry in os.scandir(_folder()):
        with suppress(OSError):
            if entry.stat().st_mtime < time() - _MAX_AGE:
                os.unlink(entry.path)
