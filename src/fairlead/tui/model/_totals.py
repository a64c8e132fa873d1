"""How many do what, and what that costs: of one main session, of a group, of all. No screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.sessions import Working

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.sessions import Session


class Totals(NamedTuple):
    """The summary of all sessions, or of a group."""

    working: int = 0
    waiting: int = 0
    idle: int = 0
    stale: int = 0
    ended: int = 0
    cost: float = 0.0
    """Of those that have not ended, from their beginnings on."""
    today: float = 0.0
    """What was spent today, at most: see `older`."""
    older: int = 0
    """So many of those that spent something today began earlier, and what they had cost by then is not known."""


def total(parts: Iterable[Totals]) -> Totals:
    """Add up."""
    return Totals(*map(sum, zip(*parts, strict=True))) if (parts := list(parts)) else Totals()


def part_of(session: Session, needs: int, day: float, before: float | None, now: float) -> Totals:
    """Count one main session: so many of it and of those below it need the person.

    The day's beginning, and what the session had cost by then (`None` if nobody knows), tell what was spent today.
    """
    cost = (session.usage and session.usage.cost_usd) or 0.0
    today, older = cost - (before or 0.0), 0
    if session.last_activity < day:
        today = 0.0
    elif session.started < day and before is None and cost:
        older = 1
    if session.ended is not None:
        return Totals(waiting=needs, ended=1, today=today, older=older)
    is_stale = not needs and session.is_stale(now)
    is_working = not needs and not is_stale and isinstance(session.state, Working)
    is_idle = not (needs or is_stale or is_working)
    return Totals(is_working, needs, is_idle, is_stale, 0, cost, max(0.0, today), older)
