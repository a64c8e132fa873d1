"""The store itself: takes the journal's records, exactly once, and gives them back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from sqlalchemy import insert, update

from fairlead import paths as places
from fairlead.journal import Position
from fairlead.store._backend import IDS_AT_ONCE, WRITES, insert_or_ignore, parts, translated, writing
from fairlead.store._health import health_of
from fairlead.store._urls import backend_for
from fairlead.store.events import _queries
from fairlead.store.events._pruner import Pruner
from fairlead.store.events._rows import rows_by_table, stored_event, text_of, turn_of
from fairlead.store.events._tables import positions
from fairlead.store.events._values import Counts, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from fairlead.journal import DaemonRecord, Record
    from fairlead.store._backend import Backend
    from fairlead.store.events._values import Health, Key

RECORDS_AT_ONCE = 1000
"""So many rows are built at a time: the memory of a batch stays that of its records."""


def default_url() -> str:
    """Give the URL of this user's store."""
    return f"sqlite:///{places.state_folder()}/fairlead.db"


class Store:
    """Where events are kept. Any thread may call it; the writers among them take turns.

    - What `take` has been given is stored with its position in one transaction. Killed at any moment, the store has
      both or neither, so to go on at `position()` misses nothing.
    - A record that was taken is never taken again: events and their ends by id, turns by all that they say. Of two
      with one id the first counts.
    - How an event's commands ended may come before the event; it is kept, and joined.
    - Every error is a `StoreError`. After one nothing of the batch is stored, and it may be taken again.
    """

    warnings: Final[tuple[str, ...]]
    """What a person must be told about the opening; empty if all was well."""

    def __init__(self, backend: Backend, warnings: tuple[str, ...]) -> None:
        """Hold a database that was made ready; `open` does that."""
        self._backend = backend
        self._writers = threading.Lock()
        self.warnings = warnings

    @classmethod
    def open(cls, url: str | None = None) -> Store:
        """Open the store at a URL, and bring it to this version. What is damaged is set aside, and told in `warnings`.

        Raises `StoreTooNew` for one that a newer version has written, and other `StoreError`s.
        """
        backend = backend_for(default_url() if url is None else url)
        try:
            with translated(backend):
                return cls(backend, backend.prepare())
        except BaseException:
            backend.engine.dispose()
            raise

    def close(self) -> None:
        """Let go of the database. What was taken is kept."""
        self._backend.engine.dispose()

    def take(self, records: Sequence[Record], position: Position) -> int:
        """Store records, and how far the journal was read with them. Give how many of them were new."""
        with self._writers, translated(self._backend), writing(self._backend) as connection:
            count = sum(self._insert(connection, part) for part in parts(records, RECORDS_AT_ONCE))
            _move_to(connection, position)
        return count

    def position(self) -> Position | None:
        """Say how far the journal was taken; None before the first time."""
        with translated(self._backend), self._backend.engine.connect() as connection:
            return _position(connection)

    def settle(self) -> Position | None:
        """Make all that was taken outlive a power failure, and say how far it reaches: the journal before may go."""
        with self._writers, translated(self._backend), self._backend.engine.connect() as connection:
            connection.execution_options(**{WRITES: True})
            with self._backend.settling(connection), connection.begin():
                connection.execute(_queries.SETTLED)
                return _position(connection)

    def known(self, ids: Iterable[str]) -> set[str]:
        """Say which of these are ids of stored events."""
        named = {text_of(name): name for name in ids}
        with translated(self._backend), self._backend.engine.connect() as connection:
            found: set[str] = set()
            for part in parts(list(named), IDS_AT_ONCE):
                found.update(connection.execute(_queries.stored_among(part)).scalars())
        return {named[name] for name in found}

    def events(  # noqa: PLR0913 - each narrows it by one thing, and has a name
        self,
        *,
        session: str | None = None,
        event: str | None = None,
        since: float | None = None,
        until: float | None = None,
        after: Key | tuple[float, str] | None = None,
        newest_first: bool = True,
        limit: int = 100,
    ) -> list[StoredEvent]:
        """Give stored events, from `since` until before `until`; to turn the page, give the last one's `key`."""
        found = _queries.chosen(session=session, event=event, since=since, until=until)
        wanted = _queries.page(found, after=after, newest_first=newest_first, limit=limit)
        with translated(self._backend), self._backend.engine.connect() as connection:
            return [stored_event(row) for row in connection.execute(wanted)]

    def turns(self, limit: int = 100) -> list[DaemonRecord]:
        """Give the daemon's turns, the newest first."""
        with translated(self._backend), self._backend.engine.connect() as connection:
            return [turn_of(row) for row in connection.execute(_queries.latest_turns(limit))]

    def counts(self) -> Counts:
        """Say how much is kept."""
        with translated(self._backend), self._backend.engine.connect() as connection:
            totals = connection.execute(_queries.TOTALS).one()
            sessions = connection.execute(_queries.SESSIONS).scalar_one()
            by_event = {row.event: row.number for row in connection.execute(_queries.BY_EVENT)}
        return Counts(totals.events, sessions, totals.oldest, totals.newest, by_event)

    def retain(self, older_than: float | None = None, at_most_bytes: int | None = None) -> int:
        """Delete the events before a Unix time, then the oldest until the rest fits. Give how many events went."""
        broom, count = Pruner(self._backend, self._writers), 0
        with translated(self._backend):
            if older_than is not None:
                count += broom.forget_before(older_than)
            if at_most_bytes is not None:
                count += broom.shrink(at_most_bytes)
            broom.give_back()
        return count

    def check(self) -> Health:
        """Look at every page, which takes its time, and say how the store is."""
        with translated(self._backend), self._backend.engine.connect() as connection:
            return health_of(self._backend, connection)

    def _insert(self, connection: Connection, records: Sequence[Record]) -> int:
        count = 0
        for table, rows in rows_by_table(records):
            count += connection.execute(insert_or_ignore(connection.dialect.name, table), rows).rowcount
        return count


def _position(connection: Connection) -> Position | None:
    row = connection.execute(_queries.POSITION).one_or_none()
    return None if row is None else Position(row.segment, row.offset)


def _move_to(connection: Connection, position: Position) -> None:
    place = {"segment": position.segment, "offset": position.offset}
    if connection.execute(update(positions).where(positions.c.id == 1).values(place)).rowcount == 0:
        connection.execute(insert(positions).values(id=1, settled=0, **place))
