"""Processes of the operating system: run one to its end, find its ancestors, check whether it is alive, end it."""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.process._alive import Process, dead_processes, is_alive, process_start_time
    from fairlead.process._cancellation import CancellationToken
    from fairlead.process._command_line import command_line
    from fairlead.process._liveness import LivenessCache
    from fairlead.process._output import MAX_LINES, FirstAndLastLines
    from fairlead.process._process_info import process_folder, process_started_at, process_variables
    from fairlead.process._run import CANCELLED, ProcessResult, run_process, start_error
    from fairlead.process._signals import ProcessNotEnded, terminate_process
    from fairlead.process._tree import Ancestry, ancestries_of, ancestry_of

__all__ = [
    "CANCELLED",
    "MAX_LINES",
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
        "_alive": ("Process", "dead_processes", "is_alive", "process_start_time"),
        "_cancellation": ("CancellationToken",),
        "_command_line": ("command_line",),
        "_liveness": ("LivenessCache",),
        "_output": ("MAX_LINES", "FirstAndLastLines"),
        "_run": ("CANCELLED", "ProcessResult", "run_process", "start_error"),
        "_signals": ("ProcessNotEnded", "terminate_process"),
        "_process_info": ("process_folder", "process_started_at", "process_variables"),
        "_tree": ("Ancestry", "ancestries_of", "ancestry_of"),
    },
)
