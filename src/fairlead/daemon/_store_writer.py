"""Writes the journal to the store, in batches, and keeps both from growing without bound.

The journal is the source of truth: the store can always be filled from it again. So a store that cannot be opened or
written is reported, and never keeps an event from its answer.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from fairlead.journal import Position

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.journal import Journal, Record
    from fairlead.store import Store, StoredEvent

BATCH_SIZE = 500
MAX_AGE = 30 * 24 * 3600.0
"""Seconds after which events are deleted."""
MAX_STORE_BYTES = 512 * 1024 * 1024
MAX_JOURNAL_BYTES = 128 * 1024 * 1024

_RETRY_DELAYS = (1.0, 5.0, 30.0, 300.0)
"""Seconds before the next attempt, after one and more failures in a row."""
_PRUNE_INTERVAL = 600.0

OPENING = Lock()
"""Held while a database is opened: two threads that import the same packages at once may find them half loaded."""


class StoreWriter:
    """The way from the journal to the store. Called from one thread at a time, except `has_event` and `status`."""

    def __init__(self, journal: Journal, errors: ErrorLog) -> None:
        self._journal = journal
        self._errors = errors
        self._store: Store | None = None
        self._position = Position(0, 0)
        self._stored = 0
        self._failures = 0
        self._not_before = 0.0
        self._last_prune = monotonic()
        self._lock = Lock()

    def write_batch(self, size: int = BATCH_SIZE) -> bool:
        """Write up to `size` records to the store. Returns whether there may be more. Raises nothing."""
        if monotonic() < self._not_before:
            return False
        try:
            with self._lock:
                store = self._opened()
                return self._write(store, size)
        except Exception as error:  # noqa: BLE001 - the daemon answers without a store; the journal has everything
            self._handle_failure(error)
            return False

    def has_event(self, event_id: str) -> bool:
        """Return whether an event is stored; False without a store."""
        try:
            with self._lock:
                return event_id in self._opened().stored_ids((event_id,))
        except Exception:  # noqa: BLE001 - `write_batch` runs into it too, and reports it
            return False

    def events(self, session: str, limit: int) -> list[StoredEvent]:
        """Return the last events of a session, the newest first; none without a store."""
        try:
            with self._lock:
                return self._opened().events(session=session, limit=limit)
        except Exception:  # noqa: BLE001 - `write_batch` runs into it too, and reports it
            return []

    def close(self) -> None:
        """Write what is left, within a second, and close the store; one that was never opened stays closed."""
        if self._store is None:
            return
        deadline = monotonic() + 1
        while self.write_batch() and monotonic() < deadline:
            pass
        with self._lock:
            self._close()

    def bytes_behind(self) -> int:
        """Return how many bytes of the journal are not in the store yet. Reads no file: the event loop asks."""
        position = self._position
        try:
            files = {number: self._journal.segment_path(number) for number in self._journal.segments()}
            sizes = {number: os.stat(path).st_size for number, path in files.items() if number >= position.segment}
        except OSError:  # deleted meanwhile
            return 0
        return max(0, sum(sizes.values()) - (position.offset if position.segment in sizes else 0))

    def status(self) -> dict[str, Any]:
        """Return its part of the daemon's status."""
        return {"stored": self._stored, "store_failures": self._failures}

    def _opened(self) -> Store:
        if self._store is None:
            with OPENING:
                from fairlead.store import Store

                self._store = Store.open()
            for warning in self._store.warnings:
                self._errors.report(warning)
            self._position = self._store.position() or Position(0, 0)
        return self._store

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _write(self, store: Store, size: int) -> bool:
        records: list[Record] = []
        position = self._position
        for position, record in self._journal.read(self._position):  # noqa: B007 - the last position is kept
            records.append(record)
            if len(records) == size:
                break
        if records:
            self._stored += store.add_records(records, position)
            self._position = position
        elif monotonic() - self._last_prune > _PRUNE_INTERVAL:
            self._prune(store)
        self._failures = 0
        return len(records) == size

    def _prune(self, store: Store) -> None:
        """Delete what is old: first in the store, then in the journal what the store has durably."""
        self._last_prune = monotonic()
        oldest = time() - MAX_AGE
        store.prune(older_than=oldest, max_bytes=MAX_STORE_BYTES)
        settled = store.sync()
        if settled is not None:
            self._journal.prune(older_than=oldest, max_bytes=MAX_JOURNAL_BYTES, keep_from=settled)

    def _handle_failure(self, error: Exception) -> None:
        delay = _RETRY_DELAYS[min(self._failures, len(_RETRY_DELAYS) - 1)]
        self._failures += 1
        self._not_before = monotonic() + delay
        with self._lock, suppress(Exception):
            self._close()  # reopening sets a damaged database aside, and fills a new one from the journal
        if self._failures == 1:
            self._errors.report(f"events are kept in the journal only for now: {error}")
