"""Starts a daemon for a command that needs one, and waits until it answers."""

from __future__ import annotations

from time import monotonic, sleep

from fairlead.daemon import start_daemon
from fairlead.errors import FairleadError
from fairlead.ipc import DaemonUnavailable, request

_TIMEOUT = 10.0
_POLL_INTERVAL = 0.02


def ensure_daemon(*, wait: bool = True) -> None:
    """Start a daemon if none answers; with `wait`, return when it does."""
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
