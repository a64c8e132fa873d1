"""Writes records to the journal, each of them once, and passes them on to the extensions."""

from __future__ import annotations

from collections import deque
from threading import Lock
from time import sleep
from typing import TYPE_CHECKING

from fairlead.daemon.store._messages import StoreUnavailable
from fairlead.errors import FairleadError
from fairlead.journal import (
    SEGMENT_BYTES,
    CommandsRecord,
    EventRecord,
    has_spooled,
    read_spool,
    record_key,
    remove_spooled,
    spool_folder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._metrics import Metrics
    from fairlead.daemon.events._extension import ExtensionRegistry
    from fairlead.daemon.store._process import StoreProcess
    from fairlead.events import Event
    from fairlead.journal import Journal, Position, Record

_MAX_RECENT = 20_000
"""The maximum number of ids that are remembered.

A launcher gives up after two seconds, so an event that is sent twice comes again soon."""
_FIRST_RECENT = 1000
"""The number of ids that are loaded before the first event: of requests that a killed daemon left without a reply."""
_NONE: frozenset[str] = frozenset()
_RECORDS_AT_ONCE = 20
_PAUSE = 0.002
"""Seconds to pause after `_RECORDS_AT_ONCE` records of the spool, so that the event loop can run."""


MAX_BACKLOG = 16 * 1024 * 1024
"""Bytes of the journal that the store may not have read yet. They cannot be deleted, so beyond this limit events are
recorded without their payloads: on a disk or machine that is too slow, the journal would grow without bound."""


class EventRecorder:
    """Writes all events to the journal, whether they come from launchers, from waits or from the spool."""

    def __init__(
        self,
        journal: Journal,
        extensions: ExtensionRegistry,
        metrics: Metrics,
        errors: ErrorLog,
        store: StoreProcess,
    ) -> None:
        self._journal = journal
        self._store = store
        self._is_brief = False
        """Whether payloads are left out, because the store is too far behind."""
        self._extensions = extensions
        self._metrics = metrics
        self._errors = errors
        self._recent = _RecentIds()
        self._is_loaded = False
        """Whether all ids are loaded that the spool may repeat, and not only those that a launcher may repeat."""
        self._pending: list[tuple[EventRecord, Event | None]] | None = None
        """Records of the event loop that `flush` writes; `None` while none are collected."""
        self._written: list[tuple[EventRecord, Event | None]] = []
        """Records that `flush` has written."""
        self._lock = Lock()

    def open(self) -> None:
        """Remember the last ids of the journal: an earlier daemon may have recorded an event and not answered it."""
        self._recent.load(self._journal.recent_keys(_FIRST_RECENT), _FIRST_RECENT)

    def _load_all(self) -> None:
        """Remember more ids: the spool may still contain events that an earlier daemon has recorded."""
        recent = _RecentIds()
        recent.load(self._journal.recent_keys(_MAX_RECENT), _MAX_RECENT)
        with self._lock:
            recent.add(self._recent)  # the ids that were recorded meanwhile
            self._recent, self._is_loaded = recent, True

    def write(self, record: Record, event: Event | None = None) -> bool:
        """Write a record unless the journal has it already, and pass it on. Returns whether it was written.

        If another process has answered its event, the extensions undo what they have marked at it. Raises
        `FairleadError` or `OSError` if it cannot be written.
        """
        name = record_key(record)
        with self._lock:
            is_duplicate = name in self._recent
            if not is_duplicate:
                end = self._journal.append(record, brief=self._is_brief)
                self._recent.add((name,) if name else ())
        if isinstance(record, EventRecord) and (is_duplicate or record.route == "cold"):
            self._extensions.undo(record.id)  # another process has answered the event
        if is_duplicate:
            self._metrics.duplicates += 1
            return False
        self._watch_backlog(end)
        if isinstance(record, EventRecord):
            for after_record in self._extensions.observers(record.event):
                after_record(record, event)
        elif isinstance(record, CommandsRecord):
            self._extensions.after_commands(record)
        return True

    def _watch_backlog(self, end: Position) -> None:
        stored = self._store.position
        behind = (end.segment - stored.segment) * SEGMENT_BYTES + end.offset - stored.offset if stored.segment else 0
        if self._is_brief and behind < MAX_BACKLOG // 2:
            self._is_brief = False
            self._errors.record("the database has caught up: payloads are recorded again")
        elif not self._is_brief and behind > MAX_BACKLOG:
            self._is_brief = True
            size = MAX_BACKLOG // 1024**2
            self._errors.report(f"the database is {size} MB behind: until it has caught up, no payloads are recorded")

    # -- events that arrived together ------------------------------------------------------------------

    def collect(self) -> None:
        """Collect the records of `write_later` from now on, until `flush`. For the event loop."""
        self._pending = []

    def write_later(self, record: EventRecord, event: Event | None) -> None:
        """Write the record of an event that is handled in the event loop: at `flush` after `collect`, else at once."""
        pending = self._pending
        with self._lock:  # the spool, in a thread, may have the same event
            is_new = pending is not None and self._recent.add_new(record.id)
        if pending is not None and is_new:
            pending.append((record, event))
        else:
            self.write(record, event)

    def flush(self) -> frozenset[str]:
        """Write the collected records. Return the ids of the events that could not be written, which are undone."""
        pending, self._pending = self._pending or [], None
        if not pending:
            return _NONE
        try:
            end = self._journal.append_all([record for record, _ in pending], brief=self._is_brief)
        except (FairleadError, OSError):
            for record, _ in pending:
                with self._lock:
                    self._recent.discard(record.id)
                self._extensions.undo(record.id)
            return frozenset(record.id for record, _ in pending)
        self._watch_backlog(end)
        self._written += pending
        return _NONE

    def pass_on(self) -> None:
        """Pass the records of `flush` on to the extensions, after the replies and before any later event."""
        written, self._written = self._written, []
        for record, event in written:
            try:
                for after_record in self._extensions.observers(record.event):
                    after_record(record, event)
            except Exception as error:  # the other records must be passed on, too
                self._errors.report(f"{record.event}: an extension failed after it was recorded: {error}")

    # -- the spool -------------------------------------------------------------------------------------

    @staticmethod
    def is_spooled() -> bool:
        """Return whether there are records in the spool."""
        return has_spooled(spool_folder())

    def take_spool(self, is_stored: Callable[[str], bool]) -> None:
        """Record the events that reached no daemon, in their order. Raises nothing: files that cannot be recorded stay.

        `is_stored` returns whether the store has an event whose id is no longer remembered here.
        """
        try:
            if not self._is_loaded:
                self._load_all()
            for number, (name, record) in enumerate(read_spool(spool_folder()), 1):
                if number % _RECORDS_AT_ONCE == 0:
                    sleep(_PAUSE)
                is_known = (
                    isinstance(record, EventRecord)
                    and self._recent.may_have_dropped(record.id)
                    and is_stored(record.id)
                )
                if not is_known and self.write(record):
                    self._metrics.spooled += 1
                remove_spooled(spool_folder(), name)
        except StoreUnavailable:
            return  # it is started in a moment, and the spool is read again
        except Exception as error:  # the daemon goes on; the records stay where they are
            self._errors.report(f"the spool cannot be read: {error}")


class _RecentIds:
    """The ids of the last records."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._order: deque[str] = deque()
        self._newest_dropped = ""
        """The newest id that was forgotten. A launcher's id begins with the time, so older ids compare as less."""

    def load(self, ids: list[str], limit: int) -> None:
        """Remember the last ids of the journal. If there are `limit` of them, there may be earlier ones."""
        self.add(ids)
        if len(ids) >= limit:
            self._newest_dropped = ids[0]

    def may_have_dropped(self, name: str) -> bool:
        """Return whether an id is not remembered, but may have been before it was dropped."""
        return name <= self._newest_dropped and name not in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def discard(self, name: str) -> None:
        """Forget an id that was not recorded after all."""
        self._ids.discard(name)

    def add(self, ids: Iterable[str]) -> None:
        """Remember ids."""
        for name in ids:
            self.add_new(name)

    def add_new(self, name: str) -> bool:
        """Remember an id; if there are too many, forget the oldest. Return `False` if it was remembered before."""
        if name in self._ids:
            return False
        self._ids.add(name)
        self._order.append(name)
        if len(self._order) > _MAX_RECENT:
            oldest = self._order.popleft()
            self._ids.discard(oldest)
            self._newest_dropped = max(self._newest_dropped, oldest)
        return True
