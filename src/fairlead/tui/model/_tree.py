"""Computes the lines of the view: project → worktree → session → subagents. Sessions that need the user come first.

No screen, no clock, no files. Most changes move no line: then the lines are reused, and only the totals are recomputed.
Of 1 000 sessions with 10 subagents each, only the changed ones are processed again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from fairlead.tui.model._hierarchy import SessionHierarchy
from fairlead.tui.model._hosts import host_of_folder
from fairlead.tui.model._projects import Location, unknown_location
from fairlead.tui.model._selection import (
    contains_all,
    filter_lines,
    fold_lines,
    location_search_text,
    needs_attention,
    search_text,
    sort_key,
)
from fairlead.tui.model._totals import Totals, add_totals, session_totals, with_costs
from fairlead.tui.model._view import Line, View, empty_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.clients import Usage
    from fairlead.sessions import Costs, Session
    from fairlead.tui.model._hosts import HostStatus

ATTENTION_HEADING = Line("heading", "needs you")
GAP = Line("heading", "")

_STALE_CHECK = 10.0
"""Seconds between two checks which sessions have become stale."""


class LineData(NamedTuple):
    """All data for drawing a line, except the time."""

    line: Line
    session: Session | None = None
    main: Session | None = None
    """The main session of a subagent that needs the user."""
    location: Location | None = None
    waiting: int = 0
    """How many sessions and subagents below this line need the user."""
    totals: Totals | None = None
    """The totals of a host, project or worktree."""
    host: HostStatus | None = None
    is_split: bool = False
    """Whether the worktrees of this project have separate lines."""


class SessionTree:
    """All sessions, and the lines that a view shows."""

    def __init__(self, sessions: Iterable[Session] = (), locations: Mapping[str, Location] | None = None) -> None:
        self._hierarchy = SessionHierarchy()
        self.sessions = self._hierarchy.sessions
        self.root = self._hierarchy.root
        self.waiting_since: dict[str, float] = {}
        """The id of each session that needs the user → since when it does, in Unix time."""
        self.has_usage = False
        """Whether the usage of at least one session is known. If not, the columns of usage are omitted."""
        self.totals = Totals()
        """The totals of the sessions that the last view selects. Updated by `lines`."""
        self.limits: dict[str, Usage] = {}
        """Session of this host → its usage, with a report of the account's limits."""
        self.costs: Costs | None = None
        """Today's costs from the daemon. If `None`, they are computed from the known sessions."""
        self.hosts: dict[str, HostStatus] = {}
        """The other hosts of the team, by name."""
        self._locations = dict(locations or {})
        self._groups: dict[str, dict[str, list[str]]] = {}
        """Project → worktree → main sessions."""
        self._worktrees: dict[str, Location] = {}
        """The location of each worktree."""
        self._view = View()
        self._stale_check = 0.0
        self._waiting_below: Counter[str] = Counter()
        self._cost_at_midnight: dict[str, float] = {}
        """Session → its cost when the day began. Known only if the view was open then."""
        self._texts: dict[str, str] = {}
        """Session → the text that a filter searches, computed by the first search."""
        self._subtrees: dict[str, tuple[Line, ...]] = {}
        """Main session → its line and its descendants' lines, without filter and folds."""
        self._joined_texts: dict[str, str] = {}
        """Main session → its search text joined with those of its descendants."""
        self._words: tuple[str, ...] = ()
        """The words of the filter."""
        self._sort_keys: dict[str, tuple[float | str, ...]] = {}
        self._root_totals: dict[str, Totals] = {}
        self._changed_roots: set[str] = set()
        self._tree_lines: list[Line] | None = None
        self._attention_lines: list[Line] | None = None
        for session in sessions:
            self.put(session)

    # -- changes ---------------------------------------------------------------------------------------

    def put(self, session: Session) -> None:
        """Add or replace a session."""
        name, old = session.id, self.sessions.get(session.id)
        moved = self._hierarchy.put(session)
        if moved or old is None or (old.ended is None, old.started) != (session.ended is None, session.started):
            self._invalidate(moved | {self.root(name)})
        self._texts.pop(name, None)
        self._set_usage(name, session)
        if needs_attention(session):
            self.waiting_since[name] = session.since
            self._attention_lines = None
        elif self.waiting_since.pop(name, None) is not None:
            self._attention_lines = None
        self._mark_changed(self.root(name))

    def drop(self, session_id: str) -> None:
        """Remove a session. Its subagents stay until they are dropped, too."""
        if session_id in self.sessions:
            self._invalidate(self._hierarchy.drop(session_id))
            self._texts.pop(session_id, None)
            self.limits.pop(session_id, None)
            if self.waiting_since.pop(session_id, None) is not None:
                self._attention_lines = None

    def reset(self, sessions: Iterable[Session]) -> None:
        """Replace all sessions of this host. Locations, costs and the sessions of other hosts are kept."""
        view, costs, then, hosts = self._view, self.costs, self._cost_at_midnight, self.hosts
        of_other_hosts = [session for session in self.sessions.values() if session.host]
        self.__init__([*sessions, *of_other_hosts], self._locations)  # type: ignore[misc]  # resets all attributes
        self.hosts = hosts
        self._view, self._words, self.costs, self._cost_at_midnight = view, view.words, costs, then

    def set_location(self, folder: str, location: Location) -> None:
        """Set the location of a folder."""
        self._locations[folder] = location
        self._invalidate(self._hierarchy.roots.get(folder, ()))

    def _set_usage(self, name: str, session: Session) -> None:
        usage = session.usage
        if usage is None:
            return
        self.has_usage = True
        if session.host:  # may use another account
            return
        if usage.five_hour_percent is not None or usage.seven_day_percent is not None:
            self.limits[name] = usage

    def _text(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = search_text(self.sessions[name])
        return text

    def _mark_changed(self, root: str) -> None:
        self._changed_roots.add(root)
        self._joined_texts.pop(root, None)
        if self._words:
            self._tree_lines = self._attention_lines = None

    def _invalidate(self, names: Iterable[str]) -> None:
        """Discard the computed values of sessions that moved, or whose descendants changed."""
        for name in names:
            for computed in (self._subtrees, self._joined_texts, self._sort_keys, self._root_totals):
                computed.pop(name, None)
            self._changed_roots.discard(name)
            if name in self.sessions and self.root(name) == name:
                self._changed_roots.add(name)
        self._tree_lines = self._attention_lines = None

    # -- queries ---------------------------------------------------------------------------------------

    def location(self, session_id: str) -> Location:
        """Return the location of a session, for a subagent that of its main session; unknown until it is looked up."""
        session = self.sessions.get(self.root(session_id))
        return self._location_of(session.folder if session else "")

    def _location_of(self, folder: str) -> Location:
        return self._locations.get(folder) or unknown_location(folder)

    def folders(self) -> Iterable[str]:
        """Return the folders of the main sessions of this host."""
        return [folder for folder in self._hierarchy.roots if not self._host_of(folder)]

    def _host_of(self, folder: str) -> str:
        return host_of_folder(folder, self.hosts) if self.hosts else ""

    def data(self, line: Line) -> LineData:
        """Return all data for drawing a line, except the time. Lines with equal data look the same."""
        kind, name = line.key
        if kind in ("heading", "note"):
            return LineData(line)
        if kind in ("project", "worktree"):
            return self._group_data(line)
        if kind == "host":
            roots = (root for root in self._root_totals if self.sessions[root].host == name)
            totals = add_totals(self._root_totals[root] for root in roots)
            return LineData(line, waiting=totals.waiting, totals=totals, host=self.hosts.get(name))
        session = self.sessions.get(name)
        if kind != "attention" or session is None:
            return LineData(line, session, waiting=self._waiting_below[name])
        return LineData(line, session, self.sessions[self.root(name)], self.location(name))

    def _group_data(self, line: Line) -> LineData:
        location, is_project = self._worktrees.get(line.id), line.kind == "project"
        worktrees = self._groups.get(line.id if is_project or location is None else location.project, {})
        roots = [name for folder, names in worktrees.items() if is_project or folder == line.id for name in names]
        totals = add_totals(self._root_totals[name] for name in roots if name in self._root_totals)
        is_split = is_project and _is_split(line.id, worktrees)
        return LineData(line, location=location, waiting=totals.waiting, totals=totals, is_split=is_split)

    # -- lines -----------------------------------------------------------------------------------------

    def lines(self, view: View, now: float) -> list[Line]:
        """Return all lines of a view, beginning with the sessions that need the user, and update `totals`."""
        self._set_view(view, now)
        if self._attention_lines is None:
            self._waiting_below = Counter(
                above for name in self.waiting_since for above in self._hierarchy.ancestors(name)
            )
            self._attention_lines = self._make_attention_lines(now)
        self._update_changed(now)
        if self._tree_lines is None:
            self._groups, self._worktrees = self._by_project()
            self._tree_lines = [line for group in self._project_lines() for line in group]
        self.totals = add_totals(self._root_totals.values())
        if self.costs is not None:
            self.totals = with_costs(self.totals, self.costs, view.today, self._is_folder_selected)
        if not self._tree_lines and not self._attention_lines:
            return empty_lines(view, self.totals.ended)
        if not self._attention_lines:
            return self._tree_lines
        return [ATTENTION_HEADING, *self._attention_lines, GAP, *self._tree_lines]

    def _set_view(self, view: View, now: float) -> None:
        """Set the view. Discard only the computed values that depend on the change, so that keys react at once."""
        old, self._view = self._view, view
        last_check, self._stale_check = self._stale_check, now // _STALE_CHECK
        if view.today > old.today > 0:
            costs = {name: _cost_of(self.sessions[name]) for name in self._roots()}
            self._cost_at_midnight = {name: cost for name, cost in costs.items() if cost is not None}
        is_same_time = last_check == self._stale_check
        if not is_same_time or _order(old) != _order(view):
            self._changed_roots.update(self._roots())
            self._tree_lines = self._attention_lines = None
        if old.show_ended != view.show_ended:
            self._subtrees.clear()
            self._joined_texts.clear()
            self._tree_lines = None
        if self._words != view.words:
            self._words = view.words
            self._tree_lines = self._attention_lines = None
        if old.folds is not view.folds:
            self._tree_lines = None

    def _roots(self) -> Iterator[str]:
        for roots in self._hierarchy.roots.values():
            yield from roots

    def _update_changed(self, now: float) -> None:
        """Recompute the totals and sort keys of the main sessions that changed."""
        for name in self._changed_roots:
            session, waiting = self.sessions[name], self._waiting_below[name] + (name in self.waiting_since)
            key = sort_key(session, waiting, self._view, now)
            if self._sort_keys.get(name) != key:
                self._sort_keys[name] = key
                self._tree_lines = None
            if self._is_selected(self.location(name)):
                cost_then = self._cost_at_midnight.get(name)
                self._root_totals[name] = session_totals(session, waiting, self._view.today, cost_then, now)
            else:
                self._root_totals.pop(name, None)
        self._changed_roots.clear()

    def _make_attention_lines(self, now: float) -> list[Line]:
        """Return the lines of the sessions that need the user, the longest wait first and stale sessions last."""
        waiting = []
        for name, since in self.waiting_since.items():
            location = self.location(name)
            if self._is_selected(location) and contains_all(self._text(name), self._words_left(location)):
                waiting.append((self.sessions[name].is_stale(now), since, name))
        return [Line("attention", name) for _, _, name in sorted(waiting)]

    def _by_project(self) -> tuple[dict[str, dict[str, list[str]]], dict[str, Location]]:
        """Return the main sessions as project → worktree → ids, and the location of each worktree."""
        groups: dict[str, dict[str, list[str]]] = {}
        worktrees: dict[str, Location] = {}
        for folder, roots in self._hierarchy.roots.items():
            location = self._location_of(folder)
            if self._is_selected(location):
                worktrees[location.worktree] = location
                groups.setdefault(location.project, {}).setdefault(location.worktree, []).extend(roots)
        return groups, worktrees

    def _project_lines(self) -> Iterator[list[Line]]:
        names = {project: (project.rpartition("/")[2].casefold(), project) for project in self._groups}
        by_host: dict[str, list[list[Line]]] = {}
        for project in sorted(self._groups, key=names.__getitem__):
            if lines := self._lines_of_project(project, self._groups[project]):
                by_host.setdefault(self._host_of(project), []).append(lines)
        yield from by_host.pop("", ())
        for host in sorted(by_host):
            is_open = self._view.folds.is_open(("host", host))
            yield [Line("host", host, 0, True, is_open)]  # noqa: FBT003
            yield from by_host[host] if is_open else ()

    def _lines_of_project(self, project: str, worktrees: dict[str, list[str]]) -> list[Line]:
        folds, shown = self._view.folds, list[Line]()
        for folder in sorted(worktrees, key=lambda worktree: (worktree != project, worktree)):
            lines = self._session_lines(worktrees[folder], self._words_left(self._worktrees[folder]))
            if lines and _is_split(project, worktrees):
                is_open = folds.is_open(("worktree", folder))
                lines = [Line("worktree", folder, 0, True, is_open), *(lines if is_open else ())]  # noqa: FBT003
            shown += lines
        if not shown:
            return []
        is_open, depth = folds.is_open(("project", project)), int(bool(self._host_of(project)))
        return [Line("project", project, depth, True, is_open), *(shown if is_open else ())]  # noqa: FBT003

    def _session_lines(self, roots: list[str], words: tuple[str, ...]) -> list[Line]:
        ordered = sorted(roots, key=self._sort_keys.__getitem__)
        return [line for root in ordered for line in self._subtree(root, words)]

    # -- one session and its subagents -----------------------------------------------------------------

    def _subtree(self, root: str, words: tuple[str, ...]) -> Sequence[Line]:
        """Return the lines of a main session that match `words`; all lines if the session itself matches."""
        lines: Sequence[Line] | None = self._subtrees.get(root)
        if lines is None:
            made: list[Line] = []
            self._add_lines(self.sessions[root], 0, {root}, made)
            lines = self._subtrees[root] = tuple(made)
        if words and not contains_all(self._text(root), words):
            joined = self._joined_text(root, lines)  # one search excludes most sessions
            is_candidate = contains_all(joined, words)
            lines = filter_lines(lines, lambda name: contains_all(self._text(name), words)) if is_candidate else ()
        return fold_lines(lines, self._view.folds)

    def _joined_text(self, root: str, lines: Sequence[Line]) -> str:
        text = self._joined_texts.get(root)
        if text is None:
            text = self._joined_texts[root] = "\n".join([self._text(line.id) for line in lines])
        return text

    def _add_lines(self, session: Session, depth: int, seen: set[str], lines: list[Line]) -> None:
        """Append the lines of a session and its descendants.

        A subagent in the background may outlive its parent. If the parent is hidden, the subagent is shown below the
        nearest visible ancestor. `seen` has the ids that were added already.
        """
        is_hidden = session.ended is not None and not self._view.show_ended
        at, below = len(lines), depth if is_hidden else depth + 1
        if names := self._hierarchy.children(session.id):
            children = [self.sessions[name] for name in names if name not in seen]
            seen.update(names)
            children.sort(key=lambda child: (child.ended is not None, child.started, child.id))
            for child in children:
                self._add_lines(child, below, seen, lines)
        if not is_hidden:
            lines.insert(at, Line("session", session.id, depth, len(lines) > at))

    def _is_folder_selected(self, folder: str) -> bool:
        return self._is_selected(self._location_of(folder))

    def _is_selected(self, location: Location) -> bool:
        """Return whether the view shows a location. On other hosts only folder names are compared: paths differ."""
        wanted = self._view.project
        if wanted and self._host_of(location.project):
            return wanted.rpartition("/")[2] == location.project.rpartition("/")[2]
        return not wanted or wanted in {location.project, location.worktree}

    def _words_left(self, location: Location) -> tuple[str, ...]:
        """Return the words of the filter that a location does not contain."""
        text = f"{location_search_text(location)}\n{self._host_of(location.project)}" if self._words else ""
        return tuple(word for word in self._words if word not in text)


def _order(view: View) -> tuple[object, ...]:
    return view.sort, view.is_reversed, view.project, view.today


def _is_split(project: str, worktrees: Mapping[str, object]) -> bool:
    """Return whether the worktrees of a project have separate lines; `False` if the main folder is the only one."""
    return len(worktrees) > 1 or project not in worktrees


def _cost_of(session: Session) -> float | None:
    return session.usage.cost_usd if session.usage else None
