"""Writes the journal to the store in batches, and limits the sizes of both.

The store can be filled from the journal again. So errors of the store are only reported, and never delay the reply to
an event.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import monotonic, time
from typing import TYPE_CHECKING

from fairlead.daemon.store._event_texts import ExtractedTexts
from fairlead.daemon.store._timeline import agent_type_of, timeline_entry
from fairlead.durations import DAY
from fairlead.errors import FairleadError
from fairlead.journal import Position
from fairlead.sessions import AbsenceSummary, CopyBatch, EventsToCopyCount, HistoryPage, SessionHistory, subagents_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.journal import Journal, Record
    from fairlead.sessions import HistoryQuery
    from fairlead.store import Store, StoredEvent

BATCH_SIZE = 500
"""The maximum number of records in a transaction.

More would take less time, but delay a daemon on the same processor.
"""
_RECORDS_PER_YIELD = 4
MAX_AGE = 30 * DAY
"""The default number of seconds for which events are kept."""
MAX_STORE_BYTES = 512 * 1024 * 1024
"""The maximum size of the database and its log in bytes."""
MAX_JOURNAL_BYTES = 128 * 1024 * 1024

_RETRY_DELAYS = (1.0, 5.0, 30.0, 300.0)
"""Seconds before the next attempt to write, by the number of failures in a row."""
_PRUNE_INTERVAL = 600.0
"""Seconds between two deletions of old events."""
_CHECK_SHARE = 32
"""The sizes of store and journal are checked whenever the journal has grown by 1/32 of its maximum size."""
_PRUNE_TO_SHARE = 0.8
"""The share of their maximum sizes to which store and journal are reduced.

The remaining part is for the log of the database, the current segment of the journal, and the events until the next
check.
"""


class StoreWriter:
    """Writes the journal to the store, which it opens when it is first used, and answers queries.

    Belongs to one thread. A query returns an empty result if the store cannot be read.
    """

    def __init__(
        self,
        journal: Journal,
        report: Callable[[str], None],
        *,
        max_store: int = MAX_STORE_BYTES,
        max_journal: int = MAX_JOURNAL_BYTES,
    ) -> None:
        """Use a journal, and `report` for errors. `max_store` and `max_journal` are the maximum sizes in bytes."""
        self._max_store = max_store
        self._max_journal = max_journal
        self._since_check = max_journal  # the last process may have left too much
        self._journal = journal
        self._report = report
        self._store: Store | None = None
        self.position = Position(0, 0)
        """The position up to which the journal is stored."""
        self.stored = 0
        """How many records were new to the store."""
        self.failures = 0
        """How many attempts to write in a row have failed."""
        self._not_before = 0.0
        self._last_prune = monotonic()
        self._max_age = MAX_AGE

    def retain(self, seconds: float) -> None:
        """Set for how many seconds events are kept. Older ones are deleted once all of the journal is stored."""
        if seconds != self._max_age:
            self._max_age, self._last_prune = seconds, float("-inf")

    def write_batch(self, size: int = BATCH_SIZE) -> bool:
        """Write up to `size` records to the store, and delete old events when it is time.

        Return whether there may be more. Errors are not raised, but reported; for some time after an error, write
        nothing and return `False`.
        """
        if monotonic() < self._not_before:
            return False
        try:
            return self._write(self._opened(), size)
        except Exception as error:  # the daemon works without a store; the journal has all events
            self._handle_failure(error)
            return False

    def has_event(self, event_id: str) -> bool:
        """Return whether an event is stored; `False` if the store cannot be read."""
        try:
            return event_id in self._opened().stored_ids((event_id,))
        except Exception:  # `write_batch` has the same error, and reports it
            return False

    def events(self, session: str, limit: int) -> list[StoredEvent]:
        """Return the last `limit` events of a session, the newest first; none if the store cannot be read."""
        try:
            return self._opened().events(session=session, limit=limit)
        except Exception:  # `write_batch` has the same error, and reports it
            return []

    def find_history(self, query: HistoryQuery) -> HistoryPage:
        """Return a page of the history; an empty one if the store cannot be read."""
        try:
            return self._opened().find_history(query)
        except Exception as error:
            self._report_failure(error)
            return HistoryPage(since=query.since)

    def history_of(self, session: str, limit: int, before: str) -> list[SessionHistory]:
        """Return the session whose id is or starts with `session`; two of them if several do, none if none does.

        A single session includes its last `limit` events; for earlier events, pass its `next` as `before`.
        """
        try:
            store = self._opened()
            sessions = store.history_of(session)
            if len(sessions) != 1:
                return [SessionHistory(session=match) for match in sessions]
            at, _, name = before.partition(",")
            after = (float(at), name) if before else None
            stored = store.events(session=sessions[0].id, limit=limit + 1, after=after)
            more, page = len(stored) > limit, stored[:limit]
            entries = [(timeline_entry(one), agent_type_of(one.event)) for one in reversed(page)]
            return [
                SessionHistory(
                    session=sessions[0],
                    subagents=subagents_of(entries),
                    timeline=[entry for entry, _ in entries],
                    next=f"{page[-1].event.at!r},{page[-1].event.id}" if more else "",
                )
            ]
        except Exception as error:
            self._report_failure(error)
            return []

    def summarize(self, since: float) -> AbsenceSummary:
        """Return a summary of the events since a Unix time; an empty one if the store cannot be read."""
        try:
            return self._opened().summarize(since, time())
        except Exception as error:
            self._report_failure(error)
            return AbsenceSummary(since=since, now=time())

    def events_to_copy(self, after: Position, *, blocked_only: bool, limit: int) -> CopyBatch:
        """Return the next events to copy after a position, for the team's history; none if the store cannot be read."""
        try:
            from fairlead.daemon.store._events_to_copy import find_events_to_copy

            store = self._opened()
            return find_events_to_copy(
                store, self._journal, after, self.position, blocked_only=blocked_only, limit=limit
            )
        except Exception as error:
            self._report_failure(error)
            return CopyBatch(position=after)

    def count_events_to_copy(self, after: Position, *, blocked_only: bool, keep_bytes: int) -> EventsToCopyCount:
        """Return the number of events to copy after a position; 0 if the journal cannot be read."""
        try:
            from fairlead.daemon.store._events_to_copy import count_events_to_copy

            return count_events_to_copy(self._journal, after, blocked_only=blocked_only, keep_bytes=keep_bytes)
        except Exception as error:
            self._report_failure(error)
            return EventsToCopyCount(0, after)

    def _report_failure(self, error: Exception) -> None:
        """Report an error of a query, except a `FairleadError`: `write_batch` reports errors of the database."""
        if not isinstance(error, FairleadError):
            self._report(f"the history cannot be read: {error!r}")

    def close(self) -> None:
        """Write records for at most a second, and close the store. Do nothing if the store is not open."""
        if self._store is None:
            return
        deadline = monotonic() + 1
        while self.write_batch() and monotonic() < deadline:
            pass
        self._close()

    def _opened(self) -> Store:
        if self._store is None:
            from fairlead.store import Store

            self._store = Store.open(exclusive=True)
            for warning in self._store.warnings:
                self._report(warning)
            self.position = self._store.position() or Position(0, 0)
        return self._store

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _write(self, store: Store, size: int) -> bool:
        records: list[Record] = []
        position = self.position
        for position, record in self._journal.read(self.position):  # noqa: B007 - the last position is kept
            records.append(record)
            if len(records) % _RECORDS_PER_YIELD == 0:
                _yield_processor()
            if len(records) == size:
                break
        if records:
            extracted = ExtractedTexts(records)
            self.stored += store.add_records(records, position, extracted.texts, extracted.ends)
            self._since_check += _distance(self.position, position)
            self.position = position
        if len(records) < size and monotonic() - self._last_prune >= _PRUNE_INTERVAL:
            self._prune(store)
        elif self._since_check > self._max_journal // _CHECK_SHARE:
            self._shrink(store)
        self.failures = 0
        return len(records) == size

    def _prune(self, store: Store) -> None:
        """Delete old events in the store, and old segments of the journal whose records the store has durably."""
        self._last_prune = monotonic()
        oldest = time() - self._max_age
        store.prune(older_than=oldest, max_bytes=int(self._max_store * _PRUNE_TO_SHARE))
        self._prune_journal(store, oldest)

    def _shrink(self, store: Store) -> None:
        """Delete the oldest events if the store or the journal is too large. The store reuses their space.

        Unlike `_prune`, this is also done while many events arrive.
        """
        self._since_check = 0
        store.prune(max_bytes=int(self._max_store * _PRUNE_TO_SHARE), release_space=False)
        if self._journal.size_after(Position(0, 0)) > self._max_journal * _PRUNE_TO_SHARE:
            self._prune_journal(store, oldest=0.0)

    def _prune_journal(self, store: Store, oldest: float) -> None:
        durable = store.sync()
        if durable is not None:
            size = int(self._max_journal * _PRUNE_TO_SHARE)
            self._journal.prune(older_than=oldest, max_bytes=size, keep_from=durable)

    def _handle_failure(self, error: Exception) -> None:
        delay = _RETRY_DELAYS[min(self.failures, len(_RETRY_DELAYS) - 1)]
        self.failures += 1
        self._not_before = monotonic() + delay
        with suppress(Exception):
            self._close()  # reopening sets a damaged database aside, and fills a new one from the journal
        if self.failures == 1:
            self._report(f"events are kept in the journal only for now: {error}")


def _yield_processor() -> None:
    """Yield the processor to a daemon that has an event to answer, so that it need not wait for this time slice."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


def _distance(before: Position, after: Position) -> int:
    """Return the approximate number of bytes of the journal between two positions."""
    return after.offset - before.offset if before.segment == after.segment else after.offset
