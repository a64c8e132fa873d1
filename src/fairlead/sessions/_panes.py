"""Whether the user is looking at a tmux pane, from the terminals that are attached to its server.

A terminal shows one active pane: that of the current window of its session. tmux knows whether the terminal has the
focus if `focus-events` is on and the terminal reports them. Where that is not known (off, or a tmux before 3.2), a key
that was pressed there within the last minute counts as looking.
"""

from __future__ import annotations

import os
import re
from time import monotonic

from fairlead.errors import CommandFailed
from fairlead.process import run_process

MAX_INPUT_AGE = 60.0
"""Seconds since the last key within which the user counts as being at the terminal."""

_TIMEOUT = 2.0
_PANE = re.compile(r"%\d+")
_FORMAT = "#{pane_id} #{client_activity} #{focus-events} #{client_flags}"


class TmuxClients:
    """The terminals attached to tmux at one moment, listed once per server. Blocking: it waits for tmux."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._clients: dict[str, list[str]] = {}

    def show(self, tmux: str, pane: str) -> bool:
        """Return whether the user looks at a pane, `False` if it is not known. `tmux` is the pane's `$TMUX`."""
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
    """Return whether a line of `tmux list-clients` shows a pane to the user."""
    shown, activity, focus_events, flags = (*client.split(" "), "", "", "")[:4]
    if shown != pane:
        return False
    if focus_events in {"1", "on"} and flags:
        return "focused" in flags.split(",")
    return activity.isdigit() and now - int(activity) <= MAX_INPUT_AGE
