"""The exceptions of Fairlead, and the exit codes of a failure.

FairleadError
├── PayloadError          a payload is invalid; names the field and what was expected
├── UnknownEventError     no known event has this name
├── RegistrationError     a hook cannot be registered
│   └── MatcherError      its matcher is not a valid pattern, or its event has no subject
├── HookFailure           a hook returned no valid output; on a gate this becomes a denial
│   ├── HookTimeout       it exceeded its timeout
│   ├── HookCancelled     the caller no longer waits
│   └── CommandFailed     its command could not be run, or printed no valid answer
└── UsageError            the command line is invalid

A subclass that only one package raises is defined in that package.
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
    """A payload is invalid. `field` is the name of the invalid field; "" if the payload as a whole is invalid."""

    def __init__(self, message: str, *, field: str = "") -> None:
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
"""The exit code with which a hook makes the client block what the event announces."""
INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""


def failure_exit_code(*names: str, payload: bytes = b"") -> int:
    """Return the exit code after a failure: `BLOCKED` if the event may be a PreToolUse, else `FAILED`.

    `names` are all texts that may be the name of the event; case, `-` and `_` do not matter. The event also counts as a
    PreToolUse if `payload`, which is not parsed, contains the JSON string `"PreToolUse"` anywhere.
    """
    folded = (name.replace("_", "").replace("-", "").lower() for name in names)
    return BLOCKED if "pretooluse" in folded or b'"PreToolUse"' in payload else FAILED
