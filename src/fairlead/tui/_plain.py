"""Returns the view, or parts of it, as plain text for pipes and other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.text import one_line
from fairlead.tui.model._hosts import HostStatus, TeamSessions
from fairlead.tui.model._layout import column_headings, columns, layout_row, summary
from fairlead.tui.model._projects import find_location
from fairlead.tui.model._quota import quota_texts
from fairlead.tui.model._rows import activity_text, display_name, evidence_text, make_row
from fairlead.tui.model._tree import SessionTree
from fairlead.tui.model._view import View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.sessions import Costs, HostSessions, Session
    from fairlead.tui.model._totals import Totals


def plain_view(
    sessions: Iterable[Session],
    view: View,
    now: float,
    cells: int,
    costs: Costs | None = None,
    *,
    hosts: Iterable[HostSessions] = (),
) -> list[str]:
    """Return the view as lines of at most `cells` cells: the summary, the headings and the rows.

    Reads the projects and branches of all folders. `costs` are the daemon's costs of today; without them they are
    computed from the sessions. `hosts` has the sessions of other hosts.
    """
    tree = SessionTree(sessions)
    team = TeamSessions(tree)
    for host in hosts:
        team.put(host.host, host.sessions, HostStatus(now - host.age, host.left_out), now)
    tree.costs = costs
    for folder in {*tree.folders(), *(cost.folder for cost in (costs.sessions if costs else ()))}:
        tree.set_location(folder, find_location(folder))
    cols = columns(cells, has_usage=tree.has_usage)
    lines = tree.lines(view, now)
    rows = ["".join(text for text, _ in layout_row(make_row(tree.data(line), now), cols)) for line in lines]
    quota = quota_texts(tree.limits.values(), now)
    first = "".join(text for text, _ in summary(tree.totals, cells, "", quota))
    return [line.rstrip() for line in (first, "", column_headings(cols, view), *rows)]


def count_sessions(sessions: Iterable[Session], now: float) -> tuple[Totals, list[Session]]:
    """Return the totals of the view, and the sessions and subagents that need the user.

    The session that has waited longest comes first, and stale sessions come last.
    """
    tree = SessionTree(sessions)
    waiting = [line.id for line in tree.lines(View(), now) if line.kind == "attention"]
    return tree.totals, [tree.sessions[name] for name in waiting]


def row_texts(session: Session) -> tuple[str, str, str]:
    """Return a session's name, its activity, and the event from which its state is known."""
    return display_name(session), activity_text(session), evidence_text(session)


def folder_name(session: Session) -> str:
    """Return the name of the folder that a session works in; `no folder` if it is not known."""
    return one_line(session.folder.rstrip("/").rpartition("/")[2]) or "no folder"
