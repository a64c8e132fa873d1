"""How the sessions are shown (filter, order, folds), and the lines that result. Values only."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

Kind: TypeAlias = Literal["heading", "attention", "host", "project", "worktree", "session", "note"]
Sort: TypeAlias = Literal["start", "state", "activity", "cost", "context"]

SORTS: tuple[Sort, ...] = ("start", "state", "activity", "cost", "context")
"""Sorted by their start, no line jumps when something happens: what needs the user has a section of its own."""

_NO_SESSIONS = """\
no sessions yet

A session appears here with its first event, once the client has the hooks:

  fairlead hooks install   installs them; then start a session
  fairlead doctor          says what is wrong, if none appears"""


class Line(NamedTuple):
    """One line of the view: what it stands for, not what it looks like."""

    kind: Kind
    id: str
    """A session's id; the folder of a project or worktree; the name of a host; the text of a note or heading."""
    depth: int = 0
    """How deep a subagent is below its session; 1 for a project on another host."""
    has_fold: bool = False
    is_open: bool = True

    @property
    def key(self) -> tuple[Kind, str]:
        """What stays the same when other lines come or go."""
        return self.kind, self.id


class Folds(msgspec.Struct, frozen=True):
    """Which lines are open and which are folded."""

    all_open: bool = True
    exceptions: frozenset[tuple[str, str]] = frozenset()
    """The keys of the lines that are the other way."""

    def is_open(self, key: tuple[str, str]) -> bool:
        """Return whether the lines below a line are shown."""
        return (key in self.exceptions) != self.all_open

    def toggled(self, key: tuple[str, str]) -> Folds:
        """Return the folds with one line the other way."""
        return Folds(self.all_open, self.exceptions ^ {key})


class View(msgspec.Struct, frozen=True):
    """How the sessions are shown."""

    filter: str = ""
    sort: Sort = "start"
    is_reversed: bool = False
    show_ended: bool = False
    folds: Folds = Folds()
    project: str = ""
    """Only this project's folder; "" for all."""
    today: float = 0.0
    """When the day began."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the filter; a session must have all of them."""
        return tuple(self.filter.casefold().split())


def empty_lines(view: View, ended: int) -> list[Line]:
    """Return the lines to show in place of sessions: why there are none, and what to do. `ended` are hidden."""
    if view.words:
        return [Line("note", "no session matches the filter; Esc clears it")]
    if ended and not view.show_ended:
        who = "the only session has" if ended == 1 else f"all {ended} sessions have"
        return [Line("note", f"{who} ended; e shows {'it' if ended == 1 else 'them'}")]
    if view.project:
        return [Line("note", "no session in this project; quit and run without --project to see all")]
    return [Line("note", line) for line in _NO_SESSIONS.splitlines()]
