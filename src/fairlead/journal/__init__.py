"""What happened, written down: the journal, and the spool of events that reached no daemon.

Modules are loaded on first use: a process that spools one record needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.journal._errors import JournalError, SpoolFull
    from fairlead.journal._lines import name_of
    from fairlead.journal._payload import record_payload
    from fairlead.journal._reader import Position, Reader, journal_folder
    from fairlead.journal._records import (
        LONGEST_REASON,
        Caller,
        CommandResult,
        CommandsRecord,
        DaemonRecord,
        EventRecord,
        Record,
        Road,
        Verdict,
    )
    from fairlead.journal._spool import MAX_SPOOL_FILES, pending, put, remove, spool_folder, take
    from fairlead.journal._writer import Journal, Recovered

__all__ = [
    "LONGEST_REASON",
    "MAX_SPOOL_FILES",
    "Caller",
    "CommandResult",
    "CommandsRecord",
    "DaemonRecord",
    "EventRecord",
    "Journal",
    "JournalError",
    "Position",
    "Reader",
    "Record",
    "Recovered",
    "Road",
    "SpoolFull",
    "Verdict",
    "journal_folder",
    "name_of",
    "pending",
    "put",
    "record_payload",
    "remove",
    "spool_folder",
    "take",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_errors": (
            "JournalError",
            "SpoolFull",
        ),
        "_lines": ("name_of",),
        "_payload": ("record_payload",),
        "_reader": (
            "Position",
            "Reader",
            "journal_folder",
        ),
        "_records": (
            "Caller",
            "CommandResult",
            "CommandsRecord",
            "DaemonRecord",
            "EventRecord",
            "LONGEST_REASON",
            "Record",
            "Road",
            "Verdict",
        ),
        "_spool": (
            "MAX_SPOOL_FILES",
            "pending",
            "put",
            "remove",
            "spool_folder",
            "take",
        ),
        "_writer": (
            "Journal",
            "Recovered",
        ),
    },
)
