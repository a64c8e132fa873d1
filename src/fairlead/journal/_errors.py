"""What can go wrong where things are written down, in words for the person who has to mend it."""

from __future__ import annotations

from fairlead.errors import FairleadError


class JournalError(FairleadError):
    """A record could not be written; nothing of it is left behind."""


class SpoolFull(JournalError):
    """So many events wait for a daemon that no more are kept."""
