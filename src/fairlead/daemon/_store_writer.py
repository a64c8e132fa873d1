"""Brings the journal into the store, in batches and off the hot road, and keeps both from growing for ever.

The journal is the truth: the store can always be fed from it again. So a store that cannot be opened or written is a
trouble to tell, and nothing that stops an answer.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from fairlead.journal import Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.journal import Journal, Record
    from fairlead.store import Store, StoredEvent

BATCH = 500
AGE = 30 * 24 * 3600.0
"""Seconds after which events are forgotten."""

STORE_BYTES = 512 * 1024 * 1024
JOURNAL_BYTES = 128 * 1024 * 1024

_PAUSES = (1.0, 5.0, 30.0, 300.0)
"""Seconds before the next attempt, after one and more failures in a row."""

_SWEEP = 600.0

OPENING = Lock()
"""Held while a database is opened: two threads that load the same packages at once may find them half loaded."""


class StoreWriter:
    """The way from the journal to the store. Called from one thread at a time, except `knows` and `status`."""

    def __init__(self, journal: Journal, trouble: Callable[[str], None]) -> None:
        self._journal = journal
        self._trouble = trouble
        self._store: Store | None = None
        self._taken = Position(0, 0)
        self._stored = 0
        self._failures = 0
        self._not_before = 0.0
        self._swept = monotonic()
        self._lock = Lock()

    def batch(self, most: int = BATCH) -> bool:
        """Bring up to so many records into the store; tell whether there may be more. Raises nothing."""
        if monotonic() < self._not_before:
            return False
        try:
            with self._lock:
                store = self._opened()
                return self._take(store, most)
        except Exception as error:  # noqa: BLE001 - the daemon answers without a store; the journal has it all
            self._fail(error)
            return False

    def knows(self, name: str) -> bool:
        """Tell whether an event is stored. Without a store nothing is known to be."""
        try:
            with self._lock:
                return name in self._opened().stored_ids((name,))
        except Exception:  # noqa: BLE001 - `batch` meets it too, and tells it
            return False

    def events(self, session: str, limit: int) -> list[StoredEvent]:
        """Give the last events of a session, the newest first; none without a store."""
        try:
            with self._lock:
                return self._opened().events(session=session, limit=limit)
        except Exception:  # noqa: BLE001 - `batch` meets it too, and tells it
            return []

    def finish(self) -> None:
        """Bring in what is left, within a moment, and close the store; one that was never opened is left alone."""
        if self._store is None:
            return
        deadline = monotonic() + 1
        while self.batch() and monotonic() < deadline:
            pass
        with self._lock:
            self._close()

    def behind(self) -> int:
        """Tell how many bytes of the journal are not in the store yet. Reads no file, for the loop asks."""
        taken = self._taken
        try:
            files = {number: self._journal.segment_path(number) for number in self._journal.segments()}
            sizes = {number: os.stat(path).st_size for number, path in files.items() if number >= taken.segment}
        except OSError:  # swept, or gone
            return 0
        return max(0, sum(sizes.values()) - (taken.offset if taken.segment in sizes else 0))

    def status(self) -> dict[str, Any]:
        """Tell how it is."""
        return {"stored": self._stored, "store_failures": self._failures}

    def _opened(self) -> Store:
        if self._store is None:
            with OPENING:
                from fairlead.store import Store

                self._store = Store.open()
            for warning in self._store.warnings:
                self._trouble(warning)
            self._taken = self._store.position() or Position(0, 0)
        return self._store

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _take(self, store: Store, most: int) -> bool:
        records: list[Record] = []
        position = self._taken
        for position, record in self._journal.read(self._taken):  # noqa: B007 - the last one counts
            records.append(record)
            if len(records) == most:
                break
        if records:
            self._stored += store.add_records(records, position)
            self._taken = position
        elif monotonic() - self._swept > _SWEEP:
            self._sweep(store)
        self._failures = 0
        return len(records) == most

    def _sweep(self, store: Store) -> None:
        """Forget what is old, first in the store, then in the journal what the store has for certain."""
        self._swept = monotonic()
        oldest = time() - AGE
        store.prune(older_than=oldest, max_bytes=STORE_BYTES)
        settled = store.sync()
        if settled is not None:
            self._journal.prune(older_than=oldest, max_bytes=JOURNAL_BYTES, keep_from=settled)

    def _fail(self, error: Exception) -> None:
        pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        self._failures += 1
        self._not_before = monotonic() + pause
        with self._lock, suppress(Exception):
            self._close()  # opened again, a damaged store is set aside, and fed from the journal
        if self._failures == 1:
            self._trouble(f"events are kept in the journal alone for now: {error}")
