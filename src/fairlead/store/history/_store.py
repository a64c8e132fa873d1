"""The queries of the history as methods of the event store, and the deletion of its old rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from fairlead.store._database import Database
from fairlead.store.history import _queries as queries
from fairlead.store.history import _search as search
from fairlead.store.history._sessions_to_copy import sessions_to_copy
from fairlead.store.history._tables import costs, sessions, texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from fairlead.sessions import AbsenceSummary, HistoryPage, HistoryQuery, HistorySession, SessionCopy

_BATCH_SIZE = 200
"""The number of rows that are deleted in one transaction."""


class HistoryStore(Database):
    """The activity and costs of sessions, filled from the stored events and pruned with them."""

    def find_history(self, query: HistoryQuery) -> HistoryPage:
        """Return a page of sessions, or of the prompts, commands and files that contain the searched text."""
        find = queries.find_texts if query.search else queries.find_sessions
        with self._reading() as connection:
            return find(connection, query)

    def history_of(self, session: str) -> list[HistorySession]:
        """Return at most two sessions whose id starts with `session`. An exact match is returned alone."""
        with self._reading() as connection:
            return queries.find_session(connection, session)

    def summarize(self, since: float, now: float) -> AbsenceSummary:
        """Return a summary of the recorded events since a time. `now` is the time of the summary."""
        with self._reading() as connection:
            return queries.summarize(connection, since, now)

    def sessions_to_copy(self, names: Iterable[str], *, blocked_only: bool) -> list[SessionCopy]:
        """Return copies of the sessions with the ids `names`, for the history of a team.

        Sessions that are not stored are left out. With `blocked_only`, only sessions with a blocked event are returned,
        without their prompts.
        """
        with self._reading() as connection:
            return sessions_to_copy(connection, names, blocked_only=blocked_only)


def delete_some(connection: Connection, before: float) -> int:
    """Delete some rows of the history from before a time, and return how many; 0 if there are none left.

    One call deletes rows of one table: first texts, then costs, then sessions.
    """
    old = select(texts.c.id).where(texts.c.at < before).order_by(texts.c.at).limit(_BATCH_SIZE)
    numbers = list(connection.execute(old).scalars())
    if numbers:
        if search.has_index(connection):
            search.erase_deleted(connection)
            search.remove(connection, numbers)
        connection.execute(delete(texts).where(texts.c.id.in_(numbers)))
        return len(numbers)
    old_costs = select(costs.c.at).where(costs.c.at < before).order_by(costs.c.at).limit(_BATCH_SIZE)
    if times := list(connection.execute(old_costs).scalars()):
        return connection.execute(delete(costs).where(costs.c.at <= times[-1])).rowcount
    old_names = select(sessions.c.session).where(sessions.c.last < before).limit(_BATCH_SIZE)
    names = list(connection.execute(old_names).scalars())
    if names:
        connection.execute(delete(sessions).where(sessions.c.session.in_(names)))
    return len(names)
