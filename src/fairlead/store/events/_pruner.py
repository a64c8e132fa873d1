"""Deletes the oldest rows of the event store, a few at a time, so that no writer waits long for the lock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select

from fairlead.store._database import write_transaction
from fairlead.store.events._tables import commands, daemon_records, events
from fairlead.store.history._store import delete_some as delete_history

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Select, Table

    from fairlead.store._sqlite import SQLite

_BATCH_SIZE = 200
"""The number of rows that are deleted in one transaction."""
_MAX_PAUSE = 0.05
"""The maximum number of seconds to pause after a step."""

_OLDEST_EVENTS = select(events.c.id).order_by(events.c.at, events.c.id).limit(_BATCH_SIZE)
_ORPHANED_COMMANDS = (
    select(commands.c.id)
    .join_from(commands, events, commands.c.id == events.c.id, isouter=True)
    .where(events.c.id.is_(None))
    .order_by(commands.c.at)
    .limit(_BATCH_SIZE)
)
_OLDEST_DAEMON_RECORDS = select(daemon_records.c.id).order_by(daemon_records.c.at).limit(_BATCH_SIZE)


class Pruner:
    """Deletes old rows, in short transactions that each hold the lock of the writers."""

    def __init__(self, backend: SQLite, lock: AbstractContextManager[object]) -> None:
        """Use a database, and the lock that all its writers in this process share."""
        self._backend = backend
        self._lock = lock

    def delete_before(self, horizon: float) -> int:
        """Delete the events, and the rows of all other tables, from before the Unix time `horizon`.

        Return how many events were deleted.
        """
        ids = _OLDEST_EVENTS.where(events.c.at < horizon)
        count = self._delete(lambda connection: _delete_events(connection, ids))
        self._delete_orphans(horizon)
        return count

    def shrink(self, max_bytes: int) -> int:
        """Delete the oldest events until at most `max_bytes` are used, then all other rows older than the events left.

        Return how many events were deleted. The other rows are deleted last, so fewer bytes may be used in the end.
        """
        count = self._delete(lambda connection: self._delete_while_over(connection, max_bytes))
        if count:
            self._delete_orphans(self._oldest())
        return count

    def release_space(self) -> None:
        """Release all free space to the file system."""
        self._repeat(self._backend.release_space)

    def _delete_while_over(self, connection: Connection, max_bytes: int) -> int:
        return _delete_events(connection, _OLDEST_EVENTS) if self._backend.used_bytes(connection) > max_bytes else 0

    def _delete_orphans(self, before: float) -> None:
        """Delete the results of commands without an event, the daemon's records and the history from before a time."""
        orphaned = _ORPHANED_COMMANDS.where(commands.c.at < before)
        old = _OLDEST_DAEMON_RECORDS.where(daemon_records.c.at < before)
        self._delete(lambda connection: _delete_from(connection, commands, orphaned))
        self._delete(lambda connection: _delete_from(connection, daemon_records, old))
        self._delete(lambda connection: delete_history(connection, before))

    def _oldest(self) -> float:
        with self._backend.engine.connect() as connection:
            return connection.execute(select(func.min(events.c.at))).scalar_one() or time.time()

    def _delete(self, step: Callable[[Connection], int]) -> int:
        def delete_some() -> int:
            with write_transaction(self._backend) as connection:
                return step(connection)

        return self._repeat(delete_some)

    def _repeat(self, step: Callable[[], int]) -> int:
        """Repeat a step until it returns 0, and return the sum. Pause after each one, so that others can write.

        A pause lasts as long as the step took, but at most `_MAX_PAUSE`.
        """
        total = 0
        while True:
            with self._lock:
                started_at = time.monotonic()
                count = step()
                seconds = time.monotonic() - started_at
            if count <= 0:
                return total
            total += count
            time.sleep(min(seconds, _MAX_PAUSE))


def _delete_events(connection: Connection, selected: Select[str]) -> int:
    ids = connection.execute(selected).scalars().all()
    connection.execute(delete(events).where(events.c.id.in_(ids)))
    connection.execute(delete(commands).where(commands.c.id.in_(ids)))
    return len(ids)


def _delete_from(connection: Connection, table: Table, selected: Select[str]) -> int:
    ids = connection.execute(selected).scalars().all()
    connection.execute(delete(table).where(table.c.id.in_(ids)))
    return len(ids)
