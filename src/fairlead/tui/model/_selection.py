"""Filters, sorts and folds the lines of sessions.

The lines of a main session and its subagents are in depth-first order: each line comes before its descendants, and has
its depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.sessions import AttentionNeeded, Working
from fairlead.text import one_line
from fairlead.tui.model._rows import LABELS, activity_text, display_name, evidence_text, session_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.sessions import Session
    from fairlead.tui.model._projects import Location
    from fairlead.tui.model._view import FoldState, Line, View


def needs_attention(session: Session) -> bool:
    """Return whether a session needs the user to continue."""
    return session.ended is None and isinstance(session.state, AttentionNeeded)


def search_text(session: Session) -> str:
    """Return the text that a filter searches for a session: the texts of its row, case-folded, without its location."""
    if session.ended is not None:
        label = LABELS["ended"]
    elif needs_attention(session):
        label = LABELS["needs"]
    else:
        label = LABELS["working" if isinstance(session.state, Working) else "idle"]
    texts = (display_name(session), activity_text(session), evidence_text(session), session_model(session), label)
    return "\n".join(texts).casefold()


def location_search_text(location: Location) -> str:
    """Return the text that a filter searches for a location: project, worktree and branch, case-folded."""
    names = (location.project.rpartition("/")[2], location.worktree.rpartition("/")[2], location.branch)
    return "\n".join(map(one_line, names)).casefold()


def contains_all(text: str, words: tuple[str, ...]) -> bool:
    """Return whether a text contains all words."""
    for word in words:  # noqa: SIM110 - three times as fast, and called 10 000 times for a key press
        if word not in text:
            return False
    return True


def sort_key(session: Session, waiting: int, view: View, now: float) -> tuple[float | str, ...]:
    """Return the sort key of a main session. Stale sessions come after all live ones, and ended sessions last.

    `waiting` is the number of agents, the session and its subagents, that need the user.
    """
    usage, sort = session.usage, view.sort
    key: tuple[float, ...] = ()
    if sort == "state":
        key = (not waiting, not isinstance(session.state, Working), session.since)
    elif sort == "activity":
        key = (-session.last_activity,)
    elif sort == "cost":
        key = (-((usage and usage.cost_usd) or 0.0),)
    elif sort == "context":
        key = (-((usage and usage.context_percent) or 0.0),)
    key = (*key, session.started)
    if view.is_reversed:
        key = tuple(-part for part in key)
    return (session.ended is not None, session.is_stale(now), *key, session.id)


def filter_lines(lines: Sequence[Line], matches: Callable[[str], bool]) -> list[Line]:
    """Return the lines whose session matches, with all their ancestors and descendants. `matches` takes an id."""
    kept = [False] * len(lines)
    match_depth = -1
    for number, line in enumerate(lines):
        if 0 <= match_depth < line.depth:
            kept[number] = True
        else:
            kept[number] = matches(line.id)
            match_depth = line.depth if kept[number] else -1
    shallowest = 0
    for number in range(len(lines) - 1, -1, -1):
        depth = lines[number].depth
        if kept[number] or depth < shallowest:
            kept[number] = True
            shallowest = depth
    return [line for line, is_kept in zip(lines, kept, strict=True) if is_kept]


def fold_lines(lines: Sequence[Line], folds: FoldState) -> Sequence[Line]:
    """Return the lines without the descendants of folded lines. The folded lines get `is_open=False`."""
    if folds.all_open and not folds.exceptions:
        return lines
    shown: list[Line] = []
    folded_depth = -1
    for line in lines:
        if 0 <= folded_depth < line.depth:
            continue
        is_folded = line.has_fold and not folds.is_open(line.key)
        folded_depth = line.depth if is_folded else -1
        shown.append(line._replace(is_open=False) if is_folded else line)
    return shown
