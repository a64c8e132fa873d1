"""`fairlead watch` itself: takes news in, draws at most a dozen times a second, and does what keys ask for."""

from __future__ import annotations

from asyncio import get_running_loop
from functools import partial
from time import localtime, mktime, monotonic, time
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual.app import App
from textual.containers import Container

from fairlead.text import fit, width
from fairlead.tui._actions import Actions
from fairlead.tui._source import Changed, Gone, Link, News, Reset, Source
from fairlead.tui.model._detail import detail_of
from fairlead.tui.model._family import folder_of
from fairlead.tui.model._keys import hints
from fairlead.tui.model._layout import columns, headings, summary
from fairlead.tui.model._projects import Place, ProjectLocator, find_place
from fairlead.tui.model._tree import Tree
from fairlead.tui.model._view import View
from fairlead.tui.widgets._bar import Bar
from fairlead.tui.widgets._filter import FilterBox
from fairlead.tui.widgets._list import SessionList
from fairlead.tui.widgets._panel import Panel
from fairlead.tui.widgets._themes import THEMES, Palette

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.events import Resize

PACE = 0.08
"""Seconds between two drawings, at the least: so much that a change is on the screen within a tenth of a second. The
first change after a pause is drawn at once."""

BLINK = 0.5
_SURVEY = 20
"""Blinks between two looks at what only time changes: the day, who is stale, branches."""

_BARS = ("summary", "link", "headings", "name", "known", "where", "hints")
_SHORT = 8
"""Below this height, headings are left out."""

_LOW = 12
"""Below this height, a panel leaves the list one line."""

_WIDE = 110
"""From this width on, the panel stands beside the list."""


class WatchApp(App[None]):
    """The live view."""

    ENABLE_COMMAND_PALETTE = False
    CSS: ClassVar[str] = """
    Screen { background: $background; overflow: hidden; }
    #middle { height: 1fr; layout: horizontal; }
    #middle.stacked { layout: vertical; }
    #middle.stacked Panel { width: 100%; height: 50%; border-left: none; border-top: solid $panel; }
    #middle.low.stacked.open SessionList { height: 1; }
    #middle.low.stacked.open Panel { height: 1fr; border-top: none; }
    #link { display: none; }
    """

    def __init__(  # noqa: PLR0913 - a test holds the clock and the folders
        self,
        source: Source | None,
        view: View | None = None,
        *,
        theme: str = "dark",
        clock: Callable[[], float] = time,
        look: Callable[[str], Place] = find_place,
        blinks: bool = True,
    ) -> None:
        super().__init__(ansi_color=THEMES[theme].ansi)
        self.source = source
        self.view = view or View()
        self.team = Tree()
        self.clock = clock
        self.palette = Palette(THEMES[theme])
        self.link = Link(is_live=source is None, words="live" if source is None else "connecting")
        self.draws = 0
        self._look = THEMES[theme]
        self._blinks = blinks
        self._is_lit = True
        self._ticks = 0
        self._drawn = 0.0
        self._is_due = False
        self._message = ""
        self._high = 0
        self._surveyor = ProjectLocator(self._found_place, look)
        self.actions = Actions(self)
        self.bars = {name: Bar(self.palette, id=name) for name in _BARS}
        self.list = SessionList(self.palette)
        self.panel = Panel(self.palette)
        self.middle = Container(id="middle")
        self.box = FilterBox(self.palette, id="filter")

    def compose(self) -> ComposeResult:
        """Put the parts together, from top to bottom."""
        yield from (self.bars[name] for name in ("summary", "link", "headings"))
        with self.middle:
            yield self.list
            yield self.panel
        yield from (self.bars[name] for name in ("name", "known", "where"))
        yield self.box
        yield self.bars["hints"]

    def on_mount(self) -> None:
        """Begin."""
        self.register_theme(self._look)
        self.theme = self._look.name
        self.list.focus()
        self.set_interval(BLINK, self._tick)
        if self.source is not None:
            following = partial(self.source.run, self.deliver)
            self.run_worker(following, group="source")  # type: ignore[arg-type]  # as Textual documents it
        self.draw()

    # -- what happens ----------------------------------------------------------------------------------

    def deliver(self, news: News) -> None:
        """Take news in: at once into the tree, and onto the screen when the pace allows."""
        if isinstance(news, Changed):
            self.team.put(news.session)
            self._surveyor.ask(folder_of(news.session), self.clock())
        elif isinstance(news, Gone):
            self.team.drop(news.id)
        elif isinstance(news, Reset):
            self.team.reset(news.sessions)
            self._survey()
        else:
            self.link = news
        self.soon()

    def soon(self) -> None:
        """Draw what there is: now, or when a moment has passed since the last time."""
        if self._is_due or not self.is_running:
            return
        self._is_due = True
        wait = self._drawn + PACE - monotonic()
        if wait > 0:
            get_running_loop().call_later(wait, self.call_later, self.draw)
        else:
            self.call_later(self.draw)

    def _survey(self) -> None:
        for folder in tuple(self.team.folders()):
            self._surveyor.ask(folder, self.clock())

    def _found_place(self, folder: str, place: Place) -> None:
        """Learn where a folder is; told in the surveyor's thread."""
        if self.is_running:
            self.call_later(self._settle, folder, place)

    def _settle(self, folder: str, place: Place) -> None:
        self.team.set_place(folder, place)
        self.soon()

    def _tick(self) -> None:
        """Let time pass."""
        self._ticks += 1
        self._is_lit = not self._blinks or not self._is_lit
        if self._ticks % _SURVEY == 0:
            self._survey()
            self.soon()
        now = self.clock()
        self.list.tick(now, is_lit=self._is_lit)
        self._draw_detail(now)
        self.actions.tick()

    # -- what is drawn ---------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw what has changed since the last time."""
        self._is_due, self._drawn = False, monotonic()
        self.draws += 1
        now = self.clock()
        today = _day_of(now)
        if today != self.view.today:
            self.view = replace(self.view, today=today)
        lines = self.team.lines(self.view, now)
        if self.size.height < _SHORT:
            lines = [line for line in lines if line.kind != "heading"]
        self.list.show(lines, self.team, now)
        self._draw_bars(now)

    def _draw_bars(self, now: float) -> None:
        cells = self.size.width
        words = self.link.words if self.link.is_live else "offline"
        self.bars["summary"].show(summary(self.team.sums, cells, words))
        link = self.bars["link"]
        link.display = not self.link.is_live and self.size.height > 3  # noqa: PLR2004 - the list needs the rest
        link.show([(fit(f" {self.link.words}", cells), "needs")])
        cols = columns(self.list.cells or cells, has_usage=self.team.has_usage)
        self.bars["headings"].show([(fit(headings(cols) if self.team.sessions else "", cells), "dim")])
        self._draw_detail(now)
        self._draw_hints()

    def _draw_detail(self, now: float) -> None:
        cells, detail = self.size.width, detail_of(self.list.chosen, self.team, now)
        name = fit(detail.name, min(width(detail.name), max(0, cells - 6)))
        rule = "─" * max(0, cells - width(name) - 4)
        self.bars["name"].show(
            [("─ ", "dim"), (name, "group"), (f" {rule}─", "dim")] if name else [("─" * cells, "dim")]
        )
        self.bars["known"].show([(fit(f" {detail.known}", cells), "plain")])
        self.bars["where"].show([(fit(f" {detail.where}", cells), "dim")])

    def _draw_hints(self) -> None:
        cells, told = self.size.width, self._message
        if not told and self.view.filter:
            told = f"filter: {self.view.filter}   (Esc shows all again)"
        pieces = [(fit(f" {told}", cells), "plain")] if told else [(fit(hints(cells, self.view.sort), cells), "dim")]
        self.bars["hints"].show(pieces)  # type: ignore[arg-type]  # both are parts

    def say(self, message: str) -> None:
        """Say something in the last line, until the next key."""
        self._message = message
        self._show_hints()
        self._draw_hints()

    def on_resize(self, event: Resize) -> None:
        """Leave out what there is no room for."""
        wide, high = event.size
        self._high = high
        self.bars["headings"].display = high >= 10 and wide >= 44  # noqa: PLR2004 - what fits
        for name in ("name", "known", "where"):
            self.bars[name].display = high >= 15  # noqa: PLR2004 - likewise
        self._show_hints()
        self.middle.set_class(wide < _WIDE, "stacked")
        self.middle.set_class(high < _LOW, "low")

    def on_session_list_resized(self) -> None:
        """Draw for the room that there is."""
        self.draw()

    # -- the person ------------------------------------------------------------------------------------

    def on_session_list_asked(self, asked: SessionList.Asked) -> None:
        """Do what a key asks for."""
        if self._message:
            self.say("")
        self.actions.perform(asked.does)

    def on_session_list_chosen(self) -> None:
        """Tell about another line."""
        self._draw_detail(self.clock())
        self.actions.chosen()

    def see(self, view: View) -> None:
        """Show it otherwise."""
        self.view = view
        self.draw()

    def on_filter_box_changed(self, event: FilterBox.Changed) -> None:
        """Filter while it is typed."""
        self.see(replace(self.view, filter=event.value))

    def on_filter_box_left(self) -> None:
        """Go back to the list, with what the filter left."""
        self._show_hints()
        self.list.focus()
        self._draw_hints()

    def ask_filter(self) -> None:
        """Let the person type a filter, where the hints are otherwise."""
        self.box.ask(self.view.filter)
        self._show_hints()

    def clear_filter(self) -> None:
        """Show all again."""
        self.see(replace(self.view, filter=""))

    def _show_hints(self) -> None:
        """Let the last line be there if it has something to say that cannot wait, or if there is room."""
        is_wanted = self._high >= 7 or bool(self._message)  # noqa: PLR2004 - what fits
        self.bars["hints"].display = is_wanted and not self.box.display


def _day_of(now: float) -> float:
    """Give the time at which the day began, where the person is."""
    day = localtime(now)
    return mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
