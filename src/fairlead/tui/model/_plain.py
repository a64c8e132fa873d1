"""The view as plain text, for pipes: what is on the screen, without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.text import harmless
from fairlead.tui.model._layout import columns, headings, laid_out, summary
from fairlead.tui.model._projects import find_place
from fairlead.tui.model._rows import name_of, row_of, seen_of, what_of
from fairlead.tui.model._tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.sessions import Session
    from fairlead.tui.model._view import View


def plain_view(sessions: Iterable[Session], view: View, now: float, cells: int) -> list[str]:
    """Give the lines of the view, so many cells wide at most."""
    tree = Tree(sessions)
    for folder in list(tree.folders()):
        tree.set_place(folder, find_place(folder))
    cols = columns(cells, has_usage=tree.has_usage)
    lines = tree.lines(view, now)
    rows = ["".join(text for text, _ in laid_out(row_of(tree.facts(line), now), cols)) for line in lines]
    told = "".join(text for text, _ in summary(tree.sums, cells, ""))
    return [line.rstrip() for line in (told, "", headings(cols), *rows)]


def row_texts(session: Session) -> tuple[str, str, str]:
    """Say who a session is, what it is doing, and how that is known."""
    return name_of(session), what_of(session), seen_of(session)


def project_of(session: Session) -> str:
    """Name the folder that a session works in, by its last part."""
    folder = session.project or session.cwd
    return harmless(folder.rstrip("/").rpartition("/")[2]) or "no folder"


def plain_text(text: str) -> str:
    """Make a text harmless that came from outside."""
    return harmless(text)
