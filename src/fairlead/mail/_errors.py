"""What the mail can raise.

MailError                 a message was not sent, shown or found
├── BadMessage            a draft that cannot be sent as it is
│   └── TooLarge          more than a message may hold, or more recipients
├── BadName               a name that cannot be had
├── NoSuchAgent           nobody has that name; the nearest ones are told
├── NobodyThere           the address is right, but nobody would get it
├── NoSuchMessage         no message has that id
├── NotYours              a message of others
└── MailUnreachable       what is kept cannot be reached; nothing was changed
    ├── MailBusy          somebody else holds it
    └── MailFull          there is no room left
"""

from __future__ import annotations

from fairlead.errors import FairleadError


class MailError(FairleadError):
    """A message was not sent, shown or found. Nothing was changed."""


class BadMessage(MailError, ValueError):
    """A draft that cannot be sent as it is."""


class TooLarge(BadMessage):
    """More than a message may hold, or more recipients than it may have."""


class BadName(MailError, ValueError):
    """A name that cannot be had: taken, reserved, or not one that can be typed as an address."""


class NoSuchAgent(MailError, LookupError):
    """Nobody has that name."""

    def __init__(self, message: str, nearest: tuple[str, ...] = ()) -> None:
        """Say which name, and which ones are near."""
        super().__init__(message)
        self.nearest = nearest


class NobodyThere(MailError, LookupError):
    """The address is right, but nobody would get it."""


class NoSuchMessage(MailError, LookupError):
    """No message has that id. It may have been too old to be kept."""


class NotYours(MailError):
    """A message that somebody else wrote to somebody else."""


class MailUnreachable(MailError):
    """What is kept cannot be reached. Nothing was changed; it may be tried again."""


class MailBusy(MailUnreachable):
    """Somebody else holds what is kept."""


class MailFull(MailUnreachable):
    """There is no room left. Nothing was sent or marked; it may be tried again when there is room."""
