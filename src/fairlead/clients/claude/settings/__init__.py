"""Our hooks in Claude Code's settings: install, uninstall, status, inspect. Implements `fairlead.clients.Installer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.clients.claude.settings._events import (
        BASE_VERSION,
        EVENTS,
        MIN_VERSION,
        OldClientError,
        VersionError,
        events_for,
        parse_version,
    )
    from fairlead.clients.claude.settings._inspect import inspect
    from fairlead.clients.claude.settings._install import (
        PROGRAM,
        SCOPES,
        carry_out,
        client_version,
        mail_rules_of,
        plan_install,
        plan_uninstall,
        settings_file,
        skill_file,
        status_line_of,
        stay_of,
    )
    from fairlead.clients.claude.settings._ownership import REPLACEABLE
    from fairlead.clients.claude.settings._sample import harmless_payload, hook_environment
    from fairlead.clients.claude.settings._status import status, warnings
    from fairlead.clients.claude.settings._stay import STAYS

__all__ = [
    "BASE_VERSION",
    "EVENTS",
    "MIN_VERSION",
    "PROGRAM",
    "REPLACEABLE",
    "SCOPES",
    "STAYS",
    "OldClientError",
    "VersionError",
    "carry_out",
    "client_version",
    "events_for",
    "harmless_payload",
    "hook_environment",
    "inspect",
    "mail_rules_of",
    "parse_version",
    "plan_install",
    "plan_uninstall",
    "settings_file",
    "skill_file",
    "status",
    "status_line_of",
    "stay_of",
    "warnings",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_events": (
            "BASE_VERSION",
            "EVENTS",
            "MIN_VERSION",
            "OldClientError",
            "VersionError",
            "events_for",
            "parse_version",
        ),
        "_inspect": ("inspect",),
        "_install": (
            "PROGRAM",
            "SCOPES",
            "carry_out",
            "client_version",
            "mail_rules_of",
            "plan_install",
            "plan_uninstall",
            "settings_file",
            "skill_file",
            "status_line_of",
            "stay_of",
        ),
        "_ownership": ("REPLACEABLE",),
        "_sample": ("harmless_payload", "hook_environment"),
        "_status": ("status", "warnings"),
        "_stay": ("STAYS",),
    },
)
