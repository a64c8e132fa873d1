"""Carries out a decision in the caller's process, with its environment, working directory and limits.

Modules are loaded on first use: most events have no command.
"""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.execute._commands import run_commands
    from fairlead.execute._execute import commands_record, execute
    from fairlead.execute._git_changes import FileChanges
    from fairlead.execute._main import main
    from fairlead.execute._native import Report, encode_steps, read_report
    from fairlead.execute._process_context import cancelled_by_signals, reserved_stdout
    from fairlead.execute._stdio import read_stdin, write_answer
    from fairlead.execute._wait import StoppedAgent, try_request, wait_for_mail

__all__ = [
    "FileChanges",
    "Report",
    "StoppedAgent",
    "cancelled_by_signals",
    "commands_record",
    "encode_steps",
    "execute",
    "main",
    "read_report",
    "read_stdin",
    "reserved_stdout",
    "run_commands",
    "try_request",
    "wait_for_mail",
    "write_answer",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_process_context": ("cancelled_by_signals", "reserved_stdout"),
        "_commands": ("run_commands",),
        "_execute": ("commands_record", "execute"),
        "_git_changes": ("FileChanges",),
        "_main": ("main",),
        "_native": ("Report", "encode_steps", "read_report"),
        "_stdio": ("read_stdin", "write_answer"),
        "_wait": ("StoppedAgent", "try_request", "wait_for_mail"),
    },
)
