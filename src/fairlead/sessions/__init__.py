"""The state of every session and subagent: transitions, registry, what is saved. Knows no daemon.

Modules are loaded on first use: a process that applies one event needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.clients import Usage
    from fairlead.sessions._attention import AttentionLog, AttentionRequest, AttentionSettings, decide_notification
    from fairlead.sessions._changes import SessionChange
    from fairlead.sessions._costs import CostEntry, CostLedger, Costs, SessionCost
    from fairlead.sessions._history import (
        AbsenceSummary,
        CopyBatch,
        EventCopy,
        EventsToCopyCount,
        EventText,
        HistoryMatch,
        HistoryPage,
        HistoryQuery,
        HistorySession,
        OtherHostsSummary,
        SessionCopy,
        SessionHistory,
        SubagentHistory,
        TextKind,
        TimelineEntry,
        subagents_of,
    )
    from fairlead.sessions._hosts import CONTACT_STALE_AFTER, HostSessions, team_sessions, with_host
    from fairlead.sessions._limits import (
        MAX_PATH_LENGTH,
        bounded_question,
        bounded_session,
        clean_text,
        is_long,
        public_session,
    )
    from fairlead.sessions._locations import (
        GitFolders,
        Location,
        find_git_folders,
        find_location,
        project_of,
        unknown_location,
    )
    from fairlead.sessions._panes import TmuxClients
    from fairlead.sessions._reconcile import reconcile
    from fairlead.sessions._registry import Registry
    from fairlead.sessions._saved_registry import (
        SavedRegistryError,
        apply_record,
        encode_registry,
        restore_registry,
    )
    from fairlead.sessions._session import (
        STALE_AFTER,
        ActiveSubagent,
        AttentionNeeded,
        BackgroundTask,
        Counters,
        Evidence,
        Idle,
        OpenCall,
        Session,
        SessionMemory,
        State,
        Working,
    )
    from fairlead.sessions._status_line import MAX_STATUS_BYTES, STATUS_LINE, changed_lines, line_of
    from fairlead.sessions.transitions._apply import apply
    from fairlead.sessions.transitions._subagents import transcript_of
    from fairlead.sessions.transitions._tools import question_of

__all__ = [
    "CONTACT_STALE_AFTER",
    "MAX_PATH_LENGTH",
    "MAX_STATUS_BYTES",
    "STALE_AFTER",
    "STATUS_LINE",
    "AbsenceSummary",
    "ActiveSubagent",
    "AttentionLog",
    "AttentionNeeded",
    "AttentionRequest",
    "AttentionSettings",
    "BackgroundTask",
    "CopyBatch",
    "CostEntry",
    "CostLedger",
    "Costs",
    "Counters",
    "EventCopy",
    "EventText",
    "EventsToCopyCount",
    "Evidence",
    "GitFolders",
    "HistoryMatch",
    "HistoryPage",
    "HistoryQuery",
    "HistorySession",
    "HostSessions",
    "Idle",
    "Location",
    "OpenCall",
    "OtherHostsSummary",
    "Registry",
    "SavedRegistryError",
    "Session",
    "SessionChange",
    "SessionCopy",
    "SessionCost",
    "SessionHistory",
    "SessionMemory",
    "State",
    "SubagentHistory",
    "TextKind",
    "TimelineEntry",
    "TmuxClients",
    "Usage",
    "Working",
    "apply",
    "apply_record",
    "bounded_question",
    "bounded_session",
    "changed_lines",
    "clean_text",
    "decide_notification",
    "encode_registry",
    "find_git_folders",
    "find_location",
    "is_long",
    "line_of",
    "project_of",
    "public_session",
    "question_of",
    "reconcile",
    "restore_registry",
    "subagents_of",
    "team_sessions",
    "transcript_of",
    "unknown_location",
    "with_host",
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
        "_changes": ("SessionChange",),
        "_costs": (
            "CostEntry",
            "CostLedger",
            "Costs",
            "SessionCost",
        ),
        "_history": (
            "AbsenceSummary",
            "CopyBatch",
            "EventsToCopyCount",
            "EventCopy",
            "EventText",
            "HistoryMatch",
            "HistoryPage",
            "HistoryQuery",
            "HistorySession",
            "OtherHostsSummary",
            "SessionCopy",
            "SessionHistory",
            "SubagentHistory",
            "TextKind",
            "TimelineEntry",
            "subagents_of",
        ),
        "_hosts": ("HostSessions", "CONTACT_STALE_AFTER", "team_sessions", "with_host"),
        "_limits": (
            "MAX_PATH_LENGTH",
            "bounded_session",
            "bounded_question",
            "clean_text",
            "is_long",
            "public_session",
        ),
        "_locations": (
            "GitFolders",
            "Location",
            "find_git_folders",
            "find_location",
            "project_of",
            "unknown_location",
        ),
        "_panes": ("TmuxClients",),
        "_registry": ("Registry",),
        "_session": (
            "ActiveSubagent",
            "Counters",
            "OpenCall",
            "STALE_AFTER",
            "Session",
            "SessionMemory",
            "BackgroundTask",
            "Usage",
            "AttentionNeeded",
            "Evidence",
            "Idle",
            "State",
            "Working",
        ),
        "_reconcile": ("reconcile",),
        "_saved_registry": (
            "SavedRegistryError",
            "apply_record",
            "restore_registry",
            "encode_registry",
        ),
        "_status_line": (
            "MAX_STATUS_BYTES",
            "STATUS_LINE",
            "changed_lines",
            "line_of",
        ),
        "transitions._apply": ("apply",),
        "transitions._subagents": ("transcript_of",),
        "transitions._tools": ("question_of",),
    },
)
