"""How often in a row a session was kept from stopping: a small file each, as the next hook is another process."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from time import time

from fairlead.paths import state_folder

_STALE = 30 * 24 * 3600
"""Seconds. A session that was killed while it was kept going leaves its file behind."""


def count(session_id: str) -> int:
    """Say how many blocks in a row there were; a file that cannot be read counts as none."""
    try:
        with open(_file(session_id), "rb") as file:
            return int(file.read(20))
    except (OSError, ValueError):
        return 0


def record(session_id: str, blocks: int) -> str | None:
    """Keep the number. Returns what is wrong if it cannot be kept."""
    try:
        os.makedirs(_folder(), mode=0o700, exist_ok=True)
        _sweep()
        with open(_file(session_id), "wb") as file:
            file.write(b"%d" % blocks)
    except OSError as error:
        return f"stop.maxBlocks cannot count: {error}"
    return None


def forget(session_id: str) -> None:
    """Begin anew: the session was let go."""
    with suppress(OSError):
        os.unlink(_file(session_id))


def _file(session_id: str) -> str:
    return os.path.join(_folder(), sha256(session_id.encode(errors="replace")).hexdigest())


def _folder() -> str:
    return f"{state_folder()}/blocks"


def _sweep() -> None:
    for entry in os.scandir(_folder()):
        with suppress(OSError):
            if entry.stat().st_mtime < time() - _STALE:
                os.unlink(entry.path)
