"""The events of Claude Code that an install adds hooks for, the client versions that have them, and their timeouts.

For an unknown event the client opens a dialog at the start of every session, so only events that it has are installed.
"""

from __future__ import annotations

import re

from fairlead.clients._install_types import EventSetting, Version, format_version
from fairlead.errors import FairleadError

MIN_VERSION: Version = (2, 1, 139)
"""The first version with `args`, which start the launcher without a shell. An older one would ignore the arguments."""
BASE_VERSION: Version = (2, 1, 197)
"""The oldest version whose events are known. It has 30 events."""

SHORT_TIMEOUT = 60
"""Seconds for an event without commands: deciding takes milliseconds, and up to a second without a daemon."""
LONG_TIMEOUT = 3600
"""Seconds for an event at which the policy's commands may run. A command's own `timeout` may be as long.

With its default timeout the client would end the hook earlier, and continue as if the command had passed. A user who
does not want to wait can press Escape.
"""

QUESTION_EVENT = "PermissionRequest"
"""The event whose hook may wait for a person's answer (`attention.answer`), while the client asks, too.

The timeout of the hook is then `LONG_TIMEOUT`. After the timeout the client ends the hook, and its own question stays
open.
"""


def _event(
    timeout: int = LONG_TIMEOUT,
    since: Version = BASE_VERSION,
    *,
    blocks_on_failure: bool = False,
    left_out: str | None = None,
    is_optional: bool = False,
) -> EventSetting:
    return EventSetting(timeout, since, blocks_on_failure, left_out, is_optional)


EVENTS: dict[str, EventSetting] = {
    "SessionStart": _event(60),
    "Setup": _event(),
    "SessionEnd": _event(10),  # without a timeout the client waits 1.5 s, and never more than 60
    "UserPromptSubmit": _event(30),  # the client's own default: a user waits for it
    "UserPromptExpansion": _event(),
    # `onFailure` on this gate alone: on a prompt it would lock the user out of the session that could repair it
    "PreToolUse": _event(SHORT_TIMEOUT, blocks_on_failure=True),
    QUESTION_EVENT: _event(SHORT_TIMEOUT),
    "PermissionDenied": _event(),
    "PostToolUse": _event(),
    "PostToolUseFailure": _event(),
    "PostToolBatch": _event(),
    "SubagentStart": _event(),
    "SubagentStop": _event(),
    "TeammateIdle": _event(),
    "Stop": _event(),
    "StopFailure": _event(),
    "Notification": _event(),
    "MessageDisplay": _event(left_out="it fires for every piece of text that is shown", is_optional=True),
    "TaskCreated": _event(),
    "TaskCompleted": _event(),
    "PreCompact": _event(),
    "PostCompact": _event(),
    "PreModelSwitch": _event(30, since=(2, 1, 325)),  # the client's own default
    "PostModelSwitch": _event(SHORT_TIMEOUT, since=(2, 1, 325)),
    "Elicitation": _event(),
    "ElicitationResult": _event(),
    "ConfigChange": _event(),
    "InstructionsLoaded": _event(),
    "CwdChanged": _event(),
    "FileChanged": _event(left_out="its matcher is the list of files to watch, which only you know"),
    "DirectoryAdded": _event(SHORT_TIMEOUT, since=(2, 1, 219)),
    "WorktreeCreate": _event(
        left_out="a hook there replaces the client's own way to make a worktree", is_optional=True
    ),
    "WorktreeRemove": _event(
        left_out="it belongs to WorktreeCreate, and a failure keeps the worktree", is_optional=True
    ),
}


class OldClientError(FairleadError):
    """A client that is too old to start our hooks."""


class VersionError(FairleadError):
    """A text that contains no version."""


def parse_version(text: str) -> Version:
    """Return the version in a text such as `2.1.325 (Claude Code)`. Raise `VersionError` if there is none."""
    match = re.search(r"(?<![\d.])(\d{1,6})\.(\d{1,6})\.(\d{1,6})", text)
    if match is None:
        raise VersionError(f"{text[:60]!r} is not a version of Claude Code; expected three numbers, as 2.1.325")
    return int(match[1]), int(match[2]), int(match[3])


def is_known(event: str, version: Version | None) -> bool:
    """Return whether a version of the client has an event; for an unknown version, whether any version has it."""
    setting = EVENTS.get(event)
    return setting is not None and (version is None or setting.since <= max(version, BASE_VERSION))


def events_for(version: Version | None, also: frozenset[str] = frozenset()) -> list[str]:
    """Return the events to install for a version of the client; for an unknown version, the events of `BASE_VERSION`.

    `also` are optional events to add. Raise `OldClientError` for a client that cannot start our hooks.
    """
    if version is not None and version < MIN_VERSION:
        raise OldClientError(
            f"Claude Code {format_version(version)} cannot start hooks without a shell; "
            f"update it to {format_version(MIN_VERSION)} or newer"
        )
    names = [name for name, setting in EVENTS.items() if setting.left_out is None or name in also]
    return [name for name in names if is_known(name, version or BASE_VERSION)]
