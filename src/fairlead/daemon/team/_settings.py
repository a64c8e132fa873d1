"""The section `team` of the user-wide policy, read again every few seconds."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError
from fairlead.policy import Team as TeamSection
from fairlead.policy import load_user_wide

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog

_INTERVAL = 2.0
"""Seconds between two reads of the file."""


class CurrentSettings:
    """The current settings of the team. Thread-safe: a value is replaced as a whole."""

    def __init__(self, errors: ErrorLog) -> None:
        self._errors = errors
        self._settings = TeamSection()
        self._is_reported = False
        self._next = 0.0

    def read(self) -> TeamSection:
        """Return the settings, at most two seconds old; the previous ones if the file is broken."""
        if monotonic() >= self._next:
            self._next = monotonic() + _INTERVAL
            try:
                self._settings = load_user_wide().team
                self._is_reported = False
            except FairleadError as error:
                if not self._is_reported:
                    self._errors.report(f"the user-wide policy cannot be read, so the team's settings stay: {error}")
                self._is_reported = True
        return self._settings
