"""What sessions are sorted by, and what a filter looks for in them. No screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.sessions import AttentionNeeded, Working

if TYPE_CHECKING:
    from fairlead.sessions import Session
    from fairlead.tui.model._projects import Place
    from fairlead.tui.model._view import Sort


def needs_person(session: Session) -> bool:
    """Tell whether nothing goes on here without the person."""
    return session.ended is None and isinstance(session.state, AttentionNeeded)


def text_of(session: Session) -> str:
    """Give all that a filter may look for in a session; its place comes to that."""
    state = session.state
    told = state.reason if isinstance(state, AttentionNeeded) else (getattr(state, "detail", "") or "")
    said = "needs you" if needs_person(session) else type(state).__name__
    parts = (session.id, session.title, session.first_prompt, session.description, session.agent_type, session.model)
    return "\n".join((*parts, session.cwd, session.pane, said, told)).casefold()


def text_of_place(place: Place) -> str:
    """Give all that a filter may look for in the place of a session."""
    return f"{place.project}\n{place.branch}".casefold()


def has_all(text: str, words: tuple[str, ...]) -> bool:
    """Tell whether a text has all the words."""
    for word in words:  # noqa: SIM110 - three times as fast, and asked 10 000 times for one key
        if word not in text:
            return False
    return True


def order_of(session: Session, needs: int, sort: Sort, now: float) -> tuple[float | str, ...]:
    """Give what main sessions are sorted by. Those that have ended come last in any case, before them who is stale."""
    usage = session.usage
    by: tuple[float, ...] = ()
    if sort == "state":
        by = (not needs, not isinstance(session.state, Working), session.since)
    elif sort == "activity":
        by = (-session.last_activity,)
    elif sort == "cost":
        by = (-((usage and usage.cost_usd) or 0.0),)
    elif sort == "context":
        by = (-((usage and usage.context_percent) or 0.0),)
    return (session.ended is not None, session.is_stale(now), *by, session.started, session.id)
