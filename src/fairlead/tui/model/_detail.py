"""The details of the selected line, shown in three lines below the list."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fairlead.sessions import changed_lines
from fairlead.text import compact_number, duration, one_line, printable_lines
from fairlead.tui.model._rows import (
    LABELS,
    SYMBOLS,
    activity_text,
    display_name,
    display_state,
    short_path,
    totals_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.sessions import Session
    from fairlead.tui.model._tree import SessionTree
    from fairlead.tui.model._view import Line

_NEWER = 5.0
"""The last activity is shown if it is more than these seconds newer than the evidence."""
_TAB = 4
_LONG = 60
"""A question with more characters may not fit into the line with the state."""


class Detail(NamedTuple):
    """The details of a line: its name, its state with the evidence, its place, and the question to the user."""

    name: str = ""
    state: str = ""
    place: str = ""
    question: tuple[str, ...] = ()
    """The lines of the question, command or change that the user is asked about; empty if `state` has room for it."""


def detail_of(line: Line | None, tree: SessionTree, now: float, question_of: Callable[[Session], str]) -> Detail:
    """Return the details of a line; empty ones for `None`, a note or a heading.

    `question_of` returns the question that a session asks the user.
    """
    if line is None or line.kind in ("note", "heading"):
        return Detail()
    session = tree.sessions.get(line.id)
    if line.kind == "host":
        data = tree.data(line)
        text = data.host.text(now) if data.host else ""
        return Detail(f"host {line.id}", text, totals_text(data.totals) if data.totals else "")
    if session is None:
        totals = tree.data(line).totals
        return Detail(one_line(short_path(line.id)), totals_text(totals) if totals else "")
    state, place = " · ".join(_state(session, now)), " · ".join(_place(session, tree, now))
    return Detail(display_name(session), state, place, _lines_of(question_of(session) if session.ended is None else ""))


@lru_cache(maxsize=2)  # called twice a second
def _lines_of(question: str) -> tuple[str, ...]:
    lines = [line.expandtabs(_TAB) for line in printable_lines(question)]
    return tuple(lines) if len(lines) > 1 or len(lines[0]) > _LONG else ()


def _state(session: Session, now: float) -> Iterator[str]:
    state = display_state(session, now)
    yield f"{SYMBOLS[state]} {LABELS[state]} for {duration(session.in_state(now))}"
    activity, evidence = activity_text(session), session.evidence
    if activity:
        yield activity
    if evidence is not None:
        tool = one_line(evidence.tool)
        tool = f" {tool}" if tool and tool not in activity else ""
        yield f"known from {one_line(evidence.event)}{tool} ({evidence.source}) {duration(now - evidence.at)} ago"
        if evidence.why:
            yield f"because {one_line(evidence.why)}"
    if session.last_activity > (evidence.at if evidence else 0.0) + _NEWER:
        yield f"last activity {duration(now - session.last_activity)} ago"


def _place(session: Session, tree: SessionTree, now: float) -> Iterator[str]:
    if session.host:
        yield f"on {session.host}, {tree.hosts[session.host].text(now)}" if session.host in tree.hosts else ""
    yield f"id {one_line(session.id)}"
    location = tree.location(session.id)
    folder = session.cwd or location.worktree
    yield one_line(short_path(folder)) + (f" on {one_line(location.branch)}" if location.branch else "")
    if session.pid:
        yield f"pid {session.pid}"
    if session.pane:
        yield f"pane {one_line(session.pane)}"
    if session.permission_mode not in ("", "default"):
        yield f"mode {one_line(session.permission_mode)}"
    usage = session.usage
    if usage is None:
        return
    if lines := " ".join(changed_lines(usage)):
        yield f"{lines} lines"
    if usage.tokens:
        yield f"{compact_number(usage.tokens)} tokens in all"
    if usage.five_hour_percent is not None:
        yield f"5 h limit {usage.five_hour_percent:.0f}%"
    if usage.seven_day_percent is not None:
        yield f"7 d limit {usage.seven_day_percent:.0f}%"
