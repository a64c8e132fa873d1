"""Hooks of the user's own that a policy lists: loaded in a worker process, called over a socket.

The worker belongs to a policy file and an interpreter. A hook that hangs, crashes, leaks or prints harms this process
alone. Modules are imported on first use, because most events need none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.hooks.own._messages import EVENT_LIMIT, Answer, Ask, Loaded, LoadRequest
    from fairlead.hooks.own._process import (
        HookWorkerError,
        WorkerProcess,
        ask_once,
        caller_variables,
        find_imports,
    )

__all__ = [
    "EVENT_LIMIT",
    "Answer",
    "Ask",
    "HookWorkerError",
    "LoadRequest",
    "Loaded",
    "WorkerProcess",
    "ask_once",
    "caller_variables",
    "find_imports",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_messages": ("EVENT_LIMIT", "Answer", "Ask", "LoadRequest", "Loaded"),
        "_process": (
            "HookWorkerError",
            "WorkerProcess",
            "ask_once",
            "caller_variables",
            "find_imports",
        ),
    },
)
