"""Writes records to the journal, each of them once, and passes them on to the extensions."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from fairlead.journal import EventRecord, count_spooled, read_spool, record_key, remove_spooled, spool_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._metrics import Metrics
    from fairlead.daemon.events._extension import ExtensionRegistry
    from fairlead.events import Event
    from fairlead.journal import Journal, Record

_MAX_RECENT = 20_000
"""Ids that are remembered. A launcher gives up after two seconds, so what comes twice comes soon."""


class EventRecorder:
    """The one writer of events: from replies, from waits, and from the spool."""

    def __init__(self, journal: Journal, extensions: ExtensionRegistry, metrics: Metrics, errors: ErrorLog) -> None:
        self._journal = journal
        self._extensions = extensions
        self._metrics = metrics
        self._errors = errors
        self._recent = _RecentIds()
        self._lock = Lock()

    def open(self) -> None:
        """Remember the last ids of the journal: what an earlier daemon has recorded may still be in the spool."""
        self._recent.load(self._journal.recent_keys(_MAX_RECENT))

    def write(self, record: Record, event: Event | None = None) -> bool:
        """Write a record unless the journal has it already. Returns whether it was written.

        Raises `FairleadError` or `OSError` if it cannot be written.
        """
        name = record_key(record)
        with self._lock:
            is_duplicate = name in self._recent
            if not is_duplicate:
                self._journal.append(record)
                self._recent.add((name,) if name else ())
        if isinstance(record, EventRecord) and (is_duplicate or record.route == "cold"):
            self._extensions.undo(record.id)  # another process has answered the event
        if is_duplicate:
            self._metrics.doubles += 1
            return False
        self._extensions.after_record(record, event)
        return True

    @staticmethod
    def is_spooled() -> bool:
        """Return whether there are records in the spool."""
        return count_spooled(spool_folder()) > 0

    def take_spool(self, is_stored: Callable[[str], bool]) -> None:
        """Record the events that reached no daemon, in their order. Raises nothing: what cannot be taken stays.

        `is_stored` tells whether the store has an event whose id is no longer remembered here.
        """
        try:
            for name, record in read_spool(spool_folder()):
                is_known = (
                    isinstance(record, EventRecord)
                    and self._recent.may_have_dropped(record.id)
                    and is_stored(record.id)
                )
                if not is_known and self.write(record):
                    self._metrics.spooled += 1
                remove_spooled(spool_folder(), name)
        except Exception as error:  # noqa: BLE001 - the daemon goes on; the records stay where they are
            self._errors.report(f"the spool cannot be read: {error}")


class _RecentIds:
    """The ids of the last records."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._order: deque[str] = deque()
        self._newest_dropped = ""
        """A launcher's id begins with the time, so that older ones compare as less."""

    def load(self, ids: list[str]) -> None:
        """Remember what the journal ends with."""
        self.add(ids)
        if len(ids) >= _MAX_RECENT:
            self._newest_dropped = ids[0]

    def may_have_dropped(self, name: str) -> bool:
        """Return whether an id may have been remembered once and was dropped since."""
        return name <= self._newest_dropped and name not in self._ids

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def add(self, ids: Iterable[str]) -> None:
        """Remember ids, and drop the oldest ones if there are too many."""
        for name in ids:
            if name not in self._ids:
                self._ids.add(name)
                self._order.append(name)
        while len(self._order) > _MAX_RECENT:
            oldest = self._order.popleft()
            self._ids.discard(oldest)
            self._newest_dropped = max(self._newest_dropped, oldest)
