"""What the selected session asks, all of it: the list of sessions has only the beginning of a long question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import FairleadError
from fairlead.sessions import AttentionNeeded, bounded_question, is_long

if TYPE_CHECKING:
    from fairlead.sessions import Session
    from fairlead.tui._app import WatchApp


class WholeQuestions:
    """Asks the daemon for the question of one session at a time."""

    def __init__(self, app: WatchApp) -> None:
        self._app = app
        self._requested: Session | None = None
        """The session that was last asked about, as it was then."""
        self._text = ""

    def text_of(self, session: Session) -> str:
        """Return what a session asks, as far as it is known; request the rest if there is more."""
        about = session.state.about if isinstance(session.state, AttentionNeeded) else ""
        if not is_long(about) or self._app.source is None or session.host:
            return about  # another host has told the beginning alone
        if session is not self._requested:  # after any change: another question may begin as this one does
            self._requested = session
            self._app.run_worker(self._request(session), group="question", exclusive=True)
        return self._text if bounded_question(self._text) == about else about

    async def _request(self, session: Session) -> None:
        assert self._app.source is not None  # noqa: S101 - checked by the caller
        try:
            text = await self._app.source.question(session.id)
        except (FairleadError, msgspec.DecodeError):
            return  # the beginning stays, which says that it is one
        if self._requested is session and text != self._text:
            self._text = text
            self._app.draw_soon()
