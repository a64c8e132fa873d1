"""Applies the section `journal` of the user-wide policy to what this process records."""

from __future__ import annotations

from fairlead.journal import set_redaction
from fairlead.policy import load_user_wide

_DAY = 24 * 3600.0


def apply_journal_settings() -> float:
    """Set which data is left out of records, and return for how many seconds the records are kept.

    Raises `PolicyError` if the file is broken and has no last good version. The default then stays.
    """
    settings = load_user_wide().journal
    set_redaction(settings.payloads, settings.redact)
    return settings.keep_days * _DAY
