"""What a relay keeps for one history of the team: events and sessions that hosts have copied to it.

It is apart from the rest of the relay, over a connection of its own, so that neither copying nor a search delays mail.
Like all that a relay holds it is trusted with nothing: each row is signed by its host, and whoever reads it verifies
that. A kind of relay has a class that fulfils `TeamHistory` and passes `tests/team/history_contract.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.team._history_types import HistoryFilter, JournalMark, TeamEvent, TeamSession


class TeamHistory(Protocol):
    """A connection to the history of a team. Belongs to one thread. After `RelayUnreachable` it is closed."""

    location: str
    """How messages name it: without a password."""

    def close(self) -> None:
        """Close the connection."""

    # -- copying ---------------------------------------------------------------------------------------

    def mark(self, host: str) -> JournalMark | None:
        """Return up to where a host has copied its journal; None before the first time, or if all was lost."""

    def append(
        self, host: str, events: Sequence[TeamEvent], sessions: Sequence[TeamSession], mark: JournalMark
    ) -> None:
        """Store events and sessions of a host, and how far it is, in one step: after a crash all of it or nothing.

        An event that is there already is left as it is, unless this one is of a later stage; likewise a session with
        a version that is not newer.
        """

    def prune(self, host: str, *, before: float, max_events: int) -> int:
        """Delete what is too much, and return how many rows.

        That is: of this host what is before a time, and the oldest beyond so many events; of hosts that were not heard
        of since that time likewise; of hosts that the relay does not list any more all.
        """

    # -- reading ---------------------------------------------------------------------------------------

    def sessions(self, wanted: HistoryFilter) -> list[TeamSession]:
        """Return a page of sessions, the last active one first."""

    def find_sessions(self, hosts: Sequence[str], begins: str, limit: int) -> list[TeamSession]:
        """Return the sessions whose id begins like this, the last active one first."""

    def events(
        self, host: str, session: str, *, before: tuple[float, str] | None = None, limit: int = 200
    ) -> list[TeamEvent]:
        """Return events of a session, the newest first; for the next page, pass time and id of the last one."""

    def search(self, wanted: HistoryFilter) -> tuple[list[TeamEvent], list[TeamSession]]:
        """Return a page of events with a text, the newest first, and the sessions that they are of."""
