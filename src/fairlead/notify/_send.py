"""Starts the process that sends a note, and does not wait for it.

Imports nothing that the hook has not already loaded. The process runs `__main__.py`.
"""

from __future__ import annotations

import os
import stat
import sys
from _thread import start_new_thread
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.notify._notes import Note
from fairlead.paths import make_private, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    OnDone = Callable[[int], None]
    """Called with 0, or with one or both of the flags below: in another thread once the sending process has ended, or
    by `send` itself if that process cannot be started."""

NO_DESKTOP = 1
"""The note was not shown on the desktop."""
NO_CHANNEL = 2
"""At least one channel did not accept the note."""


class NotifyRequest(msgspec.Struct, frozen=True):
    """The request that the sending process reads from stdin."""

    note: Note
    channels: list[str]
    desktop: bool = True


def send(note: Note, channels: Sequence[str] = (), *, desktop: bool = True, then: OnDone | None = None) -> None:
    """Start sending a note to the desktop and the channels, which are Apprise URLs.

    Does not wait and never raises: errors go to the log. `then` is called with 0, `NO_DESKTOP`, `NO_CHANNEL` or both.
    """
    with _log() as log:
        try:
            _start(msgspec.json.encode(NotifyRequest(note, list(channels), desktop)), log, then)
        except Exception as error:  # noqa: BLE001 - a note must never fail a hook
            with suppress(OSError):
                os.write(log, f"{note.title}: cannot start the sending process: {error}\n".encode())
            if then is not None:
                then(NO_DESKTOP | NO_CHANNEL)


def has_desktop() -> bool:
    """Return whether there may be a desktop: always on macOS, elsewhere if there is a session bus. Does not connect."""
    if sys.platform == "darwin":
        return True
    default = f"unix:path={os.environ.get('XDG_RUNTIME_DIR', '')}/bus"
    address = (os.environ.get("DBUS_SESSION_BUS_ADDRESS") or default).partition(";")[0]
    kind, _, path = address.partition(",")[0].partition("path=")
    return kind != "unix:" or _is_socket(path)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def log_file() -> str | None:
    """Return the path of the log for errors; `None` for a user without a home folder."""
    folder = state_folder()
    return f"{folder}/notify.log" if os.path.isabs(folder) else None


def _start(request: bytes, log: int, then: OnDone | None) -> None:
    reading, writing = os.pipe()
    try:
        try:
            pid = _spawn(reading, log)
        finally:
            os.close(reading)  # before writing, or the write would block for ever if the process dies without reading
        os.write(writing, request)
    finally:
        os.close(writing)
    start_new_thread(_reap, (pid, then))


def _spawn(stdin: int, log: int) -> int:
    """Start the sending process and return its pid. `stdin` and `log` are file descriptors.

    The process has its own session, so that a client that kills the hook's process group does not end it. Its stderr
    is the log, so that even a failure to start is logged.
    """
    mode = "-I" if sys.flags.isolated else "-P"  # as we were started, but never with modules from the current folder
    files = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    command = [sys.executable, mode, "-m", "fairlead.notify"]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=files, setsid=True)


def _reap(pid: int, then: OnDone | None) -> None:
    """Wait for the process, which would otherwise stay a zombie until the daemon ends, and call `then`."""
    code = NO_DESKTOP | NO_CHANNEL
    with suppress(ChildProcessError):  # SIGCHLD is ignored: the result is not known
        _, status = os.waitpid(pid, 0)
        code &= os.waitstatus_to_exitcode(status)
    if then is not None:
        then(code)


@contextmanager
def _log() -> Iterator[int]:
    descriptor = _open_log()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_log() -> int:
    path = log_file()
    try:
        if path is None:
            return os.open(os.devnull, os.O_WRONLY)
        make_private(os.path.dirname(path))
        # Readable, because the sending process trims it. Non-blocking, because a pipe may be in its place.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.fchmod(descriptor, 0o600)
    return descriptor
