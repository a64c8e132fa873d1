"""The types of a view (filter, order, folds) and of its lines."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

Kind: TypeAlias = Literal["heading", "attention", "host", "project", "worktree", "session", "note"]
Sort: TypeAlias = Literal["start", "state", "activity", "cost", "context"]

SORTS: tuple[Sort, ...] = ("start", "state", "activity", "cost", "context")
"""All orders, of which the first is the default. In the order by start, no line moves when a session changes."""

_NO_SESSIONS = """\
no sessions yet

A session appears here with its first event, once the client has the hooks:

  fairlead hooks install   installs them; then start a session
  fairlead doctor          says what is wrong, if none appears"""


class Line(NamedTuple):
    """One line of the view: what it shows, not how it is drawn."""

    kind: Kind
    id: str
    """A session's id, the folder of a project or worktree, the name of a host, or the text of a note or heading."""
    depth: int = 0
    """The depth of a subagent below its main session; 1 for a project on another host."""
    has_fold: bool = False
    is_open: bool = True

    @property
    def key(self) -> tuple[Kind, str]:
        """The identity of the line. It stays the same when the view is computed again."""
        return self.kind, self.id


class FoldState(msgspec.Struct, frozen=True):
    """Which lines are open and which are folded."""

    all_open: bool = True
    exceptions: frozenset[tuple[str, str]] = frozenset()
    """The keys of the lines to which `all_open` does not apply."""

    def is_open(self, key: tuple[str, str]) -> bool:
        """Return whether the lines below the line with this key are shown."""
        return (key in self.exceptions) != self.all_open

    def toggled(self, key: tuple[str, str]) -> FoldState:
        """Return the state in which the line with this key is folded if it was open, else open."""
        return FoldState(self.all_open, self.exceptions ^ {key})


class View(msgspec.Struct, frozen=True):
    """The settings of a view: filter, order, folds."""

    filter: str = ""
    sort: Sort = "start"
    is_reversed: bool = False
    show_ended: bool = False
    folds: FoldState = FoldState()
    project: str = ""
    """The folder of the only project or worktree that is shown; "" for all."""
    today: float = 0.0
    """The time at which the local day began, in Unix time."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the filter. A session must contain all of them."""
        return tuple(self.filter.casefold().split())


def empty_lines(view: View, ended: int) -> list[Line]:
    """Return the lines of an empty view: the reason, and what to do. `ended` is the number of ended sessions."""
    if view.words:
        return [Line("note", "no session matches the filter; Esc clears it")]
    if ended and not view.show_ended:
        who = "the only session has" if ended == 1 else f"all {ended} sessions have"
        return [Line("note", f"{who} ended; e shows {'it' if ended == 1 else 'them'}")]
    if view.project:
        return [Line("note", "no session in this project; quit and run without --project to see all")]
    return [Line("note", line) for line in _NO_SESSIONS.splitlines()]
