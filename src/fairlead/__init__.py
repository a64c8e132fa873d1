"""Fairlead, the hook runtime for coding agents.

The public names are imported on first use, so `import fairlead` itself is cheap.
"""

TYPE_CHECKING = False  # as in `typing`; importing it would be most of the cost of this module
if TYPE_CHECKING:
    from fairlead.errors import *
    from fairlead.events import *
    from fairlead.hooks import *

__version__ = "0.1.0"

__all__ = [
    "CancellationToken",
    "CommandFailed",
    "CommandHook",
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "Event",
    "ExecutionContext",
    "FairleadError",
    "FileChanged",
    "Hook",
    "HookAction",
    "HookCancelled",
    "HookContext",
    "HookEvent",
    "HookFailure",
    "HookManager",
    "HookOptions",
    "HookOutput",
    "HookResult",
    "HookRule",
    "HookRun",
    "HookTimeout",
    "InstructionsLoaded",
    "MatcherError",
    "MessageDisplay",
    "ModelSwitch",
    "Notification",
    "OtherEvent",
    "PayloadError",
    "Permission",
    "PermissionDenied",
    "PermissionRequest",
    "PostCompact",
    "PostModelSwitch",
    "PostToolBatch",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PreModelSwitch",
    "PreToolUse",
    "Problem",
    "Registration",
    "RegistrationError",
    "Rules",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TaskEvent",
    "TeammateIdle",
    "ToolEvent",
    "UnknownEventError",
    "UsageError",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
    "__version__",
    "encode",
    "load_rules",
    "parse",
    "post_tool_use",
    "post_tool_use_failure",
    "pre_compact",
    "pre_tool_use",
    "session_end",
    "session_start",
    "stop",
    "subagent_start",
    "subagent_stop",
    "to_payload",
    "user_prompt_submit",
    "validate_base_payload",
    "validate_subagent_start_payload",
]


def __getattr__(name: str) -> object:
    """Return a public name, importing its module on first use. Raise `AttributeError` for any other name."""
    if name in __all__:
        from importlib import import_module

        for package in ("fairlead.errors", "fairlead.events", "fairlead.hooks"):
            module = import_module(package)
            if name in module.__all__:
                globals()[name] = value = getattr(module, name)
                return value
    raise AttributeError(f"module 'fairlead' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
