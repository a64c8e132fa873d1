"""Fetches the history from the daemon for the view."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from fairlead.ipc import open_stream
from fairlead.sessions import AbsenceSummary, HistoryPage, SessionHistory

if TYPE_CHECKING:
    from fairlead.tui.model._history import HistoryView

_LIMIT = 200
_EVENTS = 500


class _Presence(msgspec.Struct, frozen=True):
    left: float = 0.0
    was_away: bool = False


class HistorySource:
    """Fetches the history. Raises `DaemonUnavailable` without a daemon, and `ValueError` for an invalid response."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path

    async def find(self, view: HistoryView) -> HistoryPage:
        """Return the first page of the sessions or texts for a history view."""
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
        """Return the summary of the events since a time."""
        return msgspec.json.decode(await self._get(f"/v1/absence?since={since!r}"), type=AbsenceSummary)

    async def note_presence(self) -> float:
        """Report that the user is present. Return when they left if they were away, else 0."""
        presence = msgspec.json.decode(await self._get("/v1/presence", "POST"), type=_Presence)
        return presence.left if presence.was_away else 0.0

    async def _get(self, path: str, method: str = "GET") -> bytes:
        async with open_stream(self._socket_path, path, method) as response:
            return await response.read()
