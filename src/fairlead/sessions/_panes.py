"""Finds out whether the user is looking at a tmux pane, from the terminals that are attached to the tmux server.

A terminal has one active pane, that of the current window of its session. tmux knows whether the terminal has the
focus if its option `focus-events` is on and the terminal reports the focus. Where this is not known (the option is off,
or tmux is older than 3.2), the user counts as looking for a minute after pressing a key in that terminal.
"""

from __future__ import annotations

import os
import re
from time import monotonic

from fairlead.errors import CommandFailed
from fairlead.process import run_process

MAX_INPUT_AGE = 60.0
"""Seconds after the last key for which the user counts as being at the terminal."""

_TIMEOUT = 2.0
_PANE = re.compile(r"%\d+")
_FORMAT = "#{pane_id} #{client_activity} #{focus-events} #{client_flags}"


class TmuxClients:
    """The terminals attached to tmux at the time `now`. Those of a server are listed when it is first asked about.

    To be used in a thread, because it waits for tmux.
    """

    def __init__(self, now: float) -> None:
        self._now = now
        self._clients: dict[str, list[str]] = {}

    def show(self, tmux: str, pane: str) -> bool:
        """Return whether the user is looking at a pane; `False` if that is not known.

        `tmux` and `pane` are the values of `$TMUX` and `$TMUX_PANE` in the pane.
        """
        socket = re.sub(r",\d+,\d+$", "", tmux)
        if not _PANE.fullmatch(pane) or not socket.startswith("/"):
            return False
        if socket not in self._clients:
            self._clients[socket] = _list_clients(socket)
        return any(client_shows(line, pane, self._now) for line in self._clients[socket])


def _list_clients(socket: str) -> list[str]:
    env = {name: value for name, value in os.environ.items() if name not in {"TMUX", "TMUX_PANE"}}
    command = ["tmux", "-S", socket, "list-clients", "-F", _FORMAT]
    try:
        result = run_process(command, env=env, deadline=monotonic() + _TIMEOUT)
    except CommandFailed:
        return []
    return result.stdout.decode(errors="replace").splitlines() if result.exit_code is not None else []


def client_shows(client: str, pane: str, now: float) -> bool:
    """Return whether the terminal in a line of `tmux list-clients` shows a pane, and the user is at that terminal."""
    shown, activity, focus_events, flags = (*client.split(" "), "", "", "")[:4]
    if shown != pane:
        return False
    if focus_events in {"1", "on"} and flags:
        return "focused" in flags.split(",")
    return activity.isdigit() and now - int(activity) <= MAX_INPUT_AGE
