"""What each key does, by the name that the table of keys gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from fairlead.errors import FairleadError
from fairlead.text import harmless
from fairlead.tui import _tmux
from fairlead.tui.model._rows import name_of
from fairlead.tui.model._timeline import timeline
from fairlead.tui.model._view import SORTS, Folds
from fairlead.tui.widgets._help import HelpScreen

if TYPE_CHECKING:
    from fairlead.sessions import Session
    from fairlead.tui._app import WatchApp

_PEEKED = 60


class Actions:
    """Does what keys ask for."""

    def __init__(self, app: WatchApp) -> None:
        self._app = app
        self._panel: Literal["", "peek", "timeline"] = ""
        self._shown: Session | None = None

    def perform(self, name: str) -> None:
        """Do it. Every name in the table of keys is a method here."""
        getattr(self, f"do_{name}")()

    # -- moving ----------------------------------------------------------------------------------------

    def do_down(self) -> None:
        """Go one line down."""
        self._app.list.move(1)

    def do_up(self) -> None:
        """Go one line up."""
        self._app.list.move(-1)

    def do_top(self) -> None:
        """Go to the first line."""
        self._app.list.move(-len(self._app.list.lines))

    def do_bottom(self) -> None:
        """Go to the last line."""
        self._app.list.move(len(self._app.list.lines))

    def do_half_down(self) -> None:
        """Go half a screen down."""
        self._app.list.move(max(1, self._app.list.size.height // 2))

    def do_half_up(self) -> None:
        """Go half a screen up."""
        self._app.list.move(-max(1, self._app.list.size.height // 2))

    def do_next_need(self) -> None:
        """Go to the next that needs the person."""
        self._app.list.choose_need(1)

    def do_previous_need(self) -> None:
        """Go to the one before."""
        self._app.list.choose_need(-1)

    # -- folds -----------------------------------------------------------------------------------------

    def do_fold(self) -> None:
        """Close the line, or go to the one it belongs to."""
        line = self._app.list.chosen
        if line is not None and line.has_fold and line.is_open:
            self.do_turn()
        else:
            self._app.list.choose_above()

    def do_unfold(self) -> None:
        """Open the line, or go into it."""
        line = self._app.list.chosen
        if line is None or not line.has_fold:
            return
        if line.is_open:
            self._app.list.move(1)
        else:
            self.do_turn()

    def do_turn(self) -> None:
        """Open or close the line."""
        line, view = self._app.list.chosen, self._app.view
        if line is not None and line.has_fold:
            self._app.see(replace(view, folds=view.folds.turned(line.key)))

    def do_fold_all(self) -> None:
        """Close all."""
        self._app.see(replace(self._app.view, folds=Folds(all_open=False)))

    def do_unfold_all(self) -> None:
        """Open all."""
        self._app.see(replace(self._app.view, folds=Folds()))

    # -- the chosen session ----------------------------------------------------------------------------

    def do_go(self) -> None:
        """Go to the session's pane; a group is opened or closed."""
        if self._session() is None:
            self.do_turn()
        else:
            self._app.run_worker(self._go, group="go", exclusive=True)  # type: ignore[arg-type]  # as Textual documents it

    def do_copy(self) -> None:
        """Copy the session's id."""
        if (session := self._session()) is not None:
            text = harmless(session.id)
            self._app.copy_to_clipboard(text)
            self._app.say(f"copied: {text}")
            self._app.run_worker(_tmux.keep(text), group="copy", exclusive=True)

    def do_peek(self) -> None:
        """Show the last lines of the pane, or close them."""
        self._open("peek")

    def do_timeline(self) -> None:
        """Show the session's events, or close them."""
        self._open("timeline")

    def do_panel_down(self) -> None:
        """Scroll what the panel shows."""
        self._app.panel.scroll(1)

    def do_panel_up(self) -> None:
        """Scroll it back."""
        self._app.panel.scroll(-1)

    def do_panel_page_down(self) -> None:
        """Scroll it by a page."""
        self._app.panel.scroll_page(1)

    def do_panel_page_up(self) -> None:
        """Scroll it back by a page."""
        self._app.panel.scroll_page(-1)

    def _open(self, what: Literal["peek", "timeline"]) -> None:
        self._panel = "" if self._panel == what else what
        self._shown = None
        self._app.panel.display = bool(self._panel)
        self._app.middle.set_class(bool(self._panel), "open")
        self._fill()

    # -- the view --------------------------------------------------------------------------------------

    def do_filter(self) -> None:
        """Let the person type a filter."""
        self._app.ask_filter()

    def do_sort(self) -> None:
        """Sort by the next thing."""
        view = self._app.view
        view = replace(view, sort=SORTS[(SORTS.index(view.sort) + 1) % len(SORTS)])
        self._app.see(view)
        self._app.say(f"sorted by {view.sort}")

    def do_ended(self) -> None:
        """Show or hide who has ended."""
        view = self._app.view
        self._app.see(replace(view, show_ended=not view.show_ended))
        self._app.say("those that have ended are hidden" if view.show_ended else "those that have ended are shown")

    def do_back(self) -> None:
        """Close the panel, then the filter."""
        if self._panel:
            self._open(self._panel)
        elif self._app.view.filter:
            self._app.clear_filter()

    def do_help(self) -> None:
        """Show all keys."""
        self._app.push_screen(HelpScreen(self._app.palette))

    def do_leave(self) -> None:
        """End the view."""
        self._app.exit()

    # -- the panel and the pane ------------------------------------------------------------------------

    def chosen(self) -> None:
        """Let the panel tell about the line that is chosen now."""
        if self._panel:
            self._fill()

    def tick(self) -> None:
        """Keep the panel up to date: a pane changes without a word, events come with a change of the session."""
        if self._panel == "peek" or (self._panel and self._session() is not self._shown):
            self._fill()

    def _fill(self) -> None:
        if self._panel:
            work = self._show_pane if self._panel == "peek" else self._show_events
            self._app.run_worker(work, group="panel", exclusive=True)  # type: ignore[arg-type]  # as Textual documents it

    async def _show_pane(self) -> None:
        session = self._session()
        if session is None:
            self._app.panel.show("no session is chosen", [])
            return
        try:
            lines = await _tmux.peek(*self._pane_of(session), _PEEKED)
        except FairleadError as error:
            self._app.panel.say(f"pane of {name_of(session)}", str(error))
            return
        self._app.panel.show(f"pane of {name_of(session)}", [[(f" {line}", "plain")] for line in lines])

    async def _show_events(self) -> None:
        session = self._shown = self._session()
        if session is None or self._app.source is None:
            self._app.panel.show("no session is chosen" if session is None else f"events of {name_of(session)}", [])
            return
        try:
            events = await self._app.source.timeline(session.id)
        except (FairleadError, ValueError) as error:
            self._app.panel.say(f"events of {name_of(session)}", str(error))
            return
        self._app.panel.show(f"events of {name_of(session)}", timeline(events))

    async def _go(self) -> None:
        session = self._session()
        if session is None:
            return
        try:
            self._app.say(await _tmux.jump(*self._pane_of(session)))
        except FairleadError as error:
            self._app.say(str(error))

    def _session(self) -> Session | None:
        line = self._app.list.chosen
        return self._app.team.sessions.get(line.id) if line and line.kind in ("session", "need") else None

    def _pane_of(self, session: Session) -> tuple[str, str]:
        """Give the pane of a session; a subagent has that of its main session."""
        if not session.pane:
            session = self._app.team.sessions.get(self._app.team.root(session.id), session)
        return session.tmux, session.pane
