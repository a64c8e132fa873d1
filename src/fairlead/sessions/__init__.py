"""The state of every session and subagent: transitions, registry, snapshots. Knows no daemon.

Modules are loaded on first use: a process that applies one event needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.sessions._attention import AttentionLog, AttentionRequest, AttentionSettings, decide_notification
    from fairlead.sessions._changes import Change
    from fairlead.sessions._limits import LONGEST_PATH, MAX_PATH_LENGTH, clean
    from fairlead.sessions._panes import TmuxClients
    from fairlead.sessions._registry import Registry
    from fairlead.sessions._session import STALE_AFTER, Agent, Counters, OpenCall, Session, SessionMemory, Task
    from fairlead.sessions._session_files import (
        ClientSessionFile,
        find_session_files,
        read_session_file,
        reconcile,
        sessions_folder,
    )
    from fairlead.sessions._snapshot import SnapshotError, apply_record, rebuild, restore, snapshot
    from fairlead.sessions._states import AttentionNeeded, Evidence, Idle, State, Working
    from fairlead.sessions._status_line import LARGEST_STATUS, STATUS_LINE, line_of, read_status, session_of
    from fairlead.sessions._transcripts import Transcripts
    from fairlead.sessions._usage import Usage, read_duration, read_usage
    from fairlead.sessions.transitions._apply import apply

__all__ = [
    "LARGEST_STATUS",
    "LONGEST_PATH",
    "MAX_PATH_LENGTH",
    "STALE_AFTER",
    "STATUS_LINE",
    "Agent",
    "AttentionLog",
    "AttentionNeeded",
    "AttentionRequest",
    "AttentionSettings",
    "Change",
    "ClientSessionFile",
    "Counters",
    "Evidence",
    "Idle",
    "OpenCall",
    "Registry",
    "Session",
    "SessionMemory",
    "SnapshotError",
    "State",
    "Task",
    "TmuxClients",
    "Transcripts",
    "Usage",
    "Working",
    "apply",
    "apply_record",
    "clean",
    "decide_notification",
    "find_session_files",
    "line_of",
    "read_duration",
    "read_session_file",
    "read_status",
    "read_usage",
    "rebuild",
    "reconcile",
    "restore",
    "session_of",
    "sessions_folder",
    "snapshot",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_attention": (
            "AttentionLog",
            "AttentionRequest",
            "AttentionSettings",
            "decide_notification",
        ),
        "_changes": ("Change",),
        "_limits": (
            "LONGEST_PATH",
            "MAX_PATH_LENGTH",
            "clean",
        ),
        "_panes": ("TmuxClients",),
        "_registry": ("Registry",),
        "_session": (
            "Agent",
            "Counters",
            "OpenCall",
            "STALE_AFTER",
            "Session",
            "SessionMemory",
            "Task",
        ),
        "_session_files": (
            "ClientSessionFile",
            "find_session_files",
            "read_session_file",
            "reconcile",
            "sessions_folder",
        ),
        "_snapshot": (
            "SnapshotError",
            "apply_record",
            "rebuild",
            "restore",
            "snapshot",
        ),
        "_states": (
            "AttentionNeeded",
            "Evidence",
            "Idle",
            "State",
            "Working",
        ),
        "_status_line": (
            "LARGEST_STATUS",
            "STATUS_LINE",
            "line_of",
            "read_status",
            "session_of",
        ),
        "_transcripts": ("Transcripts",),
        "_usage": (
            "Usage",
            "read_duration",
            "read_usage",
        ),
        "transitions._apply": ("apply",),
    },
)
