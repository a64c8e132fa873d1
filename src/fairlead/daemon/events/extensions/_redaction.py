"""Keeps what the journal leaves out, and for how long it is kept, in step with the user-wide policy."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension
from fairlead.decide import apply_journal_settings
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.store._process import StoreProcess
    from fairlead.events import Event
    from fairlead.journal import Record

_INTERVAL = 2.0
"""Seconds between two looks at the file."""


def create(daemon: Daemon) -> JournalSettings:
    """Return the extension."""
    return JournalSettings(daemon.errors, daemon.store)


class JournalSettings(EventExtension):
    """Reads the settings now and then, between two events."""

    def __init__(self, errors: ErrorLog, store: StoreProcess) -> None:
        self._errors = errors
        self._store = store
        self._is_reported = False
        self._next = 0.0
        self._read()

    def after_record(self, record: Record, event: Event | None) -> None:
        """Read the settings again if the last time is long ago."""
        if monotonic() > self._next:
            self._read()

    def _read(self) -> None:
        self._next = monotonic() + _INTERVAL
        try:
            self._store.retain(apply_journal_settings())
            self._is_reported = False
        except FairleadError as error:
            if not self._is_reported:
                self._errors.report(f"the user-wide policy cannot be read, so the journal leaves out secrets: {error}")
            self._is_reported = True
