"""Applies the journal settings of the user-wide policy: what is redacted, and how long records are kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fairlead.decide import apply_journal_settings
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.store._process import StoreProcess

_INTERVAL = 2.0
"""Seconds between two reads of the file."""


class JournalSettings:
    """Reads the journal settings every two seconds, and applies them."""

    def __init__(self, errors: ErrorLog, store: StoreProcess) -> None:
        self._errors = errors
        self._store = store
        self._is_reported = False

    def read(self) -> None:
        """Read the settings, and apply them to all later records. A broken policy is reported once."""
        try:
            self._store.retain(apply_journal_settings())
            self._is_reported = False
        except FairleadError as error:
            self._report(error)

    async def run_forever(self) -> None:
        """Call `read` every two seconds, in a thread."""
        while True:
            await asyncio.sleep(_INTERVAL)
            try:
                await asyncio.to_thread(self.read)
            except Exception as error:  # it is tried again: without threads or memory, for example
                self._report(error)

    def _report(self, error: Exception) -> None:
        if not self._is_reported:
            self._errors.report(f"the user-wide policy cannot be read, so the journal leaves out secrets: {error}")
        self._is_reported = True
