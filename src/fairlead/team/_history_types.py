"""The values of a team's history: events and sessions as hosts copy them, and what readers ask for."""

from __future__ import annotations

import msgspec


class TeamEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A recorded event of a host, without secrets. Identified by the host and its id there."""

    host: str
    id: str
    at: float
    session: str
    event: str
    verdict: str = ""
    stage: int = 0
    """1 once the event's commands have ended: it then replaces the one of stage 0."""
    text: str = ""
    """What a search finds."""
    body: bytes = b""
    """The rest, as JSON."""
    signature: bytes = b""
    """Of the host, over all other fields. Empty until it is signed."""


class TeamSession(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session of a host with its figures. The newest version replaces all earlier ones."""

    host: str
    session: str
    started: float
    last: float
    """The time of its last event."""
    folder: str
    version: int
    """Ascending for each host and session, across restarts."""
    body: bytes = b""
    """The figures, as JSON."""
    signature: bytes = b""


class JournalMark(msgspec.Struct, frozen=True, order=True):
    """Up to where a host has copied its journal: a segment, and an offset in it."""

    segment: int
    offset: int


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events or sessions of other hosts are wanted."""

    hosts: tuple[str, ...]
    """Of these hosts alone."""
    since: float = 0.0
    until: float = 0.0
    """Before that time; 0 for no limit."""
    folder: str = ""
    """Of sessions in this folder or below it."""
    text: str = ""
    """Events whose text contains this, in upper or lower case."""
    before: tuple[float, str, str] | None = None
    """The key of the last row before this page: of a session its last time, id and host; of an event its time, id
    and host."""
    limit: int = 50
