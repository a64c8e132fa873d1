"""Finds clients that show a dialog when they start, for example whether to trust the folder. No session exists yet.

Such a client fires no hook and has no session file. Since 2.1.325 the client creates a file `<pid>.<hash>.key` beside
the session files before it asks anything. Only the name of this file is read. Older clients cannot be found.
"""

from __future__ import annotations

import os
from functools import lru_cache
from time import time

from fairlead.clients._reports import STARTING, ClientSessionFile
from fairlead.clients.claude._environment import CONFIG_DIR, PROGRAM
from fairlead.events import decode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TRUST = "trust dialog"
OTHER = "dialog at its start"

_KEY_PARTS = 3
_TRUST_DELAY, _OTHER_DELAY = 2.0, 10.0
"""Seconds after which a starting client counts as waiting. In a trusted folder it is more likely to be just slow."""
_CLOCK_STEP = 1.0
_MAX_STATE_SIZE = 64 * 1024 * 1024


def find_starting_sessions(folder: str, names: Sequence[str]) -> Iterator[ClientSessionFile]:
    """Yield the clients that wait in a start dialog. `names` are all files in `folder`, that of session files."""
    listed = set(names)
    for name in names:
        parts = name.split(".")
        is_key = len(parts) == _KEY_PARTS and parts[0].isdecimal() and parts[2] == "key"
        if is_key and f"{parts[0]}.json" not in listed and (waiting := _waiting(int(parts[0]), f"{folder}/{name}")):
            yield waiting


def _waiting(pid: int, key: str) -> ClientSessionFile | None:
    """Return the client with a pid; `None` if it has not written the key file, or has not waited long enough."""
    from fairlead.process import command_line, process_folder, process_start_time, process_started_at

    try:
        written = os.stat(key, follow_symlinks=False).st_mtime
    except OSError:
        return None
    started, start = process_started_at(pid), process_start_time(pid)
    if not start or started > written + _CLOCK_STEP or time() - written < _TRUST_DELAY:
        return None
    cwd = process_folder(pid)
    if not PROGRAM.matches(command_line(pid)) or not cwd:
        return None
    is_trusted = _is_trusted(cwd)
    if is_trusted and time() - written < _OTHER_DELAY:
        return None
    tmux, pane = tmux_of(pid, start)
    return ClientSessionFile(
        pid=pid,
        session_id=f"{STARTING}{pid}",
        start=start,
        status="waiting",
        waiting_for=OTHER if is_trusted else TRUST,
        status_at=written,
        started=started,
        cwd=cwd,
        tmux=tmux,
        pane=pane,
        about="" if is_trusted else f"may it work in {cwd}?",
    )


@lru_cache(256)
def tmux_of(pid: int, start: int) -> tuple[str, str]:
    """Return the tmux server and pane in which a process was started; both "" outside of tmux.

    Both are also "" if the process with this pid did not start at `start` (clock ticks since the machine started).
    """
    from fairlead.process import process_start_time, process_variables

    if not start or process_start_time(pid) != start:
        return "", ""
    variables = process_variables(pid, ("TMUX", "TMUX_PANE"))
    return variables.get("TMUX", ""), variables.get("TMUX_PANE", "")


def _is_trusted(cwd: str) -> bool:
    """Return whether the user has trusted a folder or one of its parents."""
    moved = os.environ.get(CONFIG_DIR)
    try:
        with open(f"{moved}/.claude.json" if moved else os.path.expanduser("~/.claude.json"), "rb") as file:
            state = decode_json(file.read(_MAX_STATE_SIZE))
    except (OSError, ValueError, RecursionError):
        return False
    projects = state.get("projects") if isinstance(state, dict) else None
    while isinstance(projects, dict):
        project = projects.get(cwd)
        if isinstance(project, dict) and project.get("hasTrustDialogAccepted") is True:
            return True
        parent = os.path.dirname(cwd)
        if parent == cwd:
            break
        cwd = parent
    return False
