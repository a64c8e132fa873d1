"""The history of a team on the relay: events and sessions that hosts have copied to it.

It has a separate connection, so that neither copying nor a search delays mail. Like everything on a relay, it is not
trusted: each row is signed by its host, and every reader verifies the signature. Each kind of relay has a class that
implements `TeamHistory` and passes `tests/team/history_contract.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.team._history_types import HistoryFilter, JournalMark, TeamEvent, TeamSession


class TeamHistory(Protocol):
    """A connection to the history of a team. Belongs to one thread. After `RelayUnreachable` it is closed."""

    location: str
    """The name of the relay in messages: its URL without a password."""

    def close(self) -> None:
        """Close the connection."""

    # -- copying ---------------------------------------------------------------------------------------

    def mark(self, host: str) -> JournalMark | None:
        """Return up to where a host has copied its journal.

        Returns None if it has copied nothing yet, or if the relay has lost its data.
        """

    def append(
        self, host: str, events: Sequence[TeamEvent], sessions: Sequence[TeamSession], mark: JournalMark
    ) -> None:
        """Store events and sessions of a host and its new mark, in one transaction.

        A stored event is replaced only by one of a later stage, a stored session only by one with a newer version.
        """

    def prune(self, host: str, *, before: float, max_events: int) -> int:
        """Delete old rows, and return how many.

        Deletes the rows of `host` from before a time, and its oldest events beyond `max_events`. Also deletes the rows
        from before that time of hosts that have not connected since, and all rows of hosts that are not on the relay.
        """

    # -- reading ---------------------------------------------------------------------------------------

    def sessions(self, wanted: HistoryFilter) -> list[TeamSession]:
        """Return a page of sessions, the last active one first."""

    def find_sessions(self, hosts: Sequence[str], begins: str, limit: int) -> list[TeamSession]:
        """Return the sessions whose id starts with `begins`, the last active one first."""

    def events(
        self, host: str, session: str, *, before: tuple[float, str] | None = None, limit: int = 200
    ) -> list[TeamEvent]:
        """Return a page of events of a session, the newest first.

        For the next page, pass the time and the id of the last event as `before`.
        """

    def search(self, wanted: HistoryFilter) -> tuple[list[TeamEvent], list[TeamSession]]:
        """Return a page of events that contain a text, the newest first, and the sessions of these events."""
