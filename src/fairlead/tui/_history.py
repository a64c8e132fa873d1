"""The history in the view: fetches it, reports the user's presence, and shows a summary of the user's absence."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from fairlead.errors import FairleadError
from fairlead.ipc import open_stream
from fairlead.sessions import AbsenceSummary, HistoryPage, SessionHistory
from fairlead.tui.model._history import HistoryView
from fairlead.tui.widgets._history import AbsenceScreen, HistoryScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.tui._app import WatchApp
    from fairlead.tui.model._history import Since


_NOTE_INTERVAL = 30.0
"""The minimum number of seconds between two reports of the user's presence."""
_LIMIT = 200
_EVENTS = 500


class HistoryControl:
    """Opens the history, and reports the user's presence. `project_of` returns the project of a folder."""

    def __init__(self, app: WatchApp, socket_path: str, project_of: Callable[[str], str]) -> None:
        self._app = app
        self._source = HistorySource(socket_path) if socket_path else None
        self._project_of = project_of
        self._noted_at = float("-inf")

    def open(self, since: Since = "today") -> None:
        """Show the history of a period, or a message if there is no daemon."""
        if self._source is None:
            self._app.show_message("there is no daemon to ask for the history")
            return
        view = HistoryView(since, folder=self._app.view.project)
        self._app.push_screen(HistoryScreen(self._app.palette, self._source, view, self._project_of))

    def key_pressed(self) -> None:
        """Report the user's presence, at most every `_NOTE_INTERVAL` seconds. After an absence, show its summary."""
        if self._source is not None and monotonic() - self._noted_at > _NOTE_INTERVAL:
            self._noted_at = monotonic()
            self._app.run_worker(self._show_absence(), group="presence")

    async def leave(self) -> None:
        """Report that the user was present until now."""
        if self._source is not None:
            with suppress(FairleadError, ValueError):
                await self._source.note_presence()

    async def _show_absence(self) -> None:
        if self._source is None:
            return
        try:
            left = await self._source.note_presence()
            if not left:
                return
            absence = await self._source.absence(left)
        except (FairleadError, ValueError):  # no daemon, or one of an earlier version
            return
        if not absence.is_empty and len(self._app.screen_stack) == 1:
            self._app.push_screen(AbsenceScreen(self._app.palette, absence, self._project_of), self._closed)

    def _closed(self, wants_history: bool | None) -> None:  # noqa: FBT001 - Textual's signature
        if wants_history:
            self.open("left")


class _Presence(msgspec.Struct, frozen=True):
    left: float = 0.0
    was_away: bool = False


class HistorySource:
    """Fetches the history. Raises `DaemonUnavailable` without a daemon, and `ValueError` for an invalid response."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path

    async def find(self, view: HistoryView) -> HistoryPage:
        """Return the first page for a history view: its sessions, or the texts that its search finds."""
        fields = {"since": view.since, "limit": str(_LIMIT)}
        if view.search:
            fields["search"] = view.search
        if view.folder:
            fields["folder"] = view.folder
        return msgspec.json.decode(await self._get(f"/v1/history?{urlencode(fields)}"), type=HistoryPage)

    async def session(self, session_id: str) -> SessionHistory:
        """Return one session with its last events."""
        path = f"/v1/history/{quote(session_id, safe='')}?limit={_EVENTS}"
        return msgspec.json.decode(await self._get(path), type=SessionHistory)

    async def absence(self, since: float) -> AbsenceSummary:
        """Return the summary of the events since a Unix time."""
        return msgspec.json.decode(await self._get(f"/v1/absence?since={since!r}"), type=AbsenceSummary)

    async def note_presence(self) -> float:
        """Report that the user is present. Return the Unix time at which an absence began; 0 if there was none."""
        presence = msgspec.json.decode(await self._get("/v1/presence", "POST"), type=_Presence)
        return presence.left if presence.was_away else 0.0

    async def _get(self, path: str, method: str = "GET") -> bytes:
        async with open_stream(self._socket_path, path, method) as response:
            return await response.read()
