"""The values of a team's history: copied events and sessions, and the filter for reading them."""

from __future__ import annotations

import msgspec


class TeamEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A recorded event of a host, without secrets. `host` and `id` together identify it."""

    host: str
    id: str
    at: float
    session: str
    event: str
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
    """A session of a host with its statistics. The newest version replaces all earlier ones."""

    host: str
    session: str
    started: float
    last: float
    """The time of its last event."""
    folder: str
    version: int
    """Increases with every change of the session, also across restarts."""
    body: bytes = b""
    """The statistics, as JSON."""
    signature: bytes = b""


class JournalMark(msgspec.Struct, frozen=True, order=True):
    """The position up to which a host has copied its journal: a segment and an offset in it."""

    segment: int
    offset: int


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects events or sessions of other hosts."""

    hosts: tuple[str, ...]
    """Only these hosts."""
    since: float = 0.0
    until: float = 0.0
    """Only before this time; 0 for no limit."""
    folder: str = ""
    """Only sessions in this folder or below it."""
    text: str = ""
    """Only events whose text contains this, ignoring case."""
    before: tuple[float, str, str] | None = None
    """The key of the last row of the previous page: time, id and host. The time of a session is that of its last
    event."""
    limit: int = 50
