"""The user's hooks that a policy lists. They are loaded in a worker process, and called over a socket.

There is a worker for each policy file and interpreter. A hook that hangs, crashes, leaks memory or prints affects only
its worker. Modules are imported on first use, because most events need none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.hooks.user_hooks._messages import EVENT_LIMIT, EventReply, EventRequest, LoadReply, LoadRequest
    from fairlead.hooks.user_hooks._process import (
        HookWorkerError,
        WorkerProcess,
        ask_once,
        caller_variables,
        find_imports,
        find_problem,
    )

__all__ = [
    "EVENT_LIMIT",
    "EventReply",
    "EventRequest",
    "HookWorkerError",
    "LoadReply",
    "LoadRequest",
    "WorkerProcess",
    "ask_once",
    "caller_variables",
    "find_imports",
    "find_problem",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_messages": ("EVENT_LIMIT", "EventReply", "EventRequest", "LoadRequest", "LoadReply"),
        "_process": (
            "HookWorkerError",
            "WorkerProcess",
            "ask_once",
            "caller_variables",
            "find_imports",
            "find_problem",
        ),
    },
)
