"""Who is running: the state machine, the registry of sessions and subagents, and the witnesses to ask. No daemon.

The parts are loaded on first use: who applies one event needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.sessions._apply import apply
    from fairlead.sessions._attention import Asked, Book, Manners, decide
    from fairlead.sessions._changes import Change
    from fairlead.sessions._panes import Terminals
    from fairlead.sessions._processes import dead, is_alive, started
    from fairlead.sessions._registry import Registry
    from fairlead.sessions._session import STALE_AFTER, Agent, Counters, OpenCall, Session, Task
    from fairlead.sessions._snapshot import SnapshotError, rebuild, restore, snapshot, take_record
    from fairlead.sessions._states import AttentionNeeded, Evidence, Idle, State, Working
    from fairlead.sessions._status_line import STATUS_LINE, line_of, read_status, session_of
    from fairlead.sessions._transcripts import Transcripts
    from fairlead.sessions._usage import Usage, read_duration, read_usage
    from fairlead.sessions._witness import Witness, discover, read_witness, reconcile, sessions_folder

__all__ = [
    "STALE_AFTER",
    "STATUS_LINE",
    "Agent",
    "Asked",
    "AttentionNeeded",
    "Book",
    "Change",
    "Counters",
    "Evidence",
    "Idle",
    "Manners",
    "OpenCall",
    "Registry",
    "Session",
    "SnapshotError",
    "State",
    "Task",
    "Terminals",
    "Transcripts",
    "Usage",
    "Witness",
    "Working",
    "apply",
    "dead",
    "decide",
    "discover",
    "is_alive",
    "line_of",
    "read_duration",
    "read_status",
    "read_usage",
    "read_witness",
    "rebuild",
    "reconcile",
    "restore",
    "session_of",
    "sessions_folder",
    "snapshot",
    "started",
    "take_record",
]

_HOMES = {
    "_apply": {"apply"},
    "_attention": {"Asked", "Book", "Manners", "decide"},
    "_changes": {"Change"},
    "_panes": {"Terminals"},
    "_processes": {"dead", "is_alive", "started"},
    "_registry": {"Registry"},
    "_session": {"STALE_AFTER", "Agent", "Counters", "OpenCall", "Session", "Task"},
    "_snapshot": {"SnapshotError", "rebuild", "restore", "snapshot", "take_record"},
    "_states": {"AttentionNeeded", "Evidence", "Idle", "State", "Working"},
    "_status_line": {"STATUS_LINE", "line_of", "read_status", "session_of"},
    "_transcripts": {"Transcripts"},
    "_usage": {"Usage", "read_duration", "read_usage"},
    "_witness": {"Witness", "discover", "read_witness", "reconcile", "sessions_folder"},
}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    from importlib import import_module  # noqa: PLC0415 - only the first use pays for it

    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"fairlead.sessions.{home}"), name)
            return value
    raise AttributeError(f"module 'fairlead.sessions' has no attribute {name!r}")
