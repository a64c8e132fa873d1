"""Which events of Claude Code are asked for at install, since which version it has them, and for how long each waits.

An event that the client does not know opens a dialog at the start of every session, so none is asked for on a guess.
"""

from __future__ import annotations

import re

import msgspec

from fairlead.errors import FairleadError

Version = tuple[int, int, int]

OLDEST: Version = (2, 1, 139)
"""The first with `args`, which start the launcher without a shell; one before would start it without its event."""
BASE: Version = (2, 1, 197)
"""The oldest whose events were seen. It has 30."""

QUICK = 60
"""Seconds for an answer that is only a decision; it comes in milliseconds, and in a second without the daemon."""
LONG = 3600
"""Seconds where the policy's commands may run: one of them may take that long, and says so by its own `timeout`.

The client would end it earlier by its own measure and go on as if it had passed. Whoever waits can press Escape.
"""


class Wanted(msgspec.Struct, frozen=True):
    """An event that is asked for, or why it is not."""

    timeout: int = LONG
    since: Version = BASE
    blocks_on_failure: bool = False
    left_out: str | None = None
    can_be_asked: bool = False
    """Whether `--with` asks for it all the same."""


EVENTS: dict[str, Wanted] = {
    "SessionStart": Wanted(60),
    "Setup": Wanted(),
    "SessionEnd": Wanted(10),  # without a timeout the client waits 1.5 s, and never more than 60
    "UserPromptSubmit": Wanted(30),  # the client's own measure: a person waits for it
    "UserPromptExpansion": Wanted(),
    # `onFailure` on this gate alone: on a prompt it would lock the person out of the session that could mend it
    "PreToolUse": Wanted(QUICK, blocks_on_failure=True),
    "PermissionRequest": Wanted(QUICK),
    "PermissionDenied": Wanted(),
    "PostToolUse": Wanted(),
    "PostToolUseFailure": Wanted(),
    "PostToolBatch": Wanted(),
    "SubagentStart": Wanted(),
    "SubagentStop": Wanted(),
    "TeammateIdle": Wanted(),
    "Stop": Wanted(),
    "StopFailure": Wanted(),
    "Notification": Wanted(),
    "MessageDisplay": Wanted(left_out="it fires for every piece of text that is shown", can_be_asked=True),
    "TaskCreated": Wanted(),
    "TaskCompleted": Wanted(),
    "PreCompact": Wanted(),
    "PostCompact": Wanted(),
    "PreModelSwitch": Wanted(30, since=(2, 1, 325)),  # the client's own measure
    "PostModelSwitch": Wanted(QUICK, since=(2, 1, 325)),
    "Elicitation": Wanted(),
    "ElicitationResult": Wanted(),
    "ConfigChange": Wanted(),
    "InstructionsLoaded": Wanted(),
    "CwdChanged": Wanted(),
    "FileChanged": Wanted(left_out="its matcher is the list of files to watch, which only you know"),
    "DirectoryAdded": Wanted(QUICK, since=(2, 1, 219)),
    "WorktreeCreate": Wanted(
        left_out="a hook there takes the place of the client's own way to make a worktree", can_be_asked=True
    ),
    "WorktreeRemove": Wanted(
        left_out="it goes with WorktreeCreate, and a failure keeps the worktree", can_be_asked=True
    ),
}


class OldClientError(FairleadError):
    """A client that could not start our hooks."""


class VersionError(FairleadError):
    """A version that cannot be read."""


def read_version(text: str) -> Version:
    """Find the version in what a client or a person says: `2.1.325 (Claude Code)`."""
    found = re.search(r"(?<![\d.])(\d{1,6})\.(\d{1,6})\.(\d{1,6})", text)
    if found is None:
        raise VersionError(f"{text[:60]!r} is no version of Claude Code; expected three numbers, as 2.1.325")
    return int(found[1]), int(found[2]), int(found[3])


def show_version(version: Version) -> str:
    """Write a version as the client does."""
    return ".".join(map(str, version))


def is_known(event: str, version: Version | None) -> bool:
    """Tell whether that client has the event; where the version is unknown, whether some client has it."""
    wanted = EVENTS.get(event)
    return wanted is not None and (version is None or wanted.since <= max(version, BASE))


def events_for(version: Version | None, also: frozenset[str] = frozenset()) -> list[str]:
    """List what to ask of that client; of one that is unknown, what the oldest that was seen has."""
    if version is not None and version < OLDEST:
        raise OldClientError(
            f"Claude Code {show_version(version)} cannot start hooks without a shell; "
            f"update it to {show_version(OLDEST)} or newer"
        )
    names = [name for name, wanted in EVENTS.items() if wanted.left_out is None or name in also]
    return [name for name in names if is_known(name, version or BASE)]
