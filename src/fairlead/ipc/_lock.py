"""The lock that a daemon holds while it runs."""

from __future__ import annotations

import fcntl
import os


def daemon_pid(runtime_folder: str) -> int | None:
    """Return the pid of the running daemon, even if it does not answer; 0 if the pid is unknown, `None` if none runs.

    The system releases the lock when the process ends, even if it is killed.
    """
    try:
        descriptor = os.open(f"{runtime_folder}/daemon.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.pread(descriptor, 20, 0).strip()
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(descriptor)
