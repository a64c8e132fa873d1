"""Processes of the operating system: runs them to their end, finds their ancestors, checks and ends them."""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.process._cancellation import CancellationToken
    from fairlead.process._liveness import LivenessCache
    from fairlead.process._output import DEFAULT_OUTPUT_LINES, FirstAndLastLines
    from fairlead.process._run import CANCELLED, ProcessResult, run_process, start_error
    from fairlead.process._signals import ProcessNotEnded, terminate_process
    from fairlead.process._table import (
        Ancestry,
        Process,
        ancestries_of,
        ancestry_of,
        command_line,
        dead_processes,
        is_alive,
        process_folder,
        process_start_time,
        process_started_at,
        process_variables,
    )

__all__ = [
    "CANCELLED",
    "DEFAULT_OUTPUT_LINES",
    "Ancestry",
    "CancellationToken",
    "FirstAndLastLines",
    "LivenessCache",
    "Process",
    "ProcessNotEnded",
    "ProcessResult",
    "ancestries_of",
    "ancestry_of",
    "command_line",
    "dead_processes",
    "is_alive",
    "process_folder",
    "process_start_time",
    "process_started_at",
    "process_variables",
    "run_process",
    "start_error",
    "terminate_process",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_cancellation": ("CancellationToken",),
        "_liveness": ("LivenessCache",),
        "_output": ("DEFAULT_OUTPUT_LINES", "FirstAndLastLines"),
        "_run": ("CANCELLED", "ProcessResult", "run_process", "start_error"),
        "_signals": ("ProcessNotEnded", "terminate_process"),
        "_table": (
            "Ancestry",
            "Process",
            "ancestries_of",
            "ancestry_of",
            "command_line",
            "dead_processes",
            "is_alive",
            "process_folder",
            "process_start_time",
            "process_started_at",
            "process_variables",
        ),
    },
)
