"""The lines of the history: sessions, search results, the events of one session, the summary of an absence."""

from __future__ import annotations

from time import localtime, strftime
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from fairlead.text import cell_width, cost_or_unknown, cost_text, duration, fit, one_line, start_of_day

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairlead.sessions import AbsenceSummary, HistoryPage, HistorySession, SessionHistory, TimelineEntry
    from fairlead.tui._source import TimelineEvent
    from fairlead.tui.model._layout import StyledText, StyleName

Since: TypeAlias = Literal["today", "left", "0"]
"""The period of a history: today, since the user left, or all that is stored."""

_TITLES: dict[str, str] = {"today": "today", "left": "since you left", "0": "all that is kept"}
_EMPHASIZED = frozenset({"blocked", "failed", "asked"})
_WIDE = 110
"""From this width on, blocked events and subagents have separate columns."""
_PROJECT, _WIDE_PROJECT = 12, 20
_EVENT, _TOOL, _VERDICT = 18, 10, 8
_TIMELINE_TOOL = 12
_MAX_ENDED = 8


class HistoryView(msgspec.Struct, frozen=True):
    """The period, grouping and search of a history."""

    since: Since = "today"
    by_project: bool = False
    search: str = ""
    folder: str = ""
    """Only sessions in this folder or below it."""


class HistoryLine(NamedTuple):
    """One line of the history. `id` is the session that the line opens; "" if the line cannot be selected."""

    id: str
    pieces: list[StyledText]


def title(page: HistoryPage, view: HistoryView) -> list[StyledText]:
    """Return the first line of the screen: the period or search, and the totals."""
    period = _TITLES[view.since]
    if view.search:
        found = f"{len(page.matches)}{'+' if page.next else ''} found"
        return [(f" history, {period}", "group"), (f"   {found}: {one_line(view.search)}", "plain")]
    running = sum(session.ended is None for session in page.sessions)
    number = f"{len(page.sessions)}{'+' if page.next else ''}"
    cost = cost_text(page.usd, page.unknown)
    sums = f"   {number} session{'' if number == '1' else 's'}   {running} running   {cost}"
    since = f" (since {_clock(page.since, page.now)})" if view.since == "left" and page.since else ""
    return [(f" history, {period}{since}", "group"), (sums, "plain")]


def headings(view: HistoryView, cells: int) -> str:
    """Return the headings of the columns, for a line of `cells` cells."""
    if view.search:
        return "   time         what     text"
    more = "  blocked  subagents" if cells >= _WIDE else "     "
    return f"   started       lasted     cost  calls{more}  {fit('project', _project_width(cells))}  asked to do"


def history_lines(
    page: HistoryPage, view: HistoryView, cells: int, project_of: Callable[[str], str]
) -> list[HistoryLine]:
    """Return the lines of a page. `project_of` returns the project that a folder belongs to."""
    if view.search:
        lines = list(_match_lines(page, project_of))
    elif view.by_project:
        lines = list(_lines_by_project(page, cells, project_of))
    else:
        lines = [_session_line(session, page.now, cells, project_of) for session in page.sessions]
    if page.next:
        lines.append(HistoryLine("", [("   there is more: a search, or `fairlead history`, finds it", "dim")]))
    return lines or [HistoryLine("", [(f"   {_nothing(view)}", "dim")])]


def session_lines(history: SessionHistory, now: float) -> list[list[StyledText]]:
    """Return the lines of a session: its counts and costs, its subagents, and its events, the newest last."""
    session = history.session
    reason = one_line(session.end_reason)
    end = "it runs" if session.ended is None else f"ended {_clock(session.ended, now)} {reason}".rstrip()
    counts = (
        f" {session.tools} calls, {session.failures} failed, {session.blocked} blocked, asked {session.asked} times"
    )
    length = duration((now if session.ended is None else session.ended) - session.started)
    lines: list[list[StyledText]] = [
        [(f" {one_line(session.prompt)}" if session.prompt else " no prompt", "plain")],
        [(f" {one_line(session.folder)}", "dim")],
        [(f" started {_clock(session.started, now)}, {end}, {length}, {cost_text(session.total_usd)}", "plain")],
        [(counts, "plain")],
    ]
    for agent in history.subagents:
        lasted = "runs" if agent.ended is None else duration(agent.ended - agent.started)
        name = f"{one_line(agent.type)} {one_line(agent.id)}"
        lines.append([(f" subagent {name}  {_clock(agent.started, now)}  {lasted}", "dim")])
    lines.append([("", "plain")])
    if history.next:
        lines.append([(" earlier events: `fairlead history --session`", "dim")])
    return [*lines, *(_entry_pieces(entry, now) for entry in history.timeline)]


def absence_lines(absence: AbsenceSummary, project_of: Callable[[str], str]) -> list[list[StyledText]]:
    """Return the lines of the summary of the user's absence."""
    away, now = duration(absence.now - absence.since), absence.now
    cost = cost_text(absence.usd, absence.unknown)
    sums = f" {absence.active} session{'' if absence.active == 1 else 's'} worked, {cost}"
    lines: list[list[StyledText]] = [[(f" You were away for {away}.", "group")], [(sums, "plain")]]
    if absence.waiting:
        need = "1 session needs" if len(absence.waiting) == 1 else f"{len(absence.waiting)} sessions need"
        lines.append([(f" ! {need} you now", "needs")])
    if absence.asked:
        lines.append([(f" you were asked {absence.asked} time{'' if absence.asked == 1 else 's'}", "plain")])
    if absence.ended:
        lines += [[("", "plain")], [(f" ended: {len(absence.ended)}", "group")]]
        lines += [_ended_pieces(session, now, project_of) for session in absence.ended[:_MAX_ENDED]]
        if len(absence.ended) > _MAX_ENDED:
            lines.append([(f"   and {len(absence.ended) - _MAX_ENDED} more", "dim")])
    if absence.blocked:
        lines += [[("", "plain")], [(f" blocked: {absence.blocked}", "group")]]
        lines += [_entry_pieces(entry, now) for entry in absence.examples]
    return lines


def _ended_pieces(session: HistorySession, now: float, project_of: Callable[[str], str]) -> list[StyledText]:
    ended = _clock(session.ended or session.last, now)
    figures = f"   {ended}  {cost_or_unknown(session.cost_usd):>7}  {fit(_name(project_of(session.folder)), _PROJECT)}"
    reason = f"  ({one_line(session.end_reason)})" if session.end_reason else ""
    return [(figures, "plain"), (f"  {one_line(session.prompt)}", "plain"), (reason, "dim")]


def _session_line(
    session: HistorySession, now: float, cells: int, project_of: Callable[[str], str], *, is_grouped: bool = False
) -> HistoryLine:
    state: StyledText = ("   ", "plain") if session.ended is not None else (" ● ", "working")
    length = duration((now if session.ended is None else session.ended) - session.started)
    cost = cost_or_unknown(session.cost_usd)
    figures = f"{fit(_clock(session.started, now), 12)}  {length:>6}  {cost:>7}  {session.tools:>5}"
    blocked: StyleName = "tight" if session.blocked else "dim"
    pieces: list[StyledText] = [state, (figures, "plain")]
    if cells >= _WIDE:
        pieces += [(f"  {session.blocked or '-':>7}", blocked), (f"  {session.subagents or '-':>9}", "dim")]
    else:
        pieces.append((f"{f'{session.blocked}!' if session.blocked else '':>5}", blocked))
    project = "" if is_grouped else fit(_name(project_of(session.folder)), _project_width(cells))
    pieces += [(f"  {project}" if project else "", "dim"), (f"  {one_line(session.prompt) or '-'}", "plain")]
    return HistoryLine(session.id, pieces)


def _lines_by_project(page: HistoryPage, cells: int, project_of: Callable[[str], str]) -> Iterator[HistoryLine]:
    groups: dict[str, list[HistorySession]] = {}
    for session in page.sessions:
        groups.setdefault(project_of(session.folder), []).append(session)
    for project, sessions in sorted(groups.items(), key=lambda item: (_name(item[0]).casefold(), item[0])):
        known = [session.cost_usd for session in sessions if session.cost_usd is not None]
        cost = cost_text(sum(known) if known else None, len(sessions) - len(known))
        number = f"{len(sessions)} session{'' if len(sessions) == 1 else 's'}"
        yield HistoryLine("", [(f" {_name(project)}", "group"), (f"   {number}   {cost}", "plain")])
        for session in sessions:
            yield _session_line(session, page.now, cells, project_of, is_grouped=True)


def _match_lines(page: HistoryPage, project_of: Callable[[str], str]) -> Iterator[HistoryLine]:
    last = ""
    for match in page.matches:
        if match.session != last:
            last = match.session
            yield HistoryLine("", [(f" {_name(project_of(match.folder))}  {one_line(match.session)}", "group")])
        text = f"   {fit(_clock(match.at, page.now), 12)} {match.kind:<7}  "
        yield HistoryLine(match.session, [(text, "dim"), (one_line(match.text), "plain")])


def _entry_pieces(entry: TimelineEntry, now: float) -> list[StyledText]:
    verdict = "" if entry.verdict == "none" else one_line(entry.verdict)
    style: StyleName = "tight" if verdict in _EMPHASIZED else "dim"
    agent = f"[{one_line(entry.agent)[:8]}] " if entry.agent else ""
    return [
        (f" {_clock(entry.at, now, with_seconds=True)}  ", "dim"),
        (f"{fit(one_line(entry.event), _EVENT)} {fit(one_line(entry.tool), _TOOL)} ", "plain"),
        (fit(verdict, _VERDICT), style),
        (f" {agent}{one_line(entry.text)}", "plain"),
        (f"  {one_line(entry.reason)}" if entry.reason else "", style),
    ]


def _nothing(view: HistoryView) -> str:
    if view.search:
        return "nothing found; Esc clears the search"
    return "no session; press 3 for all that is kept" if view.since != "0" else "no session yet"


def _project_width(cells: int) -> int:
    return _WIDE_PROJECT if cells >= _WIDE else _PROJECT


def _name(folder: str) -> str:
    return one_line(folder.rstrip("/").rpartition("/")[2]) or "no folder"


def _clock(at: float, now: float, *, with_seconds: bool = False) -> str:
    """Return a local time of day, with the date if it is before today. If `now` is 0, there is no date."""
    clock = "%H:%M:%S" if with_seconds else "%H:%M"
    is_today = not now or start_of_day(now) <= at
    return strftime(clock if is_today else f"%m-%d {clock}", localtime(at))


def longest(lines: Sequence[Sequence[StyledText]]) -> int:
    """Return the width of the longest line, in cells."""
    return max((cell_width("".join(text for text, _ in line)) for line in lines), default=0)


# -- the latest events of a session in the view ----------------------------------------------------------------


def timeline_lines(events: Sequence[TimelineEvent]) -> list[list[StyledText]]:
    """Return a line for each event, in the given order; without events, a line that says so."""
    return [list(_event_line(event)) for event in events] or [[(" no events yet", "dim")]]


def _event_line(event: TimelineEvent) -> Iterator[StyledText]:
    verdict = one_line(event.verdict or "")
    emphasis: StyleName = "needs" if verdict in _EMPHASIZED else "dim"
    yield f" {strftime('%H:%M:%S', localtime(event.at))}  ", "dim"
    yield f"{fit(one_line(event.event), _EVENT)} ", "plain"
    tool = one_line(event.tool or event.agent or "")
    yield fit(tool, max(_TIMELINE_TOOL, min(cell_width(tool), 2 * _TIMELINE_TOOL))), "plain"
    if verdict not in ("", "none"):
        yield f" {verdict}", emphasis
    if event.exit:
        yield f" exit {event.exit}", emphasis
    if event.seconds and event.seconds >= 1:
        yield f" {event.seconds:.0f}s", "dim"
    if event.reason:
        yield f" {one_line(event.reason)}", "dim"
