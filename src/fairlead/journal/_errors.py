"""Errors of the journal and the spool."""

from __future__ import annotations

from fairlead.errors import FairleadError


class JournalError(FairleadError):
    """A record could not be written, not even in part."""


class SpoolFull(JournalError):
    """The spool has reached its limit and accepts no further events."""
