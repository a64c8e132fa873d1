"""The copies of sessions for the history of a team: their counters, and their costs per hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Integer, cast, func, select

from fairlead.durations import HOUR
from fairlead.sessions import SessionCopy
from fairlead.store._database import batches
from fairlead.store.events._rows import clean_text
from fairlead.store.history._queries import session_of_row
from fairlead.store.history._tables import HAS_COST, costs, sessions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

_MAX_HOURS = 24 * 31
"""The maximum number of hours with costs that are copied of one session. Earlier hours are left out."""


def sessions_to_copy(connection: Connection, names: Iterable[str], *, blocked_only: bool) -> list[SessionCopy]:
    """Return copies of the sessions with the ids `names`. Sessions that are not stored are left out.

    With `blocked_only`, return only sessions with a blocked event, and without their prompts.
    """
    copies: list[SessionCopy] = []
    for batch in batches([clean_text(name) for name in names]):
        query = select(sessions, HAS_COST).where(sessions.c.session.in_(batch))
        if blocked_only:
            query = query.where(sessions.c.blocked > 0)
        rows = connection.execute(query).all()
        hours = _hours(connection, [row.session for row in rows])
        for row in rows:
            prompt = "" if blocked_only else row.prompt
            copied = session_of_row(row, row.usd, prompt=prompt)
            copies.append(SessionCopy(session=copied, hours=hours.get(row.session, {})))
    return copies


def _hours(connection: Connection, names: list[str]) -> dict[str, dict[int, float]]:
    if not names:
        return {}
    hour = cast(costs.c.at / HOUR, Integer).label("hour")
    query = (
        select(costs.c.session, hour, func.sum(costs.c.usd).label("usd"))
        .where(costs.c.session.in_(names), costs.c.usd != 0)
        .group_by(costs.c.session, hour)
        .order_by(hour.desc())
    )
    hours: dict[str, dict[int, float]] = {}
    for row in connection.execute(query):
        known = hours.setdefault(row.session, {})
        if len(known) < _MAX_HOURS:
            known[row.hour] = row.usd
    return hours
