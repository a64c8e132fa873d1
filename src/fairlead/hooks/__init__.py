"""Hooks, the manager that calls them for events, hooks that run commands, and rules in files."""

from fairlead.hooks._call import HookResult, HookRun
from fairlead.hooks._command import CommandHook
from fairlead.hooks._context import HookContext
from fairlead.hooks._execution import ExecutionContext
from fairlead.hooks._hook import Hook
from fairlead.hooks._manager import HookManager, HookOptions, Registration
from fairlead.hooks.rules._files import load_rules
from fairlead.hooks.rules._types import HookAction, HookRule, Problem, Rules
from fairlead.process import CancellationToken

__all__ = [
    "CancellationToken",
    "CommandHook",
    "ExecutionContext",
    "Hook",
    "HookAction",
    "HookContext",
    "HookManager",
    "HookOptions",
    "HookResult",
    "HookRule",
    "HookRun",
    "Problem",
    "Registration",
    "Rules",
    "load_rules",
]
