"""How the store stays small: the oldest goes first, a few rows at a time, so that nobody waits long for the lock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select

from fairlead.store._backend import writing
from fairlead.store.events._tables import dones, events, turns

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Select, Table

    from fairlead.store._backend import Backend

AT_ONCE = 500
"""So many rows go in one transaction."""

_LONGEST_PAUSE = 0.05

_OLDEST_FIRST = select(events.c.id).order_by(events.c.at, events.c.id).limit(AT_ONCE)
_LOST_DONES = (
    select(dones.c.id)
    .join_from(dones, events, dones.c.id == events.c.id, isouter=True)
    .where(events.c.id.is_(None))
    .order_by(dones.c.at)
    .limit(AT_ONCE)
)
_TURNS = select(turns.c.id).order_by(turns.c.at).limit(AT_ONCE)


class Pruner:
    """Sweeps one store, in short transactions under the writers' lock."""

    def __init__(self, backend: Backend, lock: AbstractContextManager[object]) -> None:
        """Name the store, and the lock that its writers in this process share."""
        self._backend = backend
        self._lock = lock

    def forget_before(self, horizon: float) -> int:
        """Delete the events before a time, and all that belongs to none of the rest."""
        ids = _OLDEST_FIRST.where(events.c.at < horizon)
        count = self._delete(lambda connection: _delete_events(connection, ids))
        self._forget_rest(horizon)
        return count

    def shrink(self, at_most: int) -> int:
        """Delete the oldest events until what is left fits into so many bytes."""
        count = self._delete(lambda connection: self._delete_while_over(connection, at_most))
        if count:
            self._forget_rest(self._oldest())
        return count

    def give_back(self) -> None:
        """Give the room that has become free back to the disk."""
        self._repeat(self._backend.give_back)

    def _delete_while_over(self, connection: Connection, at_most: int) -> int:
        return _delete_events(connection, _OLDEST_FIRST) if self._backend.used(connection) > at_most else 0

    def _forget_rest(self, before: float) -> None:
        """Delete what has outlived its events, and the daemon's turns of that time."""
        lost, old = _LOST_DONES.where(dones.c.at < before), _TURNS.where(turns.c.at < before)
        self._delete(lambda connection: _delete_from(connection, dones, lost))
        self._delete(lambda connection: _delete_from(connection, turns, old))

    def _oldest(self) -> float:
        with self._backend.engine.connect() as connection:
            return connection.execute(select(func.min(events.c.at))).scalar_one() or time.time()

    def _delete(self, step: Callable[[Connection], int]) -> int:
        def delete_some() -> int:
            with writing(self._backend) as connection:
                return step(connection)

        return self._repeat(delete_some)

    def _repeat(self, step: Callable[[], int]) -> int:
        """Do it until nothing is left to do. After each step the others get as much time as it took."""
        total = 0
        while True:
            with self._lock:
                began = time.monotonic()
                count = step()
                taken = time.monotonic() - began
            if count <= 0:
                return total
            total += count
            time.sleep(min(taken, _LONGEST_PAUSE))


def _delete_events(connection: Connection, which: Select[str]) -> int:
    ids = connection.execute(which).scalars().all()
    connection.execute(delete(events).where(events.c.id.in_(ids)))
    connection.execute(delete(dones).where(dones.c.id.in_(ids)))
    return len(ids)


def _delete_from(connection: Connection, table: Table, which: Select[str]) -> int:
    ids = connection.execute(which).scalars().all()
    connection.execute(delete(table).where(table.c.id.in_(ids)))
    return len(ids)
