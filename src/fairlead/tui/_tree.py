"""From sessions to lines: project → worktree → session → subagents, and above them all that needs the person.

No screen, no clock, no files. Changes are cheap: of 1 000 sessions with 10 subagents each, only those that changed are
looked at again, and the lines of the others are put together as they are.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from fairlead.sessions import Working
from fairlead.tui._order import needs_person, order_of, text_of
from fairlead.tui._projects import Place, guess
from fairlead.tui._view import Line, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fairlead.sessions import Session

NEEDS = Line("heading", "needs you")
GAP = Line("heading", "")
QUIET = Line("note", "no sessions yet: they come with the first event of an agent")
HIDDEN = Line("note", "nothing to show with this filter")


class Sums(NamedTuple):
    """The summary of all sessions, or of a group."""

    working: int = 0
    waiting: int = 0
    idle: int = 0
    stale: int = 0
    cost: float = 0.0
    """Of sessions that did something today."""

    def plus(self, other: Sums) -> Sums:
        """Add up two groups."""
        return Sums(*(one + two for one, two in zip(self, other, strict=True)))  # type: ignore[arg-type]  # int by int


class Tree:
    """All sessions, and the lines that a view makes of them."""

    def __init__(self, sessions: Iterable[Session] = (), places: Mapping[str, Place] | None = None) -> None:
        self.sessions: dict[str, Session] = {}
        self.needing: dict[str, float] = {}
        """Who needs the person, since when."""
        self._places = dict(places or {})
        self._children: dict[str, set[str]] = {}
        self._roots: dict[str, set[str]] = {}
        """Folder → the main sessions that work there."""
        self._branches: dict[str, tuple[Line, ...]] = {}
        """Main session → the lines that the view shows of it and of those below it."""
        self._needs: Mapping[str, int] = {}
        """Main session → how many of it and of those below it need the person."""
        self._texts: dict[str, tuple[Session, str]] = {}
        self._view = View()
        self.sums = Sums()
        self.groups: dict[tuple[str, str], Sums] = {}
        """The sums of each project and worktree, by the keys of their lines."""
        self.found: dict[str, Place] = {}
        """The worktrees in which sessions are, by their folders."""
        self.split: set[str] = set()
        """The projects whose worktrees have lines of their own."""
        for session in sessions:
            self.put(session)

    # -- what happens ----------------------------------------------------------------------------------

    def put(self, session: Session) -> None:
        """Take a session in, or take its news in."""
        old = self.sessions.get(session.id)
        if old is not None and (old.parent, folder_of(old)) != (session.parent, folder_of(session)):
            self._unlink(old)
            old = None
        self.sessions[session.id] = session
        if old is None:
            self._link(session)
        if needs_person(session):
            self.needing[session.id] = session.since
        else:
            self.needing.pop(session.id, None)
        self._branches.pop(self.root(session.id), None)

    def drop(self, session_id: str) -> None:
        """Forget a session. Its subagents stay until they are dropped, too."""
        session = self.sessions.get(session_id)
        if session is None:
            return
        self._branches.pop(self.root(session_id), None)
        del self.sessions[session_id]
        self._texts.pop(session_id, None)
        self.needing.pop(session_id, None)
        self._unlink(session)

    def reset(self, sessions: Iterable[Session]) -> None:
        """Begin anew with these; what is known of folders stays."""
        self.__init__(sessions, self._places)  # type: ignore[misc]  # all of it, as when it was made

    def set_place(self, folder: str, place: Place) -> None:
        """Learn where a folder belongs."""
        self._places[folder] = place
        self._texts.clear()

    # -- what there is ---------------------------------------------------------------------------------

    def root(self, session_id: str) -> str:
        """Give the main session of a subagent; of one whose maker is not known, itself."""
        seen = {session_id}
        while (session := self.sessions.get(session_id)) is not None:
            above = session.parent
            if above not in self.sessions:
                break
            if above in seen:
                return self._least_of_circle(above)
            seen.add(above)
            session_id = above
        return session_id

    def _least_of_circle(self, start: str) -> str:
        """Only nonsense makes a circle; one of it must be the root, and always the same."""
        circle = [start]
        while (above := self.sessions[circle[-1]].parent) != start:
            circle.append(above)
        return min(circle)

    def place(self, session_id: str) -> Place:
        """Give the place of a session; a subagent is where its main session is."""
        session = self.sessions.get(self.root(session_id))
        folder = folder_of(session) if session else ""
        return self._places.get(folder) or guess(folder)

    def below(self, session_id: str) -> Iterator[Session]:
        """Give the subagents of a session, and theirs."""
        waiting, seen = [session_id], {session_id}
        while waiting:
            for child in self._children.get(waiting.pop(), ()):
                if child not in seen and child in self.sessions:
                    seen.add(child)
                    waiting.append(child)
                    yield self.sessions[child]

    def folders(self) -> Iterable[str]:
        """Give the folders that sessions work in."""
        return self._roots.keys()

    # -- what is shown ---------------------------------------------------------------------------------

    def lines(self, view: View, now: float) -> list[Line]:
        """Give all lines of a view, what needs the person first; `sums` and `groups` are told along with it."""
        self._see(view)
        self._needs = Counter(map(self.root, self.needing))
        self.groups.clear()
        self.found.clear()
        self.split.clear()
        tree = [line for group in self._projects(view, now) for line in group]
        every = [sums for (kind, _), sums in self.groups.items() if kind == "project"]
        self.sums = reduce(Sums.plus, every, Sums())
        waiting = self._waiting(view, now)
        if not tree and not waiting:
            return [HIDDEN if self.sessions and (view.words or view.project) else QUIET]
        return [NEEDS, *waiting, GAP, *tree] if waiting else tree

    def _summed(self, roots: Iterable[str], today: float, now: float) -> Sums:
        working = waiting = idle = stale = 0
        cost = 0.0
        for root in roots:
            session, needs = self.sessions[root], self._needs.get(root, 0)
            waiting += needs
            if session.usage and session.usage.cost_usd and session.last_activity >= today:
                cost += session.usage.cost_usd
            if session.ended is not None or needs:
                continue
            if session.is_stale(now):
                stale += 1
            elif isinstance(session.state, Working):
                working += 1
            else:
                idle += 1
        return Sums(working, waiting, idle, stale, cost)

    def _waiting(self, view: View, now: float) -> list[Line]:
        """Who has waited longest comes first; after 8 hours nobody is in a hurry."""
        found = [
            (self.sessions[name].is_stale(now), since, name)
            for name, since in self.needing.items()
            if self._is_wanted(self.sessions[name], view) and _is_asked_for(self.place(name), view)
        ]
        return [Line("need", name) for _, _, name in sorted(found)]

    def _projects(self, view: View, now: float) -> Iterator[list[Line]]:
        groups = self._by_project(view)
        names = {project: (project.rpartition("/")[2].casefold(), project) for project in groups}
        for project in sorted(groups, key=names.__getitem__):
            if lines := self._project(project, groups[project], view, now):
                yield lines

    def _project(self, project: str, trees: dict[str, list[str]], view: View, now: float) -> list[Line]:
        if many := len(trees) > 1 or project not in trees:
            self.split.add(project)
        shown: list[Line] = []
        for folder in sorted(trees, key=lambda each: (each != project, each)):
            key = ("worktree", folder)
            sums = self.groups[key] = self._summed(trees[folder], view.today, now)
            self.groups["project", project] = sums.plus(self.groups.get(("project", project), Sums()))
            lines = self._sessions(trees[folder], now)
            if lines and many:
                is_open = view.folds.is_open(key)
                lines = [Line("worktree", folder, 0, True, is_open), *(lines if is_open else ())]  # noqa: FBT003
            shown += lines
        if not shown:
            return []
        is_open = view.folds.is_open(("project", project))
        return [Line("project", project, 0, True, is_open), *(shown if is_open else ())]  # noqa: FBT003

    def _sessions(self, roots: list[str], now: float) -> list[Line]:
        found = [
            (order_of(self.sessions[root], self._needs.get(root, 0), self._view.sort, now), lines)
            for root in roots
            if (lines := self._branch(root))
        ]
        found.sort()
        return [line for _, lines in found for line in lines]

    def _see(self, view: View) -> None:
        """Look otherwise from now on. What is as before is not computed again: keys are to be answered at once."""
        old, self._view = self._view, view
        if (old.filter, old.show_ended, old.folds.all_open) != (view.filter, view.show_ended, view.folds.all_open):
            self._branches.clear()
        elif old.folds.others is not view.folds.others:
            for _, name in old.folds.others ^ view.folds.others:
                self._branches.pop(self.root(name), None)

    def _by_project(self, view: View) -> dict[str, dict[str, list[str]]]:
        """Share the main sessions out: project → worktree → ids."""
        groups: dict[str, dict[str, list[str]]] = {}
        for folder, roots in self._roots.items():
            place = self._places.get(folder) or guess(folder)
            if _is_asked_for(place, view):
                self.found[place.worktree] = place
                groups.setdefault(place.project, {}).setdefault(place.worktree, []).extend(roots)
        return groups

    # -- one session and its subagents -----------------------------------------------------------------

    def _branch(self, root: str) -> tuple[Line, ...]:
        found = self._branches.get(root)
        if found is None:
            lines: list[Line] = []
            self._show(self.sessions[root], 0, {root}, lines, is_asked=not self._view.words)
            found = self._branches[root] = tuple(lines)
        return found

    def _show(self, session: Session, depth: int, seen: set[str], lines: list[Line], *, is_asked: bool) -> None:
        """Add the lines of a session and of those below it. Most have nobody below, and are quickly done."""
        view = self._view
        if session.ended is not None and not view.show_ended:
            return
        is_asked = is_asked or self._is_wanted(session, view)
        names = self._children.get(session.id)
        if not names:
            if is_asked:
                lines.append(Line("session", session.id, depth))
            return
        children = [self.sessions[name] for name in names if name not in seen]
        seen.update(names)
        children.sort(key=lambda child: (child.ended is not None, child.started, child.id))
        at = len(lines)
        for child in children:
            self._show(child, depth + 1, seen, lines, is_asked=is_asked)
        below = len(lines) > at
        if not (is_asked or below):
            return
        is_open = view.folds.is_open(("session", session.id))
        if not is_open:
            del lines[at:]
        lines.insert(at, Line("session", session.id, depth, below, is_open))

    def _is_wanted(self, session: Session, view: View) -> bool:
        words = view.words
        if not words:
            return True
        known = self._texts.get(session.id)
        if known is None or known[0] is not session:
            known = self._texts[session.id] = session, text_of(session, self.place(session.id))
        return all(word in known[1] for word in words)

    # -- who belongs to whom ---------------------------------------------------------------------------

    def _link(self, session: Session) -> None:
        """Hang a session where it belongs; subagents that came before it stood alone until now."""
        if session.parent:
            self._children.setdefault(session.parent, set()).add(session.id)
        for child in self.below(session.id):
            self._settle(child)
        self._settle(session)

    def _unlink(self, session: Session) -> None:
        self._branches.pop(self.root(session.id), None)
        if kin := self._children.get(session.parent):
            kin.discard(session.id)
            if not kin:
                del self._children[session.parent]
        self._lift(session)
        for child in [self.sessions[name] for name in self._children.get(session.id, ()) if name in self.sessions]:
            self._settle(child)

    def _settle(self, session: Session) -> None:
        self._branches.pop(session.id, None)
        if self.root(session.id) == session.id:
            self._roots.setdefault(folder_of(session), set()).add(session.id)
        else:
            self._lift(session)

    def _lift(self, session: Session) -> None:
        folder = folder_of(session)
        if roots := self._roots.get(folder):
            roots.discard(session.id)
            if not roots:
                del self._roots[folder]


def folder_of(session: Session) -> str:
    """Give the folder that tells the project: it stays, where the agent itself walks about."""
    return session.project or session.cwd


def _is_asked_for(place: Place, view: View) -> bool:
    return not view.project or view.project in (place.project, place.worktree)
