"""Begins a daemon in the background, on demand. Imports nothing that a hook has not loaded already."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import time

from fairlead.paths import runtime_folder, state_folder

NO_DAEMON_VARIABLE = "FAIRLEAD_NO_DAEMON"
"""Set in the environment, it keeps events from starting a daemon."""

_PAUSE = 10.0
"""Seconds between two attempts: a daemon that cannot start must not be started at every event."""

_KEPT = frozenset(
    {
        *("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"),
        *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "SSL_CERT_FILE", "TMUX_TMPDIR"),
    }
)
_KEPT_BEGINNINGS = ("FAIRLEAD_", "LC_", "XDG_")


def start_on_demand() -> None:
    """Begin a daemon unless that was tried a moment ago. Never raises: the event is answered already."""
    if os.environ.get(NO_DAEMON_VARIABLE):
        return
    with suppress(OSError):
        folder = runtime_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if _is_first(f"{folder}/starting"):
            start_daemon("--on-demand")


def start_daemon(*options: str) -> int:
    """Begin a daemon in a session of its own, and give its pid. What it has to say goes to `log_file()`."""
    path = daemon_log_file()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ]
        command = [sys.executable, "-E", "-P", "-m", "fairlead.daemon", *options]
        return os.posix_spawn(sys.executable, command, _environment(), file_actions=files, setsid=True)
    finally:
        os.close(log)


def daemon_log_file() -> str:
    """Give the file of what a daemon says that was begun in the background."""
    return f"{state_folder()}/daemon.log"


def _is_first(stamp: str) -> bool:
    """Take the turn: whoever makes the stamp, or finds an old one and renews it, begins the daemon."""
    try:
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if abs(time() - os.stat(stamp).st_mtime) < _PAUSE:
            return False
        os.utime(stamp)
    return True


def _environment() -> dict[str, str]:
    """Keep what a daemon needs: it outlives the session that began it, whose tokens are none of its business."""
    return {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_BEGINNINGS)}
