"""Decides events under a policy: finds the policy, asks guards and hooks, plans commands and settles their results.

Every route decides here: the daemon, the command line without one, and programs that embed Fairlead. Nothing here runs
a command, sends a notification or prints: `execute` does that, in the process of the caller.
"""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.decide._context import (
        WAKE_EVENTS,
        IdleSettings,
        PolicyContext,
        find_event_policy,
        find_policy,
        idle_settings,
        prepare_decoders,
    )
    from fairlead.decide._decision import GUARDED_EVENTS, NO_DECISION, Decision, decide, decide_with_hooks, read_event
    from fairlead.decide._integrity import warn_without_daemon
    from fairlead.decide._journal_settings import apply_journal_settings
    from fairlead.decide._settle import (
        Settled,
        StepResult,
        StepStatus,
        begin_unchecked_stop,
        blocks,
        plan_outcome,
        settle,
        verdict_of,
        would_block,
    )
    from fairlead.decide._user_hooks import HookCall, HookCause, HookFailed, ask_user_hooks

__all__ = [
    "GUARDED_EVENTS",
    "NO_DECISION",
    "WAKE_EVENTS",
    "Decision",
    "HookCall",
    "HookCause",
    "HookFailed",
    "IdleSettings",
    "PolicyContext",
    "Settled",
    "StepResult",
    "StepStatus",
    "apply_journal_settings",
    "ask_user_hooks",
    "begin_unchecked_stop",
    "blocks",
    "decide",
    "decide_with_hooks",
    "find_event_policy",
    "find_policy",
    "idle_settings",
    "plan_outcome",
    "prepare_decoders",
    "read_event",
    "settle",
    "verdict_of",
    "warn_without_daemon",
    "would_block",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_context": (
            "IdleSettings",
            "WAKE_EVENTS",
            "PolicyContext",
            "find_event_policy",
            "find_policy",
            "idle_settings",
            "prepare_decoders",
        ),
        "_decision": ("GUARDED_EVENTS", "NO_DECISION", "Decision", "decide", "decide_with_hooks", "read_event"),
        "_integrity": ("warn_without_daemon",),
        "_journal_settings": ("apply_journal_settings",),
        "_user_hooks": ("HookCall", "HookCause", "HookFailed", "ask_user_hooks"),
        "_settle": (
            "Settled",
            "StepResult",
            "StepStatus",
            "begin_unchecked_stop",
            "blocks",
            "plan_outcome",
            "settle",
            "verdict_of",
            "would_block",
        ),
    },
)
