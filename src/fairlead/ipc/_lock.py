"""The lock that a daemon holds while it lives."""

from __future__ import annotations

import fcntl
import os


def daemon_pid(runtime_folder: str) -> int | None:
    """Return the pid of the daemon that lives, whether it answers or not; 0 if unknown, `None` if none lives.

    The lock ends with the process, however that ends.
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
