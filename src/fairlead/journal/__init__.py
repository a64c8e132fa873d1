"""The journal of events, and the spool of events that reached no daemon.

Modules are imported on first use, because a process that writes one record to the spool needs few of them.
"""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.journal._errors import JournalError, SpoolFull
    from fairlead.journal._lines import event_record, record_key, record_payload
    from fairlead.journal._reader import JournalReader, Position, journal_folder
    from fairlead.journal._records import (
        DOCTOR_SESSION,
        MAX_REASON_LENGTH,
        Caller,
        CommandResult,
        CommandsRecord,
        CostRecord,
        DaemonRecord,
        EventRecord,
        Record,
        Route,
        Verdict,
    )
    from fairlead.journal._redact import redact_for_others, set_redaction
    from fairlead.journal._spool import (
        MAX_SPOOL_FILES,
        count_spooled,
        has_spooled,
        read_spool,
        remove_spooled,
        spool_folder,
        spool_record,
    )
    from fairlead.journal._writer import SEGMENT_BYTES, Journal, Recovery

__all__ = [
    "DOCTOR_SESSION",
    "MAX_REASON_LENGTH",
    "MAX_SPOOL_FILES",
    "SEGMENT_BYTES",
    "Caller",
    "CommandResult",
    "CommandsRecord",
    "CostRecord",
    "DaemonRecord",
    "EventRecord",
    "Journal",
    "JournalError",
    "JournalReader",
    "Position",
    "Record",
    "Recovery",
    "Route",
    "SpoolFull",
    "Verdict",
    "count_spooled",
    "event_record",
    "has_spooled",
    "journal_folder",
    "read_spool",
    "record_key",
    "record_payload",
    "redact_for_others",
    "remove_spooled",
    "set_redaction",
    "spool_folder",
    "spool_record",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_errors": ("JournalError", "SpoolFull"),
        "_lines": ("event_record", "record_key", "record_payload"),
        "_reader": ("Position", "JournalReader", "journal_folder"),
        "_records": (
            "DOCTOR_SESSION",
            "Caller",
            "CommandResult",
            "CommandsRecord",
            "CostRecord",
            "DaemonRecord",
            "EventRecord",
            "MAX_REASON_LENGTH",
            "Record",
            "Route",
            "Verdict",
        ),
        "_redact": ("redact_for_others", "set_redaction"),
        "_spool": (
            "MAX_SPOOL_FILES",
            "count_spooled",
            "has_spooled",
            "spool_record",
            "remove_spooled",
            "spool_folder",
            "read_spool",
        ),
        "_writer": ("SEGMENT_BYTES", "Journal", "Recovery"),
    },
)
