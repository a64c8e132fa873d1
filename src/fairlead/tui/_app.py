"""The application of `fairlead watch`: receives updates, draws them at a limited rate, and reacts to keys."""

from __future__ import annotations

from asyncio import get_running_loop
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual.app import App
from textual.containers import Container

from fairlead.paths import socket_file
from fairlead.text import cell_width, fit, start_of_day, wrap_line
from fairlead.tui._actions import Actions
from fairlead.tui._history import HistoryControl
from fairlead.tui._mail import MailCounted, UserMail
from fairlead.tui._questions import FullQuestions
from fairlead.tui._source import ConnectionStatus, CostsChanged, SessionChanged, SessionRemoved, SessionsReset, Update
from fairlead.tui._team_source import HostChanged, LastContacts, TeamSource
from fairlead.tui.model._answering import diff_style
from fairlead.tui.model._detail import detail_of
from fairlead.tui.model._hosts import HostStatus, TeamSessions
from fairlead.tui.model._keys import hints
from fairlead.tui.model._layout import column_headings, columns, summary
from fairlead.tui.model._projects import Location, ProjectLocator, find_location
from fairlead.tui.model._quota import quota_texts
from fairlead.tui.model._tree import SessionTree
from fairlead.tui.model._view import View
from fairlead.tui.widgets._filter import FilterInput
from fairlead.tui.widgets._inbox import InboxScreen
from fairlead.tui.widgets._lines import TextLine, TextLines
from fairlead.tui.widgets._list import SessionList
from fairlead.tui.widgets._panel import SCROLL_HINT, Panel
from fairlead.tui.widgets._prompt import PromptLine
from fairlead.tui.widgets._themes import THEMES, Palette

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.events import Resize

    from fairlead.tui._source import SessionSource
    from fairlead.tui._team_source import TeamUpdate
    from fairlead.tui.model._layout import StyledText

DRAW_INTERVAL = 0.08
"""The minimum number of seconds between two drawings. A change is visible within a tenth of a second; the first change
after a pause is drawn at once."""

BLINK_INTERVAL = 0.5
_TICKS_PER_REFRESH = 20
"""Ticks between two updates of data that changes without an event: the day, stale sessions, branches."""

_TEXT_LINES = ("summary", "connection", "headings", "name", "state", "place", "hints")
_MIN_LIST_HEIGHT = 3
_MIN_HEIGHT_FOR_HINTS = 7
_MIN_HEIGHT_FOR_SECTIONS = 8
_MIN_HEIGHT_FOR_COLUMN_HEADINGS, _MIN_WIDTH_FOR_COLUMN_HEADINGS = 10, 44
_MIN_HEIGHT_FOR_LIST_AND_PANEL = 12
"""Below this height, an open panel leaves only one line for the list."""
_MIN_HEIGHT_FOR_DETAIL = 15
_MIN_WIDTH_FOR_PANEL_BESIDE = 110
"""From this width on, the panel is beside the list, else below it."""


class WatchApp(App[None]):
    """The live view.

    Without a `source` it fetches nothing, as in tests. `locate` returns the project and branch of a folder, and is
    called in a background thread. `shows_team` is whether to show the sessions of other hosts.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS: ClassVar[str] = """
    Screen { background: $background; overflow: hidden; }
    #body { height: 1fr; layout: horizontal; }
    #body.stacked { layout: vertical; }
    #body.stacked Panel { width: 100%; height: 50%; border-left: none; border-top: solid $panel; }
    #body.low.stacked.open SessionList { height: 1; }
    #body.low.stacked.open Panel { height: 1fr; border-top: none; }
    #connection { display: none; }
    """

    def __init__(
        self,
        source: SessionSource | None,
        view: View | None = None,
        *,
        theme: str = "dark",
        clock: Callable[[], float] = time,
        locate: Callable[[str], Location] = find_location,
        blinks: bool = True,
        shows_team: bool = True,
    ) -> None:
        super().__init__(ansi_color=THEMES[theme].ansi)
        self.source = source
        self.view = view or View()
        self.sessions = SessionTree()
        self._team = TeamSessions(self.sessions)
        self._shows_team = shows_team
        self.clock = clock
        self.palette = Palette(THEMES[theme])
        self.connection = ConnectionStatus(is_live=source is None, text="live" if source is None else "connecting")
        self.mail = MailCounted()
        self.draws = 0
        self._colours = THEMES[theme]
        self._blinks = blinks
        self._is_lit = True
        self._ticks = 0
        self._drawn_at = 0.0
        self._is_draw_pending = False
        self._message = ""
        self._height = 0
        self._drawn_question: tuple[Sequence[str], int, int] = ((), 0, 0)
        """The lines of the question that was drawn last, with the width and height that it could use."""
        self._event_loop: AbstractEventLoop | None = None
        self._leaves_with = 0
        self._locator = ProjectLocator(self._report_location, locate)
        self.text_lines = {name: TextLine(self.palette, id=name) for name in _TEXT_LINES}
        self.list = SessionList(self.palette)
        self.panel = Panel(self.palette)
        self.question = TextLines(self.palette, follows_end=False)
        self.question.display = False
        self.body = Container(id="body")
        self.filter_input = FilterInput(self.palette, id="filter")
        self.prompt = PromptLine(self.palette, id="prompt")
        self._questions = FullQuestions(self)
        self.history = HistoryControl(self, source.socket_path if source else "", lambda folder: locate(folder).project)
        self.actions = Actions(self)

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom."""
        yield from (self.text_lines[name] for name in ("summary", "connection", "headings"))
        with self.body:
            yield self.list
            yield self.panel
        yield from (self.text_lines[name] for name in ("name", "state", "place"))
        yield self.question
        yield self.filter_input
        yield self.prompt
        yield self.text_lines["hints"]

    def on_mount(self) -> None:
        """Start the timer, and the tasks that fetch sessions and mail."""
        self.register_theme(self._colours)
        self.theme = self._colours.name
        self.list.focus()
        self.set_interval(BLINK_INTERVAL, self._tick)
        if self.source is not None:
            follow = partial(self.source.run, self.deliver)
            self.run_worker(follow, group="source")  # type: ignore[arg-type]  # as Textual documents it
            if self._shows_team:
                self.run_worker(TeamSource(self.source.socket_path).run(self.deliver), group="team")
            self.run_worker(UserMail(self.source.socket_path).run(self.deliver), group="mail")
        self.history.key_pressed()
        self._event_loop = get_running_loop()
        if self._leaves_with:
            self.exit(return_code=self._leaves_with)
        self.draw()

    def leave(self, code: int) -> None:
        """Close the view with an exit code, once it is open. A signal handler may call this."""
        self._leaves_with = code
        if self._event_loop is not None:
            self._event_loop.call_soon_threadsafe(partial(self.exit, return_code=code))

    async def on_unmount(self) -> None:
        """Report to the daemon that the user leaves the view now."""
        await self.history.leave()

    # -- updates ---------------------------------------------------------------------------------------

    def deliver(self, update: Update | MailCounted | TeamUpdate) -> None:
        """Apply an update at once, and draw it soon. Called in the event loop."""
        if isinstance(update, SessionChanged):
            self.sessions.put(update.session)
            self._locator.request(update.session.folder, self.clock())
        elif isinstance(update, SessionRemoved):
            self.sessions.drop(update.id)
        elif isinstance(update, SessionsReset):
            self.sessions.reset(update.sessions)
            self.sessions.costs = update.costs
            self._locate_all()
        elif isinstance(update, CostsChanged):
            self.sessions.costs = update.costs
        elif isinstance(update, MailCounted):
            self.mail = update
        elif isinstance(update, HostChanged):
            status = HostStatus(update.last_contact, update.left_out)
            self._team.put(update.host, update.sessions, status, self.clock())
        elif isinstance(update, LastContacts):
            self._team.set_last_contacts(update.last_contact, self.clock())
        else:
            self.connection = update
        self.draw_soon()

    def draw_soon(self) -> None:
        """Draw now, or once `DRAW_INTERVAL` has passed since the last drawing."""
        if self._is_draw_pending or not self.is_running:
            return
        self._is_draw_pending = True
        delay = self._drawn_at + DRAW_INTERVAL - monotonic()
        if delay > 0:
            get_running_loop().call_later(delay, self.call_later, self.draw)
        else:
            self.call_later(self.draw)

    def _locate_all(self) -> None:
        costs = self.sessions.costs
        for folder in {*self.sessions.folders(), *(cost.folder for cost in (costs.sessions if costs else ()))}:
            self._locator.request(folder, self.clock())

    def _report_location(self, folder: str, location: Location) -> None:
        """Pass a location to the event loop. Called in the thread of the locator."""
        if self.is_running:
            self.call_later(self._set_location, folder, location)

    def _set_location(self, folder: str, location: Location) -> None:
        self.sessions.set_location(folder, location)
        self.draw_soon()

    def _tick(self) -> None:
        self._ticks += 1
        self._is_lit = not self._blinks or not self._is_lit
        if self._ticks % _TICKS_PER_REFRESH == 0:
            self._locate_all()
            self._team.refresh(self.clock())
            self.draw_soon()
        now = self.clock()
        self.list.tick(now, is_lit=self._is_lit)
        self._draw_detail(now)
        self.actions.tick()

    # -- drawing ---------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw the changes since the last drawing."""
        self._is_draw_pending, self._drawn_at = False, monotonic()
        self.draws += 1
        now = self.clock()
        today = start_of_day(now)
        if today != self.view.today:
            self.view = replace(self.view, today=today)
        lines = self.sessions.lines(self.view, now)
        if self.size.height < _MIN_HEIGHT_FOR_SECTIONS:
            lines = [line for line in lines if line.kind != "heading"]
        self.list.show(lines, self.sessions, now)
        self._draw_text_lines(now)

    def _draw_text_lines(self, now: float) -> None:
        cells, status = self.size.width, self.connection
        connection = self.text_lines["connection"]
        connection.display = not status.is_live and self.size.height > _MIN_LIST_HEIGHT
        connection.show([(fit(f" {status.text}", cells), "needs")])
        self.text_lines["summary"].show(
            summary(
                self.sessions.totals,
                cells,
                status.text if status.is_live else "offline",
                quota_texts(self.sessions.limits.values(), now),
                self.mail.waiting,
            )
        )
        cols = columns(self.list.cells or cells, has_usage=self.sessions.has_usage)
        headings = column_headings(cols, self.view) if self.sessions.sessions else ""
        self.text_lines["headings"].show([(fit(headings, cells), "dim")])
        self._draw_detail(now)
        self._draw_hints()

    def _draw_detail(self, now: float) -> None:
        cells = self.size.width
        detail = detail_of(self.list.selected, self.sessions, now, self._questions.text_of)
        self._draw_question(detail.question, cells)
        has_more = self.question.display and self.question.last_top and not self.panel.display
        hint = f" {SCROLL_HINT}─" if has_more else "─"
        name = fit(detail.name, min(cell_width(detail.name), max(0, cells - len(hint) - 5)))
        rule = "─" * max(0, cells - cell_width(name) - len(hint) - 3)
        self.text_lines["name"].show(
            [("─ ", "dim"), (name, "group"), (f" {rule}{hint}", "dim")] if name else [("─" * cells, "dim")]
        )
        self.text_lines["state"].show([(fit(f" {detail.state}", cells), "plain")])
        self.text_lines["place"].show([(fit(f" {detail.place}", cells), "dim")])

    def _draw_question(self, lines: Sequence[str], cells: int) -> None:
        """Show the lines of the question to the user below the details, in at most a third of the screen."""
        room = self._height // 3 if self._height >= _MIN_HEIGHT_FOR_DETAIL else 0
        if (lines, cells, room) == self._drawn_question:
            return
        self._drawn_question = lines, cells, room
        pieces = [[(f" {part}", diff_style(line))] for line in lines for part in wrap_line(line, cells - 2)]
        height = min(len(pieces), room)
        if self.question.display != bool(height):
            self.question.display = bool(height)
        self.question.styles.height = height
        self.question.top = 0
        self.question.show(pieces, is_new=True)

    def _draw_hints(self) -> None:
        cells, message = self.size.width, self._message
        if not message and self.view.filter:
            message = f"filter: {self.view.filter}   (Esc clears it)"
        piece: StyledText = (f" {message}", "plain") if message else (hints(cells, self.view), "dim")
        self.text_lines["hints"].show([(fit(piece[0], cells), piece[1])])

    def show_message(self, message: str) -> None:
        """Show a message in the last line until the next key is pressed."""
        self._message = message
        self._show_or_hide_hints()
        self._draw_hints()

    def on_resize(self, event: Resize) -> None:
        """Hide the widgets that do not fit."""
        width, height = event.size
        has_headings = height >= _MIN_HEIGHT_FOR_COLUMN_HEADINGS and width >= _MIN_WIDTH_FOR_COLUMN_HEADINGS
        self.text_lines["headings"].display = has_headings
        for name in ("name", "state", "place"):
            self.text_lines[name].display = height >= _MIN_HEIGHT_FOR_DETAIL
        self._height = height
        self._show_or_hide_hints()
        self.body.set_class(width < _MIN_WIDTH_FOR_PANEL_BESIDE, "stacked")
        self.body.set_class(height < _MIN_HEIGHT_FOR_LIST_AND_PANEL, "low")

    def on_session_list_resized(self) -> None:
        """Draw everything for the new size of the list."""
        self.draw()

    def _show_or_hide_hints(self) -> None:
        """Show the last line if it has a message, or if there is room, unless an input replaces it."""
        has_room = self._height >= _MIN_HEIGHT_FOR_HINTS
        is_free = not (self.filter_input.display or self.prompt.display)
        self.text_lines["hints"].display = (has_room or bool(self._message)) and is_free

    # -- input -----------------------------------------------------------------------------------------

    def on_session_list_action_requested(self, event: SessionList.ActionRequested) -> None:
        """Perform the action of a key."""
        if self._message:
            self.show_message("")
        self.history.key_pressed()
        self.actions.perform(event.action)

    def on_session_list_selection_changed(self) -> None:
        """Show the details of the newly selected line."""
        self._draw_detail(self.clock())
        self.actions.selection_changed()

    def open_inbox(self) -> None:
        """Show the user's mail."""
        path = self.source.socket_path if self.source is not None else socket_file()
        self.push_screen(InboxScreen(UserMail(path), self.palette, self.clock))

    def set_view(self, view: View) -> None:
        """Set the filter, order and folds, and draw."""
        self.view = view
        self.draw()

    def edit_filter(self) -> None:
        """Show the filter input instead of the hints."""
        self.filter_input.edit(self.view.filter)
        self._show_or_hide_hints()

    def on_filter_input_changed(self, event: FilterInput.Changed) -> None:
        """Filter while the user types."""
        self.set_view(replace(self.view, filter=event.value))

    def on_filter_input_closed(self) -> None:
        """Return to the list."""
        self._show_or_hide_hints()
        self.list.focus()
        self._draw_hints()

    def on_prompt_line_opened(self) -> None:
        """Hide the hints, which the prompt replaces."""
        self._show_or_hide_hints()

    def on_prompt_line_closed(self) -> None:
        """Return to the list, unless the prompt has asked another question."""
        if not self.prompt.display:
            self.on_filter_input_closed()
