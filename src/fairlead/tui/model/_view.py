"""What the person has asked to see: filter, sort, folds. Values only."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

Kind: TypeAlias = Literal["heading", "need", "project", "worktree", "session", "note"]
Sort: TypeAlias = Literal["start", "state", "activity", "cost", "context"]

SORTS: tuple[Sort, ...] = ("start", "state", "activity", "cost", "context")
"""By their start nothing jumps when something happens: what needs the person has its own part, above."""


class Line(NamedTuple):
    """One line of the view: what it stands for, not what it looks like."""

    kind: Kind
    id: str
    """Of a session or need, the session's id; of a project or worktree, its folder; of a note, its text."""
    depth: int = 0
    """How deep a subagent is below its session."""
    has_fold: bool = False
    is_open: bool = True

    @property
    def key(self) -> tuple[Kind, str]:
        """Find the line again when others have come or gone."""
        return self.kind, self.id


class Folds(msgspec.Struct, frozen=True):
    """What is open, and what is not."""

    all_open: bool = True
    others: frozenset[tuple[str, str]] = frozenset()
    """Those that are the other way."""

    def is_open(self, key: tuple[str, str]) -> bool:
        """Tell whether what is below a line is shown."""
        return (key in self.others) != self.all_open

    def turned(self, key: tuple[str, str]) -> Folds:
        """Give the folds with one turned."""
        return Folds(self.all_open, self.others ^ {key})


class View(msgspec.Struct, frozen=True):
    """How the sessions are shown."""

    filter: str = ""
    sort: Sort = "start"
    show_ended: bool = False
    folds: Folds = Folds()
    project: str = ""
    """Only this project's folder; "" for all."""
    today: float = 0.0
    """When the day began."""

    @property
    def words(self) -> tuple[str, ...]:
        """What a session must have, all of it."""
        return tuple(self.filter.casefold().split())
