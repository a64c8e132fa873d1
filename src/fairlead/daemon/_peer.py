"""The process at the other end of a Unix socket."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import SocketType

_OWN_UID = struct.pack("I", os.getuid())
_SOL_SOCKET = socket.SOL_SOCKET
_PEERCRED: int | None = getattr(socket, "SO_PEERCRED", None)
_CREDENTIALS = struct.Struct("3i")
"""Of the process at the other end: pid, uid, gid."""


def peer_pid(connection: SocketType) -> int:
    """Return the pid of the process that connected; 0 if the system does not say."""
    if connection.family != socket.AF_UNIX:
        return 0
    with suppress(OSError):
        if _PEERCRED is not None:
            return int(_CREDENTIALS.unpack(connection.getsockopt(_SOL_SOCKET, _PEERCRED, 12))[0])
        return int(struct.unpack("i", connection.getsockopt(0, 2, 4))[0])  # LOCAL_PEERPID
    return 0


def is_own_user(connection: SocketType) -> bool:
    """Return whether the process that connected is this user's; `True` if the system does not say."""
    if _PEERCRED is not None:
        return connection.getsockopt(_SOL_SOCKET, _PEERCRED, 12)[4:8] == _OWN_UID
    with suppress(OSError):  # LOCAL_PEERCRED: version, uid, number of groups, groups
        return int(struct.unpack_from("2I", connection.getsockopt(0, 1, 76))[1]) == os.getuid()
    return True
