"""The history of a team on the relay: events and sessions that hosts have copied to it.

It has a separate connection, so that neither copying nor a search delays mail. Like everything on a relay, it is not
trusted: each row is signed by its host, and every reader verifies the signature. Each kind of relay has a class that
implements `TeamHistory` and passes `tests/team/history_contract.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class TeamHistory(Protocol):
    """A connection to the history of a team. Belongs to one thread. After `RelayUnreachable` it is closed."""

    location: str
    """The name of the relay in messages: its URL without a password."""

    def close(self) -> None:
        """Close the connection."""

    # -- copying ---------------------------------------------------------------------------------------

    def mark(self, host: str) -> JournalMark | None:
        """Return the position up to which a host has copied its journal.

        Returns None if the host has copied nothing yet, or if the relay has lost its data.
        """

    def append(
        self, host: str, events: Sequence[TeamEvent], sessions: Sequence[TeamSession], mark: JournalMark
    ) -> None:
        """Store events and sessions of a host and its new mark, in one transaction.

        A stored event is replaced only by one of a later stage, a stored session only by one with a newer version.
        """

    def prune(self, host: str, *, before: float, max_events: int) -> int:
        """Delete old events and sessions, and return how many were deleted.

        Of `host`: all from before the Unix time `before`, and the oldest events if there are more than `max_events`. Of
        hosts that have not connected since `before`: all from before it. Of hosts that are not registered on the relay:
        all.
        """

    # -- reading ---------------------------------------------------------------------------------------

    def sessions(self, wanted: HistoryFilter) -> list[TeamSession]:
        """Return a page of the sessions that a filter selects, the last active first. Ignores the filter's `text`."""

    def find_sessions(self, hosts: Sequence[str], begins: str, limit: int) -> list[TeamSession]:
        """Return up to `limit` sessions of these hosts whose id starts with `begins`.

        A session whose id is exactly `begins` comes first, then the other ones, the last active first.
        """

    def events(
        self, host: str, session: str, *, before: tuple[float, str] | None = None, limit: int = 200
    ) -> list[TeamEvent]:
        """Return up to `limit` events of a session, the newest first.

        For the next page, pass the time and the id of the last event as `before`.
        """

    def search(self, wanted: HistoryFilter) -> tuple[list[TeamEvent], list[TeamSession]]:
        """Return a page of the events that a filter selects, the newest first, and the sessions of these events."""


class TeamEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A recorded event of a host, without secrets. `host` and `id` together identify it."""

    host: str
    id: str
    at: float
    """The Unix time of the event, by the clock of its host."""
    session: str
    event: str
    """The name of the event, such as `PreToolUse`."""
    verdict: str = ""
    stage: int = 0
    """0 when the event is recorded, 1 once its commands have ended. Stage 1 replaces stage 0."""
    text: str = ""
    """The text that searches look through."""
    body: bytes = b""
    """All other data of the event, as JSON."""
    signature: bytes = b""
    """The host's signature over all other fields. Empty until the event is signed."""


class TeamSession(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session of a host with its statistics. A newer version replaces the stored one."""

    host: str
    session: str
    started: float
    last: float
    """The Unix time of its last event."""
    folder: str
    version: int
    """Increases with every change of the session, also across restarts."""
    body: bytes = b""
    """The statistics, as JSON."""
    signature: bytes = b""
    """The host's signature over all other fields. Empty until the session is signed."""


class JournalMark(msgspec.Struct, frozen=True, order=True):
    """The position up to which a host has copied its journal."""

    segment: int
    """The number of the journal's segment."""
    offset: int
    """The position in the segment, in bytes."""


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects a page of events or sessions on the relay."""

    hosts: tuple[str, ...]
    """Only those of these hosts, given by their ids."""
    since: float = 0.0
    """Only events at or after this Unix time, or sessions whose last event is at or after it."""
    until: float = 0.0
    """Only events before this Unix time, or sessions that started before it; 0 for no limit."""
    folder: str = ""
    """Only sessions in this folder or below it, or their events; empty for all."""
    text: str = ""
    """Only events whose text contains this, ignoring case. Not used for sessions."""
    before: tuple[float, str, str] | None = None
    """The time, id and host of the last row of the previous page; None for the first page.

    The time of a session is that of its last event.
    """
    limit: int = 50
    """The maximum number of rows in the page."""
