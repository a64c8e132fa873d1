"""Carries a decision out in the caller's process: its environment, its working directory, its limits.

Modules are loaded on first use: most events have no command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.execute._commands import run_commands
    from fairlead.execute._execute import commands_record, execute
    from fairlead.execute._git_changes import FileChanges
    from fairlead.execute._main import main
    from fairlead.execute._native import Report, encode_steps, read_report
    from fairlead.execute._stdio import cancelled_by_signals, read_stdin, reserved_stdout, write_answer
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
        "_commands": ("run_commands",),
        "_execute": ("commands_record", "execute"),
        "_git_changes": ("FileChanges",),
        "_main": ("main",),
        "_native": ("Report", "encode_steps", "read_report"),
        "_stdio": ("cancelled_by_signals", "read_stdin", "reserved_stdout", "write_answer"),
        "_wait": ("StoppedAgent", "try_request", "wait_for_mail"),
    },
)
