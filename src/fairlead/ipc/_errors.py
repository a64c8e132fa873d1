"""The errors of a request to the daemon. Each message says what to do.

DaemonUnavailable             no daemon is running
└── DaemonNotResponding       a daemon is running, but gives no valid answer
    ├── ConnectionLost        the daemon closed the connection before it answered, or cannot be reached
    └── RequestRefused        the daemon answered with an error
"""

from __future__ import annotations

from fairlead.errors import FairleadError

_START = "fairlead daemon start"
_NOT_FOUND = 404


class DaemonUnavailable(FairleadError):
    """No daemon is running; or, as `DaemonNotResponding`, one is running, but gives no valid answer."""


class DaemonNotResponding(DaemonUnavailable):
    """A daemon is running, but gives no valid answer."""


class ConnectionLost(DaemonNotResponding):
    """The daemon closed the connection before it answered, or cannot be reached."""


class RequestRefused(DaemonNotResponding):
    """The daemon answered with an error: `status` is the HTTP status, `text` the body."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.text = body.decode(errors="replace").strip()
        super().__init__(f"the daemon answers {status}: {self.text}")

    @property
    def is_not_found(self) -> bool:
        """Whether the daemon does not have what was asked for, or, if it is an older one, does not know the request."""
        return self.status == _NOT_FOUND


def daemon_error(error: OSError | ValueError, socket_path: str, timeout: float) -> DaemonUnavailable:
    """Return the error to raise for an error of the socket or the parser. `timeout`, in seconds, is for its message."""
    if isinstance(error, FileNotFoundError):
        return DaemonUnavailable(f"no daemon is running (no socket at {socket_path}); start one: {_START}")
    if isinstance(error, ConnectionRefusedError):
        return DaemonUnavailable(f"the daemon at {socket_path} is gone; start another: {_START}")
    if isinstance(error, TimeoutError):
        return DaemonNotResponding(f"the daemon does not answer within {timeout:g} s{_kill_advice(socket_path)}")
    if isinstance(error, PermissionError):
        return ConnectionLost(f"{socket_path}: {error.strerror}; make its folders yours, or set FAIRLEAD_HOME")
    return ConnectionLost(f"cannot talk to the daemon at {socket_path}: {error}")


def _kill_advice(socket_path: str) -> str:
    from fairlead.ipc._lock import daemon_pid

    pid = daemon_pid(socket_path.rpartition("/")[0])
    return f" (pid {pid}); if it hangs, end it: kill -9 {pid}" if pid else ""
