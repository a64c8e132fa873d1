"""Fetches the full question of the selected session: the list of sessions has only the beginning of a long question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import FairleadError
from fairlead.sessions import AttentionNeeded, bounded_question, is_long

if TYPE_CHECKING:
    from fairlead.sessions import Session
    from fairlead.tui._app import WatchApp


class FullQuestions:
    """Fetches the full question of one session at a time."""

    def __init__(self, app: WatchApp) -> None:
        self._app = app
        self._requested: Session | None = None
        """The session whose question was requested last, as it was then."""
        self._text = ""

    def text_of(self, session: Session) -> str:
        """Return the question that a session asks the user, as far as it is known; "" if it asks none.

        If only the beginning is known, the full text is requested, and the view is drawn again when it has arrived.
        """
        about = session.state.about if isinstance(session.state, AttentionNeeded) else ""
        if not is_long(about) or self._app.source is None or session.host:
            return about  # other hosts report only the beginning
        if session is not self._requested:  # request again after any change: a new question may begin alike
            self._requested = session
            self._app.run_worker(self._request(session), group="question", exclusive=True)
        return self._text if bounded_question(self._text) == about else about

    async def _request(self, session: Session) -> None:
        assert self._app.source is not None
        try:
            text = await self._app.source.question(session.id)
        except (FairleadError, msgspec.DecodeError):
            return  # the beginning stays, and is marked as incomplete
        if self._requested is session and text != self._text:
            self._text = text
            self._app.draw_soon()
