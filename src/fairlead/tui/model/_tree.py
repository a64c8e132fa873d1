"""From sessions to lines: project → worktree → session → subagents, and above them all that needs the person.

No screen, no clock, no files. Most changes move no line: then the lines are given as they were, and only the sums are
made anew. Of 1 000 sessions with 10 subagents each, only those that changed are looked at again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from fairlead.tui.model._empty import nothing_to_show
from fairlead.tui.model._family import Family, folder_of
from fairlead.tui.model._projects import Place, guess
from fairlead.tui.model._sorting import has_all, needs_person, order_of, text_of, text_of_place
from fairlead.tui.model._subtree import folded, picked
from fairlead.tui.model._totals import Totals, part_of, total
from fairlead.tui.model._view import Line, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.sessions import Session

NEEDS = Line("heading", "needs you")
GAP = Line("heading", "")

_MOMENT = 10.0
"""Seconds after which it is looked anew what time alone has changed: who is stale."""


class Facts(NamedTuple):
    """All that a line is told from, besides the time."""

    line: Line
    session: Session | None = None
    main: Session | None = None
    """The main session of a subagent that needs the person."""
    place: Place | None = None
    alarm: int = 0
    """How many below this line need the person."""
    sums: Totals | None = None
    """Of a project or worktree."""
    is_split: bool = False
    """The worktrees of this project have lines of their own."""


class Tree:
    """All sessions, and the lines that a view makes of them."""

    def __init__(self, sessions: Iterable[Session] = (), places: Mapping[str, Place] | None = None) -> None:
        self._family = Family()
        self.sessions = self._family.sessions
        self.root = self._family.root
        self.needing: dict[str, float] = {}
        """Who needs the person, since when."""
        self.has_usage = False
        """Somebody has told what a session uses: there is something to show in those columns."""
        self.sums = Totals()
        self._places = dict(places or {})
        self._groups: dict[str, dict[str, list[str]]] = {}
        """Project → worktree → its main sessions."""
        self._spots: dict[str, Place] = {}
        """The place of each worktree."""
        self._view = View()
        self._moment = 0.0
        self._alarms: Counter[str] = Counter()
        self._before: dict[str, float] = {}
        """What sessions had cost when the day began, if the view was there."""
        self._texts: dict[str, str] = {}
        self._branches: dict[str, tuple[Line, ...]] = {}
        """Main session → the lines of it and of those below it, without filter and folds."""
        self._joined: dict[str, str] = {}
        """Main session → what a filter may look for in all of them, as one text."""
        self._words: tuple[str, ...] = ()
        """Those of the filter."""
        self._orders: dict[str, tuple[float | str, ...]] = {}
        self._parts: dict[str, Totals] = {}
        self._touched: set[str] = set()
        """Main sessions of which something has changed since the last look."""
        self._tree: list[Line] | None = None
        self._waiting: list[Line] | None = None
        for session in sessions:
            self.put(session)

    # -- what happens ----------------------------------------------------------------------------------

    def put(self, session: Session) -> None:
        """Take a session in, or take its news in."""
        name, old = session.id, self.sessions.get(session.id)
        moved = self._family.put(session)
        if moved or old is None or (old.ended is None, old.started) != (session.ended is None, session.started):
            self._moved(moved | {self.root(name)})
        self._texts[name] = text_of(session)
        self.has_usage = self.has_usage or session.usage is not None
        if needs_person(session):
            self.needing[name] = session.since
            self._waiting = None
        elif self.needing.pop(name, None) is not None:
            self._waiting = None
        self._touch(self.root(name))

    def drop(self, session_id: str) -> None:
        """Forget a session. Its subagents stay until they are dropped, too."""
        if session_id in self.sessions:
            self._moved(self._family.drop(session_id))
            self._texts.pop(session_id)
            if self.needing.pop(session_id, None) is not None:
                self._waiting = None

    def reset(self, sessions: Iterable[Session]) -> None:
        """Begin anew with these; what is known of folders, and of the day's beginning, stays."""
        view, before = self._view, self._before
        self.__init__(sessions, self._places)  # type: ignore[misc]  # all of it, as when it was made
        self._view, self._words, self._before = view, view.words, before

    def set_place(self, folder: str, place: Place) -> None:
        """Learn where a folder belongs."""
        self._places[folder] = place
        self._moved(self._family.roots.get(folder, ()))

    def _touch(self, root: str) -> None:
        self._touched.add(root)
        self._joined.pop(root, None)
        if self._words:
            self._tree = self._waiting = None

    def _moved(self, names: Iterable[str]) -> None:
        """These are not where they were, or not as long."""
        for name in names:
            for known in (self._branches, self._joined, self._orders, self._parts):
                known.pop(name, None)
            self._touched.discard(name)
            if name in self.sessions and self.root(name) == name:
                self._touched.add(name)
        self._tree = self._waiting = None

    # -- what there is ---------------------------------------------------------------------------------

    def place(self, session_id: str) -> Place:
        """Give the place of a session; a subagent is where its main session is."""
        session = self.sessions.get(self.root(session_id))
        return self._place_of(folder_of(session) if session else "")

    def _place_of(self, folder: str) -> Place:
        return self._places.get(folder) or guess(folder)

    def folders(self) -> Iterable[str]:
        """Give the folders that sessions work in."""
        return self._family.roots.keys()

    def facts(self, line: Line) -> Facts:
        """Give all that a line is told from, but the time. Where they are the same, it says the same."""
        kind, name = line.key
        if kind in ("heading", "note"):
            return Facts(line)
        if kind in ("project", "worktree"):
            return self._group_facts(line)
        session = self.sessions.get(name)
        if kind != "need" or session is None:
            return Facts(line, session, alarm=self._alarms[name])
        return Facts(line, session, self.sessions[self.root(name)], self.place(name))

    def _group_facts(self, line: Line) -> Facts:
        place, is_project = self._spots.get(line.id), line.kind == "project"
        trees = self._groups.get(line.id if is_project or place is None else place.project, {})
        roots = [name for tree, names in trees.items() if is_project or tree == line.id for name in names]
        sums = total(self._parts[name] for name in roots if name in self._parts)
        is_split = is_project and _is_split(line.id, trees)
        return Facts(line, place=place, alarm=sums.waiting, sums=sums, is_split=is_split)

    # -- what is shown ---------------------------------------------------------------------------------

    def lines(self, view: View, now: float) -> list[Line]:
        """Give all lines of a view, what needs the person first; `sums` are told along with it."""
        self._see(view, now)
        if self._waiting is None:
            self._alarms = Counter(above for name in self.needing for above in self._family.above(name))
            self._waiting = self._all_waiting(now)
        self._weigh(now)
        if self._tree is None:
            self._groups, self._spots = self._by_project()
            self._tree = [line for group in self._projects() for line in group]
        self.sums = total(self._parts.values())
        if not self._tree and not self._waiting:
            return nothing_to_show(view, self.sums.ended)
        return [NEEDS, *self._waiting, GAP, *self._tree] if self._waiting else self._tree

    def _see(self, view: View, now: float) -> None:
        """Look otherwise from now on. What is as before is not computed again: keys are to be answered at once."""
        old, self._view = self._view, view
        moment, self._moment = self._moment, now // _MOMENT
        if view.today > old.today > 0:
            self._before = {name: cost for name in self._roots() if (cost := _cost_of(self.sessions[name])) is not None}
        if (moment, old.sort, old.project, old.today) != (self._moment, view.sort, view.project, view.today):
            self._touched.update(self._roots())
            self._tree = self._waiting = None
        if old.show_ended != view.show_ended:
            self._branches.clear()
            self._joined.clear()
            self._tree = None
        if self._words != view.words:
            self._words = view.words
            self._tree = self._waiting = None
        if old.folds is not view.folds:
            self._tree = None

    def _roots(self) -> Iterator[str]:
        for roots in self._family.roots.values():
            yield from roots

    def _weigh(self, now: float) -> None:
        """Count those anew that have changed, and look whether they stand elsewhere in the order."""
        for name in self._touched:
            session, needs = self.sessions[name], self._alarms[name] + (name in self.needing)
            order = order_of(session, needs, self._view.sort, now)
            if self._orders.get(name) != order:
                self._orders[name] = order
                self._tree = None
            if _is_asked_for(self.place(name), self._view):
                self._parts[name] = part_of(session, needs, self._view.today, self._before.get(name), now)
            else:
                self._parts.pop(name, None)
        self._touched.clear()

    def _all_waiting(self, now: float) -> list[Line]:
        """Who has waited longest comes first; after 8 hours nobody is in a hurry."""
        found = []
        for name, since in self.needing.items():
            place = self.place(name)
            if _is_asked_for(place, self._view) and has_all(self._texts[name], self._left(place)):
                found.append((self.sessions[name].is_stale(now), since, name))
        return [Line("need", name) for _, _, name in sorted(found)]

    def _by_project(self) -> tuple[dict[str, dict[str, list[str]]], dict[str, Place]]:
        """Share the main sessions out: project → worktree → ids; and tell the place of each worktree."""
        groups: dict[str, dict[str, list[str]]] = {}
        spots: dict[str, Place] = {}
        for folder, roots in self._family.roots.items():
            place = self._place_of(folder)
            if _is_asked_for(place, self._view):
                spots[place.worktree] = place
                groups.setdefault(place.project, {}).setdefault(place.worktree, []).extend(roots)
        return groups, spots

    def _projects(self) -> Iterator[list[Line]]:
        names = {project: (project.rpartition("/")[2].casefold(), project) for project in self._groups}
        for project in sorted(self._groups, key=names.__getitem__):
            if lines := self._project(project, self._groups[project]):
                yield lines

    def _project(self, project: str, trees: dict[str, list[str]]) -> list[Line]:
        folds, shown = self._view.folds, list[Line]()
        for folder in sorted(trees, key=lambda each: (each != project, each)):
            lines = self._sessions(trees[folder], self._left(self._spots[folder]))
            if lines and _is_split(project, trees):
                is_open = folds.is_open(("worktree", folder))
                lines = [Line("worktree", folder, 0, True, is_open), *(lines if is_open else ())]  # noqa: FBT003
            shown += lines
        if not shown:
            return []
        is_open = folds.is_open(("project", project))
        return [Line("project", project, 0, True, is_open), *(shown if is_open else ())]  # noqa: FBT003

    def _sessions(self, roots: list[str], left: tuple[str, ...]) -> list[Line]:
        return [line for root in sorted(roots, key=self._orders.__getitem__) for line in self._branch(root, left)]

    # -- one session and its subagents -----------------------------------------------------------------

    def _branch(self, root: str, left: tuple[str, ...]) -> Sequence[Line]:
        """Give the lines of a main session. Where it has what the filter asks for, so have all below it."""
        lines: Sequence[Line] | None = self._branches.get(root)
        if lines is None:
            made: list[Line] = []
            self._add(self.sessions[root], 0, {root}, made)
            lines = self._branches[root] = tuple(made)
        if left and not has_all(self._texts[root], left):
            every = self._every_text(root, lines)
            lines = picked(lines, lambda name: has_all(self._texts[name], left)) if has_all(every, left) else ()
        return folded(lines, self._view.folds)

    def _every_text(self, root: str, lines: Sequence[Line]) -> str:
        """Give the texts of a main session and of all below it as one: most have not what is looked for."""
        text = self._joined.get(root)
        if text is None:
            text = self._joined[root] = "\n".join([self._texts[line.id] for line in lines])
        return text

    def _add(self, session: Session, depth: int, seen: set[str], lines: list[Line]) -> None:
        """Add the lines of a session and of those below it. Most have nobody below, and are quickly done."""
        if session.ended is not None and not self._view.show_ended:
            return
        at = len(lines)
        if names := self._family.children(session.id):
            children = [self.sessions[name] for name in names if name not in seen]
            seen.update(names)
            children.sort(key=lambda child: (child.ended is not None, child.started, child.id))
            for child in children:
                self._add(child, depth + 1, seen, lines)
        lines.insert(at, Line("session", session.id, depth, len(lines) > at))

    def _left(self, place: Place) -> tuple[str, ...]:
        """Give the words of the filter that the place does not have."""
        here = text_of_place(place) if self._words else ""
        return tuple(word for word in self._words if word not in here)


def _is_split(project: str, trees: Mapping[str, object]) -> bool:
    """Whether worktrees have lines of their own: unless there is but one, the project's main folder."""
    return len(trees) > 1 or project not in trees


def _is_asked_for(place: Place, view: View) -> bool:
    return not view.project or view.project in (place.project, place.worktree)


def _cost_of(session: Session) -> float | None:
    return session.usage.cost_usd if session.usage else None
