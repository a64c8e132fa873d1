"""The questions that the store answers, as statements. Nothing here is of one database alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, distinct, func, literal, select, tuple_, update

from fairlead.store.events._rows import text_of
from fairlead.store.events._tables import dones, events, positions, turns

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENTS_WITH_DONES = select(events, *(column.label(f"done_{column.name}") for column in dones.c)).join_from(
    events, dones, events.c.id == dones.c.id, isouter=True
)
POSITION = select(positions.c.segment, positions.c.offset).where(positions.c.id == 1)
SETTLED = update(positions).values(settled=positions.c.settled + 1)
"""A change that is one: SQLite does not write a row whose values stay the same, and then syncs nothing."""

TOTALS = select(
    func.count(events.c.id).label("events"),
    func.min(events.c.at).label("oldest"),
    func.max(events.c.at).label("newest"),
)
SESSIONS = select(func.count(distinct(events.c.session))).where(events.c.session != "")
BY_EVENT = select(events.c.event, func.count().label("number")).group_by(events.c.event).order_by(events.c.event)


def chosen(*, session: str | None, event: str | None, since: float | None, until: float | None) -> Select[Any]:
    """Choose events by what they are and when they were."""
    found = EVENTS_WITH_DONES
    if session is not None:
        found = found.where(events.c.session == text_of(session))
    if event is not None:
        found = found.where(events.c.event == text_of(event))
    if since is not None:
        found = found.where(events.c.at >= since)
    if until is not None:
        found = found.where(events.c.at < until)
    return found


def page(found: Select[Any], *, after: tuple[float, str] | None, newest_first: bool, limit: int) -> Select[Any]:
    """Put events in the order of their keys, and give so many from where the last page ended."""
    key = (events.c.at, events.c.id)
    if after is not None:
        last = tuple_(literal(after[0]), literal(text_of(after[1])))
        found = found.where(tuple_(*key) < last if newest_first else tuple_(*key) > last)
    order = [column.desc() if newest_first else column.asc() for column in key]
    return found.order_by(*order).limit(limit)


def stored_among(ids: Sequence[str]) -> Select[str]:
    """Find which of these ids are stored."""
    return select(events.c.id).where(events.c.id.in_(ids))


def latest_turns(limit: int) -> Select[Any]:
    """Choose the daemon's last turns, the newest first."""
    return select(turns).order_by(turns.c.at.desc(), turns.c.id).limit(limit)
