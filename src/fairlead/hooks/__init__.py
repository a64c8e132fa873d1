"""Who reacts: hooks, the manager that fires events at them, commands as hooks, rules from files."""

from fairlead.hooks._call import HookResult, HookRun
from fairlead.hooks._context import CancellationToken, HookContext
from fairlead.hooks._hook import Hook
from fairlead.hooks._manager import HookManager, HookOptions, Registration

__all__ = [
    "CancellationToken",
    "Hook",
    "HookContext",
    "HookManager",
    "HookOptions",
    "HookResult",
    "HookRun",
    "Registration",
]
