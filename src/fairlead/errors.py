"""The exceptions of Fairlead, and the exit codes of a failure.

FairleadError
├── PayloadError          a payload is invalid; names the field and what was expected
├── UnknownEventError     a name is not an event's
├── RegistrationError     a hook cannot be registered
│   └── MatcherError      its matcher is not a valid pattern, or its event has no subject
├── HookFailure           a hook returned no valid output; on a gate this becomes a denial
│   ├── HookTimeout       it exceeded its timeout
│   ├── HookCancelled     the caller no longer waits
│   └── CommandFailed     its command could not be run, or printed no valid answer
└── UsageError            the command line is invalid

Packages define further subclasses where only they raise them.
"""

__all__ = [
    "CommandFailed",
    "FairleadError",
    "HookCancelled",
    "HookFailure",
    "HookTimeout",
    "MatcherError",
    "PayloadError",
    "RegistrationError",
    "UnknownEventError",
    "UsageError",
]


class FairleadError(Exception):
    """Base class of all exceptions of Fairlead."""


class PayloadError(FairleadError, ValueError):
    """A payload is invalid. `field` is the invalid field ("" for the payload as a whole)."""

    def __init__(self, message: str, *, field: str = "") -> None:
        """Create the error with the name of the invalid field."""
        super().__init__(message)
        self.field = field


class UnknownEventError(FairleadError, ValueError):
    """No known event has this name."""


class RegistrationError(FairleadError, ValueError):
    """A hook cannot be registered."""


class MatcherError(RegistrationError):
    """A matcher is not a valid pattern, or its event has no subject to match."""


class HookFailure(FairleadError):
    """A hook returned no valid output. On a gate this becomes a denial."""


class HookTimeout(HookFailure):
    """A hook exceeded its timeout."""


class HookCancelled(HookFailure):
    """A hook was cancelled: its caller no longer waits."""


class CommandFailed(HookFailure):
    """A command could not be run, or printed no valid answer."""


class UsageError(FairleadError):
    """A command line is invalid."""


# -- where an event is decided: not for users, and caught by the daemon ----------------------------------


class NeedsThread(Exception):
    """Something has to wait for the disk, a lock or a process, and was called with `may_wait` false: in the event loop.

    The event is decided again in a thread.
    """


class NeedsCaller(FairleadError):
    """Only the caller's own process can decide this event."""


# -- exit codes ------------------------------------------------------------------------------------------


FAILED = 1
BLOCKED = 2
"""The client blocks what the event announces."""
INTERRUPTED = 130
"""Ctrl-C ended a command."""


def failure_exit_code(*names: str, payload: bytes = b"") -> int:
    """Return the exit code of an event that failed before it was decided: a PreToolUse is blocked.

    `names` are all texts that may name the event, in any spelling. It is also blocked if any field of the payload names
    a PreToolUse.
    """
    folded = (name.replace("_", "").replace("-", "").lower() for name in names)
    return BLOCKED if "pretooluse" in folded or b'"PreToolUse"' in payload else FAILED
