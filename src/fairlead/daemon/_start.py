"""Starts a daemon in the background, on demand. Imports nothing that a hook has not loaded already."""

from __future__ import annotations

import os
import sys
from time import time

from fairlead.lazy import suppress
from fairlead.paths import make_private, runtime_folder, state_folder

NO_DAEMON_VARIABLE = "FAIRLEAD_NO_DAEMON"
"""If set in the environment, events start no daemon."""

_MIN_INTERVAL = 10.0
"""Seconds between two attempts: a daemon that cannot start must not be started at every event."""

_KEPT = frozenset(
    {
        *("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"),
        *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "SSL_CERT_FILE", "TMUX_TMPDIR"),
    }
)
START_STAMP = "starting"
"""The file in the runtime folder whose time says when a daemon was last started on demand."""
_KEPT_PREFIXES = ("FAIRLEAD_", "LC_", "XDG_")


def start_on_demand() -> None:
    """Start a daemon unless that was tried in the last ten seconds, or the environment has `NO_DAEMON_VARIABLE`.

    Raises nothing: the event is answered already.
    """
    if os.environ.get(NO_DAEMON_VARIABLE):
        return
    with suppress(OSError):
        folder = runtime_folder()
        make_private(folder)
        if _is_first(f"{folder}/{START_STAMP}"):
            start_daemon("--on-demand")


def start_daemon(*options: str) -> int:
    """Start a daemon in a process session of its own, and return its pid without waiting for it to answer.

    `options` are those of `fairlead.daemon.command`. The output goes to `daemon_log_file()`. Raises `OSError` if the
    daemon cannot be started.
    """
    path = daemon_log_file()
    make_private(os.path.dirname(path))
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
    """Return the path of the log file of a daemon that was started in the background."""
    return f"{state_folder()}/daemon.log"


def _is_first(stamp: str) -> bool:
    """Return whether this process may start the daemon: it created the stamp, or renewed an old one."""
    try:
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if abs(time() - os.stat(stamp).st_mtime) < _MIN_INTERVAL:
            return False
        os.utime(stamp)
    return True


def _environment() -> dict[str, str]:
    """Return the variables that a daemon needs.

    The daemon outlives the session that started it, so it gets none of the session's secrets.
    """
    return {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
