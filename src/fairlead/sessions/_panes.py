"""Whether a tmux pane is in front of the person: what the terminals show that are attached to its server.

A terminal shows one pane at a time as the active one: that of the current window of its session. Whether the person
looks at that terminal, tmux knows if `focus-events` is on and the terminal reports them: it has the focus, or not.
Where that is not known (off, or a tmux before 3.2), a key that was pressed there within the last minute must do.
"""

from __future__ import annotations

import os
import re
from time import monotonic

from fairlead.errors import CommandFailed
from fairlead.process import run_process

RECENT = 60.0
"""Seconds since the last key, within which a person is taken to be at a terminal."""

_TIMEOUT = 2.0
_PANE = re.compile(r"%\d+")
_FORMAT = "#{pane_id} #{client_activity} #{focus-events} #{client_flags}"


class Terminals:
    """What the person sees at one moment, looked up once for each tmux server. For a thread: it waits for tmux."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._lines: dict[str, list[str]] = {}

    def show(self, tmux: str, pane: str) -> bool:
        """Tell whether the person looks at a pane. `tmux` is the `$TMUX` in it. Whatever cannot be told is a no."""
        socket = re.sub(r",\d+,\d+$", "", tmux)
        if not _PANE.fullmatch(pane) or not socket.startswith("/"):
            return False
        if socket not in self._lines:
            self._lines[socket] = _terminals(socket)
        return any(shows(line, pane, self._now) for line in self._lines[socket])


def _terminals(socket: str) -> list[str]:
    env = {name: value for name, value in os.environ.items() if name not in {"TMUX", "TMUX_PANE"}}
    command = ["tmux", "-S", socket, "list-clients", "-F", _FORMAT]
    try:
        result = run_process(command, env=env, deadline=monotonic() + _TIMEOUT)
    except CommandFailed:
        return []
    return result.stdout.decode(errors="replace").splitlines() if result.exit_code is not None else []


def shows(client: str, pane: str, now: float) -> bool:
    """Tell from tmux's line about a terminal whether it shows a pane to somebody."""
    shown, activity, focus_events, flags = (*client.split(" "), "", "", "")[:4]
    if shown != pane:
        return False
    if focus_events in {"1", "on"} and flags:
        return "focused" in flags.split(",")
    return activity.isdigit() and now - int(activity) <= RECENT
