"""The event store's queries, for any database that SQLAlchemy supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, distinct, func, literal, select, tuple_, update

from fairlead.store.events._rows import clean_text
from fairlead.store.events._tables import commands, daemon_records, events, positions

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENTS_WITH_COMMANDS = select(events, *(column.label(f"done_{column.name}") for column in commands.c)).join_from(
    events, commands, events.c.id == commands.c.id, isouter=True
)
POSITION = select(positions.c.segment, positions.c.offset).where(positions.c.id == 1)
COUNT_SYNC = update(positions).values(settled=positions.c.settled + 1)
"""Counts a sync. It must change a value: SQLite does not write a row that stays the same, and would sync nothing."""

TOTALS = select(
    func.count(events.c.id).label("events"),
    func.min(events.c.at).label("oldest"),
    func.max(events.c.at).label("newest"),
)
SESSIONS = select(func.count(distinct(events.c.session))).where(events.c.session != "")
BY_EVENT = select(events.c.event, func.count().label("number")).group_by(events.c.event).order_by(events.c.event)


def filtered(*, session: str | None, event: str | None, since: float | None, until: float | None) -> Select[Any]:
    """Select events by session, kind and time (from `since`, before `until`), with their commands.

    `None` matches all.
    """
    query = EVENTS_WITH_COMMANDS
    if session is not None:
        query = query.where(events.c.session == clean_text(session))
    if event is not None:
        query = query.where(events.c.event == clean_text(event))
    if since is not None:
        query = query.where(events.c.at >= since)
    if until is not None:
        query = query.where(events.c.at < until)
    return query


def page(query: Select[Any], *, after: tuple[float, str] | None, newest_first: bool, limit: int) -> Select[Any]:
    """Order the events of a query by time and id, and limit them to the page after a key; `None` for the first page."""
    key = (events.c.at, events.c.id)
    if after is not None:
        last = tuple_(literal(after[0]), literal(clean_text(after[1])))
        query = query.where(tuple_(*key) < last if newest_first else tuple_(*key) > last)
    order = [column.desc() if newest_first else column.asc() for column in key]
    return query.order_by(*order).limit(limit)


def stored_among(ids: Sequence[str]) -> Select[str]:
    """Select which of the event ids `ids` are stored. There may be at most `BATCH_SIZE` ids."""
    return select(events.c.id).where(events.c.id.in_(ids))


def with_ids(ids: Sequence[str]) -> Select[Any]:
    """Select events by their ids, with their commands. There may be at most `BATCH_SIZE` ids."""
    return EVENTS_WITH_COMMANDS.where(events.c.id.in_(ids))


def latest_daemon_records(limit: int) -> Select[Any]:
    """Select the last `limit` records of the daemon, newest first."""
    return select(daemon_records).order_by(daemon_records.c.at.desc(), daemon_records.c.id).limit(limit)
