"""The screens of the history: the list of sessions, one session with its events, the summary of an absence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich.segment import Segment
from textual.containers import Container
from textual.screen import ModalScreen, Screen
from textual.strip import Strip

from fairlead.errors import FairleadError
from fairlead.sessions import HistoryPage
from fairlead.text import fit
from fairlead.tui.model._history import (
    HistoryLine,
    HistoryView,
    absence_lines,
    headings,
    history_lines,
    longest,
    session_lines,
    title,
)
from fairlead.tui.widgets._filter import FilterInput
from fairlead.tui.widgets._lines import ScrollingLines, TextLine, TextLines

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.events import Click, Key, Resize

    from fairlead.sessions import AbsenceSummary, SessionHistory
    from fairlead.tui._history import HistorySource
    from fairlead.tui.model._layout import StyledText
    from fairlead.tui.widgets._themes import Palette

_HINTS = " Enter open  1 today  2 since you left  3 all  b by project  / search  Esc back"
_SESSION_HINTS = " j k scroll  Esc back"
_MOVES = {
    **dict.fromkeys(("j", "down"), 1),
    **dict.fromkeys(("k", "up"), -1),
    **dict.fromkeys(("ctrl+d", "pagedown"), 10),
    **dict.fromkeys(("ctrl+u", "pageup"), -10),
    **dict.fromkeys(("G", "end"), 1_000_000),
    **dict.fromkeys(("g", "home"), -1_000_000),
}
_BACK = frozenset({"escape", "q", "H", "ctrl+c"})


class HistoryList(ScrollingLines, can_focus=True, inherit_bindings=False):
    """Shows the lines of the history, one of which is selected."""

    DEFAULT_CSS = "HistoryList { height: 1fr; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self._lines: list[HistoryLine] = []
        self._index = 0

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    @property
    def selected(self) -> str:
        """The id of the selected session; "" if none is."""
        return self._lines[self._index].id if self._index < len(self._lines) else ""

    @property
    def text(self) -> str:
        """The text of all lines."""
        return "\n".join("".join(piece for piece, _ in line.pieces) for line in self._lines)

    def show(self, lines: list[HistoryLine]) -> None:
        """Show lines, and select the first one that can be selected."""
        self._lines, self.top = lines, 0
        self._index = next((number for number, line in enumerate(lines) if line.id), 0)
        self.draw_all()

    def move(self, by: int) -> None:
        """Select the session about `by` lines further down; up if `by` is negative."""
        step, goal = (1 if by > 0 else -1), max(0, min(self.count - 1, self._index + by))
        candidates = (*range(goal, self.count if step > 0 else -1, step), *range(goal, self._index, -step))
        self._index = next((number for number in candidates if self._lines[number].id), self._index)
        height = max(1, self.size.height)
        if self._index <= self.top:
            self.scroll_to_line(0 if self._index <= 1 else self._index)
        elif self._index >= self.top + height:
            self.scroll_to_line(self._index - height + 1)
        self.draw_changes()

    def strip(self, index: int, cells: int) -> Strip:
        """Return a line as it is drawn, exactly `cells` cells wide."""
        line, is_selected = self._lines[index], index == self._index and bool(self._lines[index].id)
        pieces: list[StyledText] = list(line.pieces)
        if is_selected and pieces[0][0].startswith(" "):
            pieces[:1] = [(">", "group"), (pieces[0][0][1:], pieces[0][1])]
        style = partial(self.palette.style, is_selected=is_selected)
        strip = Strip([Segment(text, style(name)) for text, name in pieces if text])
        if strip.cell_length > cells > 0:
            strip = Strip([*strip.crop(0, cells - 1), Segment("…", style("dim"))])
        return strip.adjust_cell_length(cells, style("plain"))

    def on_resize(self, _event: Resize) -> None:
        """Draw everything for the new width."""
        self.draw_all()


class HistoryScreen(Screen[None]):
    """Shows the sessions of today, since the user left, or all stored ones, with a search."""

    def __init__(
        self, palette: Palette, source: HistorySource, view: HistoryView, project_of: Callable[[str], str]
    ) -> None:
        super().__init__()
        self._palette = palette
        self._source = source
        self._view = view
        self._project_of = project_of
        self._page = HistoryPage(since=0.0)
        self._title_line = TextLine(palette, id="history-title")
        self._headings = TextLine(palette, id="history-headings")
        self.list = HistoryList(palette)
        self._hint_line = TextLine(palette, id="history-hints")
        self._search = FilterInput(palette, id="history-search")

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom."""
        yield from (self._title_line, self._headings, self.list, self._search, self._hint_line)

    def on_mount(self) -> None:
        """Request the first page."""
        self.list.focus()
        self._load()

    def on_resize(self, _event: Resize) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self._draw)

    def _set(self, view: HistoryView) -> None:
        if view != self._view:
            self._view = view
            self._load()

    def _load(self) -> None:
        self.run_worker(self._fetch(), group="history", exclusive=True)

    async def _fetch(self) -> None:
        try:
            self._page = await self._source.find(self._view)
        except (FairleadError, ValueError) as error:
            self.list.show([HistoryLine("", [(f"   {error}", "needs")])])
            return
        self._draw()

    def _draw(self) -> None:
        cells = self.size.width
        self._title_line.show(title(self._page, self._view))
        self._headings.show([(fit(headings(self._view, cells), cells), "dim")])
        if self._page.now:
            self.list.show(history_lines(self._page, self._view, cells, self._project_of))
        self._hint_line.show([(fit(_HINTS, cells), "dim")])

    def on_key(self, event: Key) -> None:
        """Perform the action of a key."""
        event.stop()
        event.prevent_default()
        key = event.character if event.character and event.character.isprintable() else event.key
        views = {
            "1": replace(self._view, since="today"),
            "2": replace(self._view, since="left"),
            "3": replace(self._view, since="0"),
        }
        if event.key in _MOVES or key in _MOVES:
            self.list.move(_MOVES.get(key) or _MOVES[event.key])
        elif key in views:
            self._set(views[key])
        elif key == "b":
            self._view = replace(self._view, by_project=not self._view.by_project)
            self._draw()
        elif key == "/":
            self._search.edit(self._view.search)
        elif event.key == "enter" and self.list.selected:
            self.app.push_screen(SessionHistoryScreen(self._palette, self._source, self.list.selected))
        elif key in _BACK:
            self._back()

    def _back(self) -> None:
        """Clear the search, or close the history."""
        if self._view.search:
            self._set(replace(self._view, search=""))
        else:
            self.dismiss()

    def on_filter_input_changed(self, event: FilterInput.Changed) -> None:
        """Search while the user types."""
        event.stop()
        self._set(replace(self._view, search=event.value.strip()))

    def on_filter_input_closed(self, event: FilterInput.Closed) -> None:
        """Return to the list."""
        event.stop()
        self.list.focus()


class SessionHistoryScreen(Screen[None]):
    """Shows one session with its events."""

    def __init__(self, palette: Palette, source: HistorySource, session_id: str) -> None:
        super().__init__()
        self._source = source
        self._session_id = session_id
        self._title_line = TextLine(palette, id="history-title")
        self.lines = TextLines(palette, follows_end=False)
        self._hint_line = TextLine(palette, id="history-hints")

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom."""
        yield from (self._title_line, self.lines, self._hint_line)

    def on_mount(self) -> None:
        """Request the session."""
        self._title_line.show([(f" session {self._session_id}", "group")])
        self._hint_line.show([(_SESSION_HINTS, "dim")])
        self.run_worker(self._fetch(), exclusive=True)

    async def _fetch(self) -> None:
        try:
            history: SessionHistory = await self._source.session(self._session_id)
        except (FairleadError, ValueError) as error:
            self.lines.show([[(f" {error}", "needs")]])
            return
        self.lines.show(session_lines(history, history.session.last))

    def on_key(self, event: Key) -> None:
        """Scroll or go back."""
        event.stop()
        event.prevent_default()
        key = event.character if event.character and event.character.isprintable() else event.key
        if event.key in _MOVES or key in _MOVES:
            self.lines.scroll_to_line(self.lines.top + (_MOVES.get(key) or _MOVES[event.key]))
        elif key in _BACK:
            self.dismiss()


class AbsenceScreen(ModalScreen[bool]):
    """Shows the summary of the user's absence. Enter opens the history, and any other key closes the summary."""

    DEFAULT_CSS = """
    AbsenceScreen { align: center middle; }
    AbsenceScreen Container {
        width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        border: round $primary; background: $background;
    }
    AbsenceScreen TextLines { max-width: 100%; max-height: 100%; }
    """

    def __init__(self, palette: Palette, absence: AbsenceSummary, project_of: Callable[[str], str]) -> None:
        super().__init__()
        self._text = TextLines(palette, follows_end=False)
        hint: list[StyledText] = [(" Enter shows the history, any other key goes on", "dim")]
        self._content: list[list[StyledText]] = [*absence_lines(absence, project_of), [("", "plain")], hint]

    def compose(self) -> ComposeResult:
        """Yield the text in a box."""
        with Container():
            yield self._text

    def on_resize(self, event: Resize) -> None:
        """Lay out the text for the new size."""
        self._text.styles.height = min(len(self._content), max(1, event.size.height - 2))
        self._text.styles.width = min(1 + longest(self._content), max(1, event.size.width - 5))
        self._text.show(self._content)

    def on_key(self, event: Key) -> None:
        """Close the summary. Enter also opens the history."""
        event.stop()
        event.prevent_default()
        self.dismiss(event.key == "enter")

    def on_click(self, _event: Click) -> None:
        """Close the summary."""
        self.dismiss(False)  # noqa: FBT003 - Textual's signature
