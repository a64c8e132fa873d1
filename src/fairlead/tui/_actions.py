"""The actions of the keys, by their names in the table of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from fairlead.errors import INTERRUPTED, FairleadError
from fairlead.text import one_line
from fairlead.tui import _tmux
from fairlead.tui._answers import AnswerControl
from fairlead.tui._session_actions import SessionActions
from fairlead.tui._session_control import require_here
from fairlead.tui.model._history import timeline_lines
from fairlead.tui.model._rows import display_name
from fairlead.tui.model._view import SORTS, FoldState
from fairlead.tui.widgets._help import HelpScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.sessions import Session
    from fairlead.tui._app import WatchApp
    from fairlead.tui.model._view import View
    from fairlead.tui.widgets._lines import TextLines

PanelContent: TypeAlias = Literal["", "peek", "timeline"]

_PEEKED_LINES = 60
_NO_SESSION = "no session selected"


class Actions:
    """Performs the actions of the keys that are pressed in the view."""

    def __init__(self, app: WatchApp) -> None:
        self._app = app
        self._panel: PanelContent = ""
        self._shown: Session | None = None
        """The session that the panel shows, as it was when the panel was filled."""
        self._answers = AnswerControl(app, self._go)
        sessions = app.list
        self.handlers: dict[str, Callable[[], object]] = {
            "down": lambda: sessions.move(1),
            "up": lambda: sessions.move(-1),
            "top": lambda: sessions.move(-sessions.count),
            "bottom": lambda: sessions.move(sessions.count),
            "half_down": lambda: sessions.move(max(1, sessions.size.height // 2)),
            "half_up": lambda: sessions.move(-max(1, sessions.size.height // 2)),
            "next_attention": lambda: sessions.select_attention(1),
            "previous_attention": lambda: sessions.select_attention(-1),
            "fold": self._fold,
            "unfold": self._unfold,
            "toggle": self._toggle,
            "fold_all": lambda: app.set_view(replace(app.view, folds=FoldState(all_open=False))),
            "unfold_all": lambda: app.set_view(replace(app.view, folds=FoldState())),
            "go": self._go,
            "answer": lambda: self._answers.open(self._session()),
            "copy": self._copy,
            "peek": lambda: self._toggle_panel("peek"),
            "timeline": lambda: self._toggle_panel("timeline"),
            "panel_down": lambda: self._scrolled.scroll_lines(1),
            "panel_up": lambda: self._scrolled.scroll_lines(-1),
            "panel_page_down": lambda: self._scrolled.scroll_pages(1),
            "panel_page_up": lambda: self._scrolled.scroll_pages(-1),
            "filter": app.edit_filter,
            "sort": self._sort,
            "reverse": self._reverse,
            "ended": self._toggle_ended,
            "history": app.history.open,
            "inbox": app.open_inbox,
            "back": self._back,
            "help": lambda: app.push_screen(HelpScreen(app.palette)),
            "quit": app.exit,
            "cancel": lambda: app.exit(return_code=INTERRUPTED),
            **SessionActions(app, self._session).handlers,
        }
        """Action → handler, for all actions in the table of keys."""

    def perform(self, action: str) -> None:
        """Perform the action with this name in the table of keys."""
        self.handlers[action]()

    # -- folds -----------------------------------------------------------------------------------------

    def _fold(self) -> None:
        line = self._app.list.selected
        if line is not None and line.has_fold and line.is_open:
            self._toggle()
        else:
            self._app.list.select_parent()

    def _unfold(self) -> None:
        line = self._app.list.selected
        if line is None or not line.has_fold:
            return
        if line.is_open:
            self._app.list.move(1)
        else:
            self._toggle()

    def _toggle(self) -> None:
        line, view = self._app.list.selected, self._app.view
        if line is not None and line.has_fold:
            self._app.set_view(replace(view, folds=view.folds.toggled(line.key)))

    # -- the view --------------------------------------------------------------------------------------

    def _sort(self) -> None:
        view = self._app.view
        view = replace(view, sort=SORTS[(SORTS.index(view.sort) + 1) % len(SORTS)])
        self._app.set_view(view)
        self._app.show_message(_sorted_by(view))

    def _reverse(self) -> None:
        view = replace(self._app.view, is_reversed=not self._app.view.is_reversed)
        self._app.set_view(view)
        self._app.show_message(_sorted_by(view))

    def _toggle_ended(self) -> None:
        view = self._app.view
        self._app.set_view(replace(view, show_ended=not view.show_ended))
        self._app.show_message("ended sessions are hidden" if view.show_ended else "ended sessions are shown")

    def _back(self) -> None:
        if self._panel:
            self._toggle_panel(self._panel)
        elif self._app.view.filter:
            self._app.set_view(replace(self._app.view, filter=""))

    # -- the selected session --------------------------------------------------------------------------

    def _go(self) -> None:
        """Go to the pane of the selected session, or open or close the selected group."""
        if self._session() is None:
            self._toggle()
        else:
            self._app.run_worker(self._jump, group="go", exclusive=True)  # type: ignore[arg-type]  # as Textual documents it

    async def _jump(self) -> None:
        session = self._session()
        if session is None:
            return
        try:
            require_here(session, "its pane is there")
            self._app.show_message(await _tmux.go_to_pane(*self._pane_of(session)))
        except FairleadError as error:
            self._app.show_message(str(error))

    def _copy(self) -> None:
        if (session := self._session()) is not None:
            text = one_line(session.id)
            self._app.copy_to_clipboard(text)
            self._app.show_message(f"copied: {text}")
            self._app.run_worker(_tmux.set_buffer(text), group="copy", exclusive=True)

    def _session(self) -> Session | None:
        line = self._app.list.selected
        return self._app.sessions.sessions.get(line.id) if line and line.kind in ("session", "attention") else None

    def _pane_of(self, session: Session) -> tuple[str, str]:
        """Return the tmux server and pane of a session; for a subagent, those of its main session."""
        if not session.pane:
            tree = self._app.sessions
            session = tree.sessions.get(tree.root(session.id), session)
        return session.tmux, session.pane

    # -- the panel -------------------------------------------------------------------------------------

    @property
    def _scrolled(self) -> TextLines:
        """The widget that the keys scroll: the panel if it is open, else the question."""
        return self._app.panel.lines if self._panel else self._app.question

    def selection_changed(self) -> None:
        """Show the newly selected session in the panel if the panel is open."""
        if self._panel:
            self._fill_panel()

    def tick(self) -> None:
        """Update the open panel. A pane is read again each time, events only if the session has changed."""
        if self._panel == "peek" or (self._panel and self._session() is not self._shown):
            self._fill_panel()

    def _toggle_panel(self, content: PanelContent) -> None:
        self._panel = "" if self._panel == content else content
        self._shown = None
        self._app.panel.display = bool(self._panel)
        self._app.body.set_class(bool(self._panel), "open")
        if self._panel:
            self._fill_panel()

    def _fill_panel(self) -> None:
        fill = self._show_pane if self._panel == "peek" else self._show_events
        self._app.run_worker(fill, group="panel", exclusive=True)  # type: ignore[arg-type]  # as Textual documents it

    async def _show_pane(self) -> None:
        panel, session = self._app.panel, self._session()
        if session is None:
            panel.show(_NO_SESSION, [])
            return
        title = f"pane of {display_name(session)}"
        try:
            require_here(session, "its pane is there")
            lines = await _tmux.capture_pane(*self._pane_of(session), _PEEKED_LINES)
        except FairleadError as error:
            panel.show_message(title, str(error))
            return
        panel.show(title, [[(f" {line}", "plain")] for line in lines])

    async def _show_events(self) -> None:
        panel, session = self._app.panel, self._session()
        self._shown = session
        if session is None:
            panel.show(_NO_SESSION, [])
            return
        title = f"events of {display_name(session)}"
        try:
            require_here(session, "its events are there")
            events = await self._app.source.timeline(session.id) if self._app.source else []
        except (FairleadError, ValueError) as error:
            panel.show_message(title, str(error))
            return
        panel.show(title, timeline_lines(events))


def _sorted_by(view: View) -> str:
    return f"sorted by {view.sort}{', reversed' if view.is_reversed else ''}"
