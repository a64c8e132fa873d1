"""One daemon for each user: the lock, the socket, and who may speak to it."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SOCKET_PATH = 107 if sys.platform == "linux" else 103
"""Bytes of a socket's path: what the system's own structure has room for."""

_BACKLOG = 1024
_TURN = 0.05
_BLINK = 0.2
"""Seconds: who only looks whether a daemon lives (`remote.holder`) holds the lock for a moment."""

_LONGEST_LOG = 1024 * 1024
_SOL_SOCKET = socket.SOL_SOCKET
_PEERCRED: int | None = getattr(socket, "SO_PEERCRED", None)
_CREDENTIALS = struct.Struct("3i")
"""Of the process at the other end: pid, uid, gid."""


class DaemonError(FairleadError):
    """The daemon cannot run."""


class AlreadyRunning(DaemonError):
    """There is one already."""


def make_folder(folder: str) -> None:
    """Make a folder that is the user's alone, or see that it is."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.stat(folder)
    except OSError as error:
        raise DaemonError(f"{folder}: cannot be made: {error.strerror}") from None
    if status.st_uid != os.getuid():
        raise DaemonError(f"{folder}: belongs to another user, so no socket is put there; set FAIRLEAD_HOME")
    if status.st_mode & 0o077:
        os.chmod(folder, 0o700)


@contextmanager
def only_one(folder: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock while the daemon lives. Waits so many seconds for one that is about to go, and for no other."""
    make_folder(folder)
    path = f"{folder}/daemon.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise DaemonError(f"{path}: cannot be made: {error.strerror}") from None
    try:
        _lock(descriptor, patience, f"{folder}/daemon.sock")
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, patience: float, place: str) -> None:
    deadline = monotonic() + max(patience, _BLINK)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if monotonic() >= deadline or (patience and _is_heard(place)):
                pid = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
                raise AlreadyRunning(f"a daemon is running already (pid {pid or 'unknown'})") from None
            sleep(_TURN)
        else:
            return


def _is_heard(place: str) -> bool:
    """Tell whether somebody answers there. One that is about to go does not: to wait for it is not to follow it."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.connect(place)
        return True
    return False


class Place:
    """A socket that listens, and the path at which it is found."""

    def __init__(self, path: str, listener: socket.socket) -> None:
        self.path = path
        self.listener = listener
        self._inode = os.stat(path).st_ino

    def is_there(self) -> bool:
        """Tell whether who goes to the path finds this socket."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def take_away(self) -> None:
        """Be found no more. Who has connected is still heard, and what others have put there stays."""
        if self.is_there():
            with suppress(OSError):
                os.unlink(self.path)


@contextmanager
def listening(path: str) -> Iterator[Place]:
    """Listen at a path: bind beside it and move it there, so that nobody ever finds a socket that is not ready."""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        most = f"at most {MAX_SOCKET_PATH} bytes"
        raise DaemonError(f"{path}: too long for a socket, {most}; set FAIRLEAD_HOME to a shorter one")
    beside = f"{path}.{os.getpid() % 10_000}"
    if len(os.fsencode(beside)) > MAX_SOCKET_PATH:
        beside = f"{os.path.dirname(path)}/.{os.getpid() % 10_000}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        listener.bind(beside)
        os.chmod(beside, 0o600)
        listener.listen(_BACKLOG)
        os.rename(beside, path)
        place = Place(path, listener)
    except OSError as error:
        listener.close()
        with suppress(OSError):
            os.unlink(beside)
        raise DaemonError(f"{path}: cannot listen there: {error.strerror}") from None
    try:
        yield place
    finally:
        place.take_away()
        listener.close()


def turn_over(log: str) -> None:
    """Begin the log anew, and keep the old one beside it, if we write to it and it has become large."""
    with suppress(OSError):
        status = os.fstat(2)
        if status.st_size <= _LONGEST_LOG or not os.path.samestat(status, os.stat(log)):
            return
        os.replace(log, f"{log}.old")
        new = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.dup2(new, 1)
        os.dup2(new, 2)
        os.close(new)


def peer_pid(connection: socket.socket) -> int:
    """Tell which process is at the other end: the one that connected; 0 if the system does not say."""
    if connection.family != socket.AF_UNIX:
        return 0
    with suppress(OSError):
        if _PEERCRED is not None:
            return int(_CREDENTIALS.unpack(connection.getsockopt(_SOL_SOCKET, _PEERCRED, 12))[0])
        return int(struct.unpack("i", connection.getsockopt(0, 2, 4))[0])  # LOCAL_PEERPID
    return 0


def peer_uid(connection: socket.socket) -> int | None:
    """Tell which user is at the other end; `None` if the system does not say."""
    if _PEERCRED is not None:
        return int(_CREDENTIALS.unpack(connection.getsockopt(_SOL_SOCKET, _PEERCRED, 12))[1])
    with suppress(OSError):  # LOCAL_PEERCRED: version, uid, number of groups, groups
        return int(struct.unpack_from("2I", connection.getsockopt(0, 1, 76))[1])
    return None
