"""Errors of the journal and the spool."""

from __future__ import annotations

from fairlead.errors import FairleadError


class JournalError(FairleadError):
    """The journal or the spool cannot be read or written. No part of a record was written."""


class SpoolFull(JournalError):
    """The spool has reached its limit, so it accepts no further records."""
