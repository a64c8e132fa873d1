"""Carries a decision out in the caller's process: its environment, its working directory, its limits.

Modules are loaded on first use: most events have no command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.execute._commands import run
    from fairlead.execute._main import main
    from fairlead.execute._results import Outcome, StepResult
    from fairlead.execute._settle import Settled, settle, tell, verdict_of
    from fairlead.execute._stdio import answers_alone_on_stdout, cancelled_by_signals, printed, read_stdin
    from fairlead.execute._wait import Stopped, asked, stay

__all__ = [
    "Outcome",
    "Settled",
    "StepResult",
    "Stopped",
    "answers_alone_on_stdout",
    "asked",
    "cancelled_by_signals",
    "main",
    "printed",
    "read_stdin",
    "run",
    "settle",
    "stay",
    "tell",
    "verdict_of",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_commands": ("run",),
        "_main": ("main",),
        "_results": (
            "Outcome",
            "StepResult",
        ),
        "_settle": (
            "Settled",
            "settle",
            "tell",
            "verdict_of",
        ),
        "_stdio": (
            "answers_alone_on_stdout",
            "cancelled_by_signals",
            "printed",
            "read_stdin",
        ),
        "_wait": (
            "Stopped",
            "asked",
            "stay",
        ),
    },
)
