"""Errors of the mail. Their names are sent to programs, as the `kind` of a refusal.

MailError                 a message was not sent, shown or found
├── BadMessage            a draft that is not valid
│   └── TooLarge          a message that is too long or has too many recipients
├── BadName               a name that is invalid, reserved or taken
├── NoSuchAgent           no agent has that name; `nearest` lists similar names
├── NobodyThere           a valid address that currently has no recipient
├── NoSuchMessage         no message has that id
├── NotYours              a message that the caller neither wrote nor received, or an agent it may not act for
└── MailUnreachable       the storage failed; nothing was changed
    ├── MailBusy          another process holds the storage
    └── MailFull          the disk is full
"""

from __future__ import annotations

from fairlead.errors import FairleadError


class MailError(FairleadError):
    """A message was not sent, shown or found. Nothing was changed."""


class BadMessage(MailError, ValueError):
    """A draft that is not valid."""


class TooLarge(BadMessage):
    """A message that is too long or has too many recipients."""


class BadName(MailError, ValueError):
    """A name that is taken, reserved, or cannot be typed as an address."""


class NoSuchAgent(MailError, LookupError):
    """No agent has that name. `nearest` lists similar names."""

    def __init__(self, message: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.nearest = nearest


class NobodyThere(MailError, LookupError):
    """A valid address that currently has no recipient."""


class NoSuchMessage(MailError, LookupError):
    """No message has that id. It may have been pruned."""


class NotYours(MailError):
    """A message that the caller neither wrote nor received, or an agent that the caller may not act for."""


class MailUnreachable(MailError):
    """The storage failed. Nothing was changed, and the call can be repeated."""


class MailBusy(MailUnreachable):
    """Another process holds the storage."""


class MailFull(MailUnreachable):
    """The disk is full. Nothing was sent or marked; repeat the call when there is space."""
