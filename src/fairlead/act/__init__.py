"""Acts in the caller's process: its commands get the caller's environment and limits, and end with it.

The parts are loaded on first use: most events have no command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.act._env_file import export_session
    from fairlead.act._main import main
    from fairlead.act._record import happened
    from fairlead.act._results import Outcome, StepResult
    from fairlead.act._run import run
    from fairlead.act._settle import Settled, settle, tell, verdict_of
    from fairlead.act._stay import Stopped, stay

__all__ = [
    "Outcome",
    "Settled",
    "StepResult",
    "Stopped",
    "export_session",
    "happened",
    "main",
    "run",
    "settle",
    "stay",
    "tell",
    "verdict_of",
]

_HOMES = {
    "_env_file": {"export_session"},
    "_main": {"main"},
    "_record": {"happened"},
    "_results": {"Outcome", "StepResult"},
    "_run": {"run"},
    "_settle": {"Settled", "settle", "tell", "verdict_of"},
    "_stay": {"Stopped", "stay"},
}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    from importlib import import_module  # noqa: PLC0415 - only the first use pays for it

    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"fairlead.act.{home}"), name)
            return value
    raise AttributeError(f"module 'fairlead.act' has no attribute {name!r}")
