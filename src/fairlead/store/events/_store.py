"""The event store: stores each of the journal's records once, and returns them."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import insert, update

from fairlead.journal import Position
from fairlead.paths import state_folder
from fairlead.store._database import PreparedStatement, batches, insert_or_ignore, translate_errors
from fairlead.store._urls import backend_for
from fairlead.store.events import _queries as queries
from fairlead.store.events._pruner import Pruner
from fairlead.store.events._rows import clean_text, daemon_record, rows_by_table, stored_event
from fairlead.store.events._tables import positions
from fairlead.store.events._values import Counts, StoredEvent
from fairlead.store.history._fill import HistoryBatch
from fairlead.store.history._store import HistoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Table

    from fairlead.journal import DaemonRecord, Record
    from fairlead.sessions import EventText
    from fairlead.store._sqlite import SQLite
    from fairlead.store.events._values import EventKey

_INSERT_BATCH_SIZE = 1000
"""The number of rows that are built at a time. It limits the memory that a large batch takes."""


def default_url() -> str:
    """Return the URL of this user's event store, a file in the state folder."""
    return f"sqlite:///{state_folder()}/fairlead.db"


class Store(HistoryStore):
    """Stores the records of the journal, and their history. Thread-safe; writers wait for each other.

    - `add_records` stores records and their journal position in one transaction. If the process is killed, the store
      has both or neither, so reading the journal on from `position()` misses nothing.
    - A record is stored once: events and their commands by id, the daemon's records by their content. Of two records
      with the same id, the first is kept.
    - A `CommandsRecord` may be stored before its event. Queries return both together.
    - Every error is a `StoreError`. After an error nothing of the batch is stored, and it can be written again.
    """

    def __init__(self, backend: SQLite, warnings: tuple[str, ...], owner_lock: ExitStack) -> None:
        """Use a database that `open` has prepared, and the lock that it holds. `close` releases the lock."""
        super().__init__(backend, warnings)
        self._owner_lock = owner_lock

    @classmethod
    def open(cls, url: str | None = None, *, exclusive: bool = False) -> Store:
        """Open the store at a URL, by default that of `default_url`, and create or upgrade it.

        A damaged store is set aside, which `warnings` reports. While it is open as `exclusive`, opening it as
        `exclusive` again raises `StoreBusy`; an exclusive owner's statements also yield the processor often, because it
        works in the background. Raise `StoreTooNew` for a store that a newer version has written, and other
        `StoreError`s.
        """
        backend = backend_for(default_url() if url is None else url)
        with ExitStack() as undo:
            undo.callback(backend.engine.dispose)
            owner_lock = undo.enter_context(ExitStack())
            with translate_errors(backend):
                if exclusive:
                    backend.yield_often()
                    owner_lock.enter_context(backend.hold_owner_lock())
                store = cls(backend, backend.prepare(), owner_lock)
            undo.pop_all()
            return store

    def close(self) -> None:
        """Close the database, and release the lock of an exclusive owner."""
        super().close()
        self._owner_lock.close()

    def add_records(
        self,
        records: Sequence[Record],
        position: Position,
        texts: Sequence[EventText] = (),
        ends: Mapping[str, str] | None = None,
    ) -> int:
        """Store records and the journal position after them. Return how many rows are new, not counting costs.

        `texts` are the searchable texts of the records. `ends` maps the id of an event that ended a session to the
        reason.
        """
        with self._writing() as connection:
            batch = HistoryBatch(connection, records)
            count = sum(_insert(connection, some) for some in batches(records, _INSERT_BATCH_SIZE))
            batch.write(texts, ends or {})
            _save_position(connection, position)
        return count

    def position(self) -> Position | None:
        """Return the journal position up to which records are stored; `None` if nothing was stored yet."""
        with self._reading() as connection:
            return _load_position(connection)

    def sync(self) -> Position | None:
        """Make all stored records survive a power failure.

        Return the journal position after the last record, before which the journal may be deleted; `None` if nothing
        was stored yet.
        """
        with self._writing(durable=True) as connection:
            connection.execute(queries.COUNT_SYNC)
            return _load_position(connection)

    def stored_ids(self, ids: Iterable[str]) -> set[str]:
        """Return which of the event ids `ids` are stored."""
        originals = {clean_text(name): name for name in ids}
        stored: set[str] = set()
        with self._reading() as connection:
            for batch in batches(list(originals)):
                stored.update(connection.execute(queries.stored_among(batch)).scalars())
        return {originals[name] for name in stored}

    def events(
        self,
        *,
        session: str | None = None,
        event: str | None = None,
        since: float | None = None,
        until: float | None = None,
        after: EventKey | tuple[float, str] | None = None,
        newest_first: bool = True,
        limit: int = 100,
    ) -> list[StoredEvent]:
        """Return at most `limit` events of a session and of a kind, from `since` to before `until` (Unix times).

        `None` sets no condition. For the next page, pass the last event's `key` as `after`.
        """
        query = queries.filtered(session=session, event=event, since=since, until=until)
        page = queries.page(query, after=after, newest_first=newest_first, limit=limit)
        with self._reading() as connection:
            return [stored_event(row) for row in connection.execute(page)]

    def events_by_id(self, ids: Iterable[str]) -> list[StoredEvent]:
        """Return the stored events with these ids, in no particular order. Ids that are not stored are skipped."""
        found: list[StoredEvent] = []
        with self._reading() as connection:
            for batch in batches([clean_text(name) for name in ids]):
                found += [stored_event(row) for row in connection.execute(queries.with_ids(batch))]
        return found

    def daemon_records(self, limit: int = 100) -> list[DaemonRecord]:
        """Return the last `limit` records of the daemon, newest first."""
        with self._reading() as connection:
            return [daemon_record(row) for row in connection.execute(queries.latest_daemon_records(limit))]

    def counts(self) -> Counts:
        """Return how many events and sessions are stored, and from when to when."""
        with self._reading() as connection:
            totals = connection.execute(queries.TOTALS).one()
            sessions = connection.execute(queries.SESSIONS).scalar_one()
            by_event = {row.event: row.number for row in connection.execute(queries.BY_EVENT)}
        return Counts(totals.events, sessions, totals.oldest, totals.newest, by_event)

    def prune(
        self, older_than: float | None = None, max_bytes: int | None = None, *, release_space: bool = True
    ) -> int:
        """Delete the events before a Unix time, then the oldest until at most `max_bytes` are used. Return how many.

        `None` sets no such limit. All other rows from before the remaining events are deleted too. The freed space is
        released to the file system; without `release_space` it is kept for later events.
        """
        pruner, count = Pruner(self._backend, self._write_lock), 0
        with self._translate_errors():
            if older_than is not None:
                count += pruner.delete_before(older_than)
            if max_bytes is not None:
                count += pruner.shrink(max_bytes)
            if release_space:
                pruner.release_space()
        return count


def _insert(connection: Connection, records: Sequence[Record]) -> int:
    count = 0
    for table, rows in rows_by_table(records):
        count += _insertion(table).run_many(connection, rows)
    return count


@cache
def _insertion(table: Table) -> PreparedStatement:
    return PreparedStatement(insert_or_ignore(table), [column.name for column in table.columns])


def _load_position(connection: Connection) -> Position | None:
    row = connection.execute(queries.POSITION).one_or_none()
    return None if row is None else Position(row.segment, row.offset)


def _save_position(connection: Connection, position: Position) -> None:
    values = {"segment": position.segment, "offset": position.offset}
    if connection.execute(update(positions).where(positions.c.id == 1).values(values)).rowcount == 0:
        connection.execute(insert(positions).values(id=1, settled=0, **values))
