"""The numbers of sessions in each state, and their costs: for one main session, a group, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.sessions import Working

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.sessions import Costs, Session


class Totals(NamedTuple):
    """The counts and costs of all sessions, or of a group."""

    working: int = 0
    waiting: int = 0
    """Sessions and subagents that need the user."""
    idle: int = 0
    stale: int = 0
    ended: int = 0
    cost: float = 0.0
    """The total cost of the sessions that have not ended."""
    today: float = 0.0
    """The cost of today; an upper bound if `older` is not 0."""
    older: int = 0
    """The number of sessions with costs today that started earlier, and whose cost until midnight is unknown."""


def add_totals(parts: Iterable[Totals]) -> Totals:
    """Return totals that are the sums of the given ones."""
    return Totals(*map(sum, zip(*parts, strict=True))) if (parts := list(parts)) else Totals()


def with_costs(totals: Totals, costs: Costs, midnight: float, is_shown: Callable[[str], bool]) -> Totals:
    """Return the totals with the daemon's costs of today, for the folders for which `is_shown` returns `True`.

    Costs that begin before `midnight` are those of another day: then the cost of today is 0.
    """
    shown = [cost for cost in costs.sessions if is_shown(cost.folder)] if costs.since >= midnight else []
    return totals._replace(today=sum(cost.usd for cost in shown), older=sum(cost.at_most for cost in shown))


def session_totals(session: Session, waiting: int, midnight: float, cost_then: float | None, now: float) -> Totals:
    """Return the totals of one main session.

    `waiting` is the number of agents, the session and its subagents, that need the user. `cost_then` is the session's
    cost at `midnight`; `None` if unknown.
    """
    cost = (session.usage and session.usage.cost_usd) or 0.0
    today, older = cost - (cost_then or 0.0), 0
    if session.last_activity < midnight:
        today = 0.0
    elif session.started < midnight and cost_then is None and cost:
        older = 1
    if session.ended is not None:
        return Totals(waiting=waiting, ended=1, today=today, older=older)
    is_stale = not waiting and session.is_stale(now)
    is_working = not waiting and not is_stale and isinstance(session.state, Working)
    is_idle = not (waiting or is_stale or is_working)
    return Totals(is_working, waiting, is_idle, is_stale, 0, cost, max(0.0, today), older)
