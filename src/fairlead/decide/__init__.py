"""An event under a policy: the context it is decided in, the decision, and the record of it.

Every route decides here: the daemon, the command line without one, and programs that embed Fairlead. Nothing here runs
a command, sends a notification or prints: `execute` does that, in the process of the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.decide._decision import (
        DOCTOR_SESSION,
        GUARDED_EVENTS,
        Decision,
        IdleSettings,
        PolicyContext,
        decide,
        find_policy,
        idle_settings,
        post_guards,
        prepare_decoders,
        read_event,
    )
    from fairlead.decide._record import event_record

__all__ = [
    "DOCTOR_SESSION",
    "GUARDED_EVENTS",
    "Decision",
    "IdleSettings",
    "PolicyContext",
    "decide",
    "event_record",
    "find_policy",
    "idle_settings",
    "post_guards",
    "prepare_decoders",
    "read_event",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_decision": (
            "DOCTOR_SESSION",
            "Decision",
            "GUARDED_EVENTS",
            "IdleSettings",
            "PolicyContext",
            "decide",
            "find_policy",
            "idle_settings",
            "post_guards",
            "prepare_decoders",
            "read_event",
        ),
        "_record": ("event_record",),
    },
)
