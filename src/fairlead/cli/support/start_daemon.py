"""Starts a daemon for a command that needs one, and waits until it answers."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

from fairlead.cli.support.invocation import current
from fairlead.daemon import NO_DAEMON_VARIABLE, start_daemon
from fairlead.errors import FairleadError
from fairlead.ipc import ConnectionLost, DaemonNotResponding, DaemonUnavailable, request

_REQUEST_TIMEOUT = 5.0
_TIMEOUT = 10.0
_POLL_INTERVAL = 0.02


def request_daemon(method: str, path: str, body: object = None, *, timeout: float = _REQUEST_TIMEOUT) -> Any:
    """Ask the daemon, and start one if there is none, unless `FAIRLEAD_NO_DAEMON` forbids that.

    If a daemon ends before it has answered, the request is sent to a new one.
    """
    try:
        return current().request(method, path, body, timeout=timeout)
    except DaemonUnavailable as error:
        is_unresponsive = isinstance(error, DaemonNotResponding) and not isinstance(error, ConnectionLost)
        if is_unresponsive or current().environ.get(NO_DAEMON_VARIABLE):
            raise
    ensure_daemon()
    return current().request(method, path, body, timeout=timeout)


def ensure_daemon(*, wait: bool = True) -> None:
    """Start a daemon if none answers. With `wait`, return once it answers."""
    if daemon_answers():
        return
    try:
        start_daemon("--on-demand")
    except OSError as error:
        raise FairleadError(f"the daemon cannot be started: {error.filename}: {error.strerror}") from None
    deadline = monotonic() + _TIMEOUT
    while wait and not daemon_answers():
        if monotonic() > deadline:
            raise FairleadError(f"the daemon did not answer within {_TIMEOUT:g} s; see: fairlead doctor")
        sleep(_POLL_INTERVAL)


def daemon_answers() -> bool:
    """Return whether a daemon answers."""
    try:
        request("GET", "/v1/status")
    except DaemonUnavailable:
        return False
    return True
