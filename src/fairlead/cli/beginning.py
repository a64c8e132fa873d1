"""Begins a daemon for a command that needs one, and waits until it answers."""

from __future__ import annotations

from time import monotonic, sleep

from fairlead.daemon import start_daemon
from fairlead.errors import FairleadError
from fairlead.ipc import DaemonUnavailable, request

_PATIENCE = 10.0
_TURN = 0.02


def begin(*, wait: bool = True) -> None:
    """Begin a daemon if none answers; `wait` until it does."""
    if answers():
        return
    try:
        start_daemon("--on-demand")
    except OSError as error:
        raise FairleadError(f"the daemon cannot be begun: {error.filename}: {error.strerror}") from None
    deadline = monotonic() + _PATIENCE
    while wait and not answers():
        if monotonic() > deadline:
            raise FairleadError(f"the daemon did not come up within {_PATIENCE:g} s; see: fairlead doctor")
        sleep(_TURN)


def answers() -> bool:
    """Tell whether there is one that answers."""
    try:
        request("GET", "/v1/status")
    except DaemonUnavailable:
        return False
    return True
