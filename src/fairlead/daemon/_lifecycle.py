"""One daemon for each user: the lock, the socket, the log."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from contextlib import contextmanager, suppress
from stat import S_ISLNK
from time import monotonic, sleep
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError
from fairlead.paths import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SOCKET_PATH = 107 if sys.platform == "linux" else 103
"""Bytes of a socket's path that fit into the system's structure."""

_BACKLOG = 1024
_RETRY_INTERVAL = 0.05
_MIN_LOCK_TIMEOUT = 0.2
"""Seconds: a process that only checks whether a daemon runs (`ipc.daemon_pid`) holds the lock for a moment."""
_MAX_LOG_SIZE = 1024 * 1024


class DaemonError(FairleadError):
    """The daemon cannot run."""


class AlreadyRunning(DaemonError):
    """Another daemon runs."""


def make_private_folder(folder: str) -> None:
    """Create a folder that only this user can access, or restrict an existing one.

    Raises `DaemonError` if it cannot be created or belongs to another user.
    """
    try:
        make_private(folder)
        link, status = os.lstat(folder), os.stat(folder)
    except OSError as error:
        raise DaemonError(f"{folder}: cannot be created: {error.strerror}") from None
    if S_ISLNK(link.st_mode) and link.st_uid != os.getuid():
        raise DaemonError(f"{folder}: is another user's link, so no socket is put there; set FAIRLEAD_HOME")
    if status.st_uid != os.getuid():
        raise DaemonError(f"{folder}: belongs to another user, so no socket is put there; set FAIRLEAD_HOME")
    if status.st_mode & 0o077:
        os.chmod(folder, 0o700)


@contextmanager
def single_instance(folder: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock of the daemon, a file in the runtime folder `folder`, within the block.

    Waits up to `timeout` seconds for a daemon that is shutting down, but not for one that keeps running. Raises
    `AlreadyRunning` if another daemon still holds the lock then, and `DaemonError` if the file cannot be created.
    """
    make_private_folder(folder)
    path = f"{folder}/daemon.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise DaemonError(f"{path}: cannot be created: {error.strerror}") from None
    try:
        _lock(descriptor, timeout, f"{folder}/daemon.sock")
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, timeout: float, socket_path: str) -> None:
    deadline = monotonic() + max(timeout, _MIN_LOCK_TIMEOUT)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if monotonic() >= deadline or (timeout and _is_listening(socket_path)):
                pid = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
                raise AlreadyRunning(f"a daemon is running already (pid {pid or 'unknown'})") from None
            sleep(_RETRY_INTERVAL)
        else:
            return


def _is_listening(socket_path: str) -> bool:
    """Return whether a daemon accepts connections: one that is shutting down does not."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(socket_path)
        return True
    return False


class SocketFile:
    """A listening socket, and the path at which clients find it."""

    def __init__(self, path: str, listener: socket.socket) -> None:
        self.path = path
        self.listener = listener
        self._inode = os.stat(path).st_ino

    def exists(self) -> bool:
        """Return whether the path still leads to this socket."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the path, unless another socket is there by now. Established connections stay."""
        if self.exists():
            with suppress(OSError):
                os.unlink(self.path)


@contextmanager
def listening(path: str) -> Iterator[SocketFile]:
    """Listen at a path within the block. Raises `DaemonError` if that is not possible.

    The socket is bound to another path, which is then renamed, so that no client finds a socket that is not ready.
    """
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        limit = f"at most {MAX_SOCKET_PATH} bytes"
        raise DaemonError(f"{path}: too long for a socket, {limit}; set FAIRLEAD_HOME to a shorter one")
    temporary = f"{path}.{os.getpid() % 10_000}"
    if len(os.fsencode(temporary)) > MAX_SOCKET_PATH:
        temporary = f"{os.path.dirname(path)}/.{os.getpid() % 10_000}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        listener.bind(temporary)
        os.chmod(temporary, 0o600)
        listener.listen(_BACKLOG)
        os.rename(temporary, path)
        file = SocketFile(path, listener)
    except OSError as error:
        listener.close()
        with suppress(OSError):
            os.unlink(temporary)
        raise DaemonError(f"{path}: cannot listen there: {error.strerror}") from None
    try:
        yield file
    finally:
        file.remove()
        listener.close()


def rotate_log(log: str) -> None:
    """Start a new log and keep the old one as `LOG.old`, if stderr is the log and it is larger than 1 MiB."""
    with suppress(OSError):
        status = os.fstat(2)
        if status.st_size <= _MAX_LOG_SIZE or not os.path.samestat(status, os.stat(log)):
            return
        os.replace(log, f"{log}.old")
        new = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.dup2(new, 1)
        os.dup2(new, 2)
        os.close(new)
