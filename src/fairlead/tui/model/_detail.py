"""All there is to say of the chosen line, in three lines below the list. No screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.text import harmless, span
from fairlead.tui.model._rows import SIGNS, WORDS, count_of, counted, mood_of, name_of, near_path, what_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.sessions import Session
    from fairlead.tui.model._tree import Tree
    from fairlead.tui.model._view import Line

_A_WHILE = 5.0
"""Seconds by which a sign of life must be newer than the evidence to be worth a word."""


class Detail(NamedTuple):
    """Three lines: who it is, what is known of it and how, and where that is."""

    name: str = ""
    known: str = ""
    where: str = ""


def detail_of(line: Line | None, tree: Tree, now: float) -> Detail:
    """Say all there is to say of a line."""
    if line is None or line.kind in ("note", "heading"):
        return Detail()
    session = tree.sessions.get(line.id)
    if session is None:
        sums = tree.facts(line).sums
        return Detail(harmless(near_path(line.id, "")), counted(sums) if sums else "")
    return Detail(name_of(session), " · ".join(_known(session, now)), " · ".join(_where(session, tree)))


def _known(session: Session, now: float) -> Iterator[str]:
    mood = mood_of(session, now)
    yield f"{SIGNS[mood]} {WORDS[mood]} for {span(session.in_state(now))}"
    told, evidence = what_of(session), session.evidence
    if told:
        yield told
    if evidence is not None:
        tool = harmless(evidence.tool)
        tool = f" {tool}" if tool and tool not in told else ""
        yield f"seen by {harmless(evidence.event)}{tool} ({evidence.source}) {span(now - evidence.at)} ago"
        if evidence.why:
            yield f"believed because {harmless(evidence.why)}"
    if session.last_activity > (evidence.at if evidence else 0.0) + _A_WHILE:
        yield f"last sign of life {span(now - session.last_activity)} ago"


def _where(session: Session, tree: Tree) -> Iterator[str]:
    yield f"id {harmless(session.id)}"
    place = tree.place(session.id)
    folder = session.cwd or place.worktree
    yield harmless(near_path(folder, "")) + (f" on {harmless(place.branch)}" if place.branch else "")
    if session.pid:
        yield f"pid {session.pid}"
    if session.pane:
        yield f"pane {harmless(session.pane)}"
    if session.permission_mode not in ("", "default"):
        yield f"mode {harmless(session.permission_mode)}"
    usage = session.usage
    if usage is None:
        return
    if usage.lines_added is not None or usage.lines_removed is not None:
        yield f"+{usage.lines_added or 0} -{usage.lines_removed or 0} lines"
    if usage.tokens:
        yield f"{count_of(usage.tokens)} tokens in all"
    if usage.five_hour_percent is not None:
        yield f"5 h limit {usage.five_hour_percent:.0f}%"
    if usage.seven_day_percent is not None:
        yield f"7 d limit {usage.seven_day_percent:.0f}%"
