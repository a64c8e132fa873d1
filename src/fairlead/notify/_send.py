"""The hook's side of sending: hand the note to a process of its own, and go on.

Imports nothing that the hook has not already loaded. The other side is `__main__.py`.
"""

from __future__ import annotations

import os
import stat
import sys
from _thread import start_new_thread
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.notify._when import Note
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Then = Callable[[int], None]
    """Hears, in a thread of its own, how the process that sends has ended: 0, or one or both of the flags below."""

NO_DESKTOP = 1
"""It was not shown on the desktop."""
NO_CHANNEL = 2
"""A channel did not take it."""


class Letter(msgspec.Struct, frozen=True):
    """What goes through the pipe to the process that sends."""

    note: Note
    channels: list[str]
    desktop: bool = True


def send(note: Note, channels: Sequence[str] = (), *, desktop: bool = True, then: Then | None = None) -> None:
    """Start telling a person, on the desktop and by the channels. Neither waits nor raises; mishaps are in the log."""
    with _log() as log:
        try:
            _start(msgspec.json.encode(Letter(note, list(channels), desktop)), log, then)
        except Exception as error:  # noqa: BLE001 - a note is never worth a hook
            with suppress(OSError):
                os.write(log, f"{note.title}: cannot start the process that sends: {error}\n".encode())
            if then is not None:
                then(NO_DESKTOP | NO_CHANNEL)


def has_desktop() -> bool:
    """Tell whether there may be a desktop: but for macOS, where there is a session bus. Opens nothing."""
    if sys.platform == "darwin":
        return True
    usual = f"unix:path={os.environ.get('XDG_RUNTIME_DIR', '')}/bus"
    address = (os.environ.get("DBUS_SESSION_BUS_ADDRESS") or usual).partition(";")[0]
    kind, _, path = address.partition(",")[0].partition("path=")
    return kind != "unix:" or _is_socket(path)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def log_file() -> str | None:
    """Where mishaps are written; `None` for a user without a home."""
    folder = state_folder()
    return f"{folder}/notify.log" if os.path.isabs(folder) else None


def _start(letter: bytes, log: int, then: Then | None) -> None:
    reading, writing = os.pipe()
    try:
        try:
            pid = _spawn(reading, log)
        finally:
            os.close(reading)  # before writing, or a process that dies unread would leave us writing for ever
        os.write(writing, letter)
    finally:
        os.close(writing)
    start_new_thread(_bury, (pid, then))


def _spawn(letter: int, log: int) -> int:
    """In a session of its own, so that a client that ends the hook's group leaves it alone.

    Its stderr is the log itself: there even a failure to start can be read.
    """
    mode = "-I" if sys.flags.isolated else "-P"  # as we were started, but never with modules from the current folder
    files = [
        (os.POSIX_SPAWN_DUP2, letter, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    command = [sys.executable, mode, "-m", "fairlead.notify"]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=files, setsid=True)


def _bury(pid: int, then: Then | None) -> None:
    """Take the process's exit status, or it would be a zombie for as long as a daemon lives."""
    with suppress(ChildProcessError):
        _, status = os.waitpid(pid, 0)
        if then is not None:
            then(os.waitstatus_to_exitcode(status) & (NO_DESKTOP | NO_CHANNEL))


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
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # Readable too: the process that sends shortens it. A pipe in its place must not hold us up.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.fchmod(descriptor, 0o600)
    return descriptor
