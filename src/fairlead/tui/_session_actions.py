"""Performs the actions on the selected session: writes to it, interrupts it, ends it, shows its transcript."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from fairlead.errors import FairleadError
from fairlead.tui._session_control import (
    end_session,
    interrupt_session,
    refuse_below_session,
    require_process,
    send_mail,
    show_in_pager,
    transcript_lines,
)
from fairlead.tui.model._rows import LABELS, display_name, display_state

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fairlead.sessions import Session
    from fairlead.tui._app import WatchApp

    Selected = Callable[[], Session | None]

_NO_SESSION = "no session selected"


class SessionActions:
    """Performs the actions on a session. Each applies to the session that was selected when its key was pressed."""

    def __init__(self, app: WatchApp, selected: Selected) -> None:
        self._app = app
        self._selected = selected
        self.handlers: dict[str, Callable[[], object]] = {
            "mail": partial(self._with_selected, self._write),
            "interrupt": partial(self._with_selected, self._interrupt),
            "end": partial(self._with_selected, self._ask_to_end),
            "transcript": partial(self._with_selected, self._show_transcript),
        }
        """Action → handler."""

    def _with_selected(self, act: Callable[[Session], object]) -> None:
        session = self._selected()
        if session is None:
            self._app.show_message(_NO_SESSION)
        else:
            act(session)

    def _run(self, work: Callable[[], Awaitable[str]]) -> None:
        """Run a task in the background, and show the message that it returns, or its error."""

        async def perform() -> None:
            try:
                message = await work()
            except FairleadError as error:
                message = str(error)
            self._app.show_message(message)

        self._app.run_worker(perform(), group="session", exclusive=True)

    # -- mail ------------------------------------------------------------------------------------------

    def _write(self, session: Session) -> None:
        def answered(text: str) -> None:
            self._run(partial(asyncio.to_thread, send_mail, session, text, self._socket()))

        self._app.prompt.ask(f"to {display_name(session)}:", answered)

    def _socket(self) -> str | None:
        return self._app.source.socket_path if self._app.source is not None else None

    # -- interrupt and end -----------------------------------------------------------------------------

    def _interrupt(self, session: Session) -> None:
        async def work() -> str:
            await asyncio.to_thread(refuse_below_session, "interrupt a session")
            return await interrupt_session(session)

        self._run(work)

    def _ask_to_end(self, session: Session) -> None:
        """End a session after two confirmations: one names the session, one warns about the consequences."""
        try:
            require_process(session, "ended")
        except FairleadError as error:
            self._app.show_message(str(error))
            return
        state = LABELS[display_state(session, self._app.clock())]
        first = f"End {display_name(session)!r}, process {session.pid}, {state}?"
        second = "End it, with everything that it and its subagents are doing?"
        confirm = self._app.prompt.confirm
        confirm(first, lambda _: confirm(second, lambda _: self._end(session)))

    def _end(self, session: Session) -> None:
        async def work() -> str:
            await asyncio.to_thread(refuse_below_session, "end a session")
            return await asyncio.to_thread(end_session, session)

        self._run(work)

    # -- the transcript --------------------------------------------------------------------------------

    def _show_transcript(self, session: Session) -> None:
        tree = self._app.sessions
        main = tree.sessions.get(tree.root(session.id))
        try:
            refuse_below_session("read a session's transcript")
            lines = list(transcript_lines(session, main))
            problem = ""
            with self._app.suspend():
                try:
                    show_in_pager(lines)
                except FairleadError as error:  # raised through `suspend`, it would leave the view suspended
                    problem = str(error)
            self._app.show_message(problem)
        except SuspendNotSupported:
            self._app.show_message("this terminal cannot be lent to a pager; fairlead sessions transcript shows it")
        except FairleadError as error:
            self._app.show_message(str(error))
