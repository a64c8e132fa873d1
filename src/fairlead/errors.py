"""Everything Fairlead can raise, in one tree; and the exit codes of a failure.

FairleadError
├── PayloadError          a payload cannot be read: which field, and what was expected
├── UnknownEventError     a name that is no event
├── RegistrationError     a hook cannot be registered as asked
│   └── MatcherError      its matcher is no valid pattern, or its event has nothing to match
├── HookFailure           a hook did not answer; on a gate this becomes a denial
│   ├── HookTimeout       it took too long
│   ├── HookCancelled     the caller no longer waits
│   └── CommandFailed     its command could not be run, or gave no usable answer
└── UsageError            the command line is off
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
    """Anything that went wrong and is ours to explain."""


class PayloadError(FairleadError, ValueError):
    """A payload that cannot be read. `field` names the culprit ("" for the payload as a whole)."""

    def __init__(self, message: str, *, field: str = "") -> None:
        """Say what is wrong, and in which field."""
        super().__init__(message)
        self.field = field


class UnknownEventError(FairleadError, ValueError):
    """A name that is no event of any client we know."""


class RegistrationError(FairleadError, ValueError):
    """A hook that cannot be registered as asked."""


class MatcherError(RegistrationError):
    """A matcher that is no valid pattern, or an event that has nothing to match."""


class HookFailure(FairleadError):
    """A hook that did not answer. On an event that gates it becomes a denial."""


class HookTimeout(HookFailure):
    """A hook that took longer than it was given."""


class HookCancelled(HookFailure):
    """A hook whose caller no longer waits."""


class CommandFailed(HookFailure):
    """A command that could not be run, or gave no usable answer."""


class UsageError(FairleadError):
    """A command line that cannot be understood."""


FAILED = 1
BLOCKED = 2
"""The client blocks what the event announces."""
INTERRUPTED = 130
"""Ctrl-C ended a command."""


def failure_exit_code(*names: str, payload: bytes = b"") -> int:
    """Return the exit code of an event that failed before it was decided: a PreToolUse is blocked.

    `names` are all words that may name the event. Spelling is ignored, and so is which field of the payload names it:
    in doubt the event is blocked.
    """
    folded = (name.replace("_", "").replace("-", "").lower() for name in names)
    return BLOCKED if "pretooluse" in folded or b'"PreToolUse"' in payload else FAILED
