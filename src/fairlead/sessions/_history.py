"""What is kept of sessions that have ended, and of those that run: the values of `fairlead history`. Values only."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlead.events import DEFAULT_CLIENT
from fairlead.journal import Position

TextKind: TypeAlias = Literal["prompt", "command", "file", "call"]
"""What a text is: a prompt of a person, a shell command, the file of a tool call, or what else says most about one."""


class EventText(msgspec.Struct, frozen=True, gc=False):
    """The text of an event that a search finds."""

    event: str
    """The event's id."""
    session: str
    at: float
    kind: TextKind
    text: str


class HistorySession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One session, running or ended."""

    id: str
    host: str = ""
    """The name of its host, if this one is in a team."""
    client: str = DEFAULT_CLIENT
    folder: str = ""
    """The project as the client reports it, or the working folder."""
    prompt: str = ""
    """The first that a person wrote."""
    started: float = 0.0
    last: float = 0.0
    """The time of its last event."""
    ended: float | None = None
    end_reason: str = ""
    events: int = 0
    prompts: int = 0
    """Written by a person."""
    tools: int = 0
    """Tool calls."""
    blocked: int = 0
    """Events that were blocked, or could not be decided."""
    asked: int = 0
    """How often the user was asked."""
    failures: int = 0
    """Tool calls that failed."""
    subagents: int = 0
    cost_usd: float = 0.0
    """What it has cost since the time that was asked for."""
    total_usd: float = 0.0
    """What it has cost in all."""


class HistoryMatch(msgspec.Struct, frozen=True):
    """A text that has what was searched for."""

    session: str
    folder: str
    at: float
    kind: TextKind
    text: str
    host: str = ""
    """The name of the session's host, if this one is in a team."""


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which sessions are wanted."""

    since: float = 0.0
    until: float = 0.0
    """Before that time; 0 for no limit."""
    folder: str = ""
    """Only sessions in this folder or below it."""
    search: str = ""
    """Only prompts, commands and files that have this text."""
    limit: int = 50
    before: str = ""
    """The `next` of the page before."""


class OtherHosts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the other hosts of a team."""

    state: Literal["current", "old", "missing"] = "current"
    """`current`: just read from the relay. `old`: as it was read before. `missing`: nothing of them is known."""
    at: float = 0.0
    """When it was read from the relay; 0 if never."""
    why: str = ""
    """Why it was not read now."""
    refused: int = 0
    """Rows on the relay that are not shown, because they were not signed by the host that they name."""


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions with the last active one first; or with a search, the texts that were found, the newest first."""

    since: float
    now: float = 0.0
    left: float = 0.0
    """When the user left: their last key in `watch`, or prompt, before ten minutes without one; 0 if never."""
    usd: float = 0.0
    """What all sessions that were asked for have cost since then; of other hosts those on this page, to the hour."""
    sessions: list[HistorySession] = []
    matches: list[HistoryMatch] = []
    next: str = ""
    """Where the next page begins; "" if there is none."""
    others: OtherHosts | None = None
    """Set if the sessions of other hosts were asked for, and this one is in a team."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a session."""

    at: float
    event: str
    session: str = ""
    tool: str = ""
    agent: str = ""
    """The id of the subagent that it is of."""
    verdict: str = "none"
    reason: str = ""
    exit: int = 0
    seconds: float = 0.0
    text: str = ""
    """The prompt, the command or the file."""


class SubagentHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subagent of a session."""

    id: str
    type: str = ""
    started: float = 0.0
    ended: float | None = None


class SessionHistory(msgspec.Struct, frozen=True, kw_only=True):
    """One session with what happened in it."""

    session: HistorySession
    subagents: list[SubagentHistory] = []
    timeline: list[TimelineEntry] = []
    """The newest last."""
    next: str = ""
    """Where the page with the events before these begins; "" if there are none."""


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """What happened while the user was away."""

    since: float
    now: float
    ended: list[HistorySession] = []
    """The sessions that have ended, the last one first."""
    waiting: list[str] = []
    """The ids of the sessions that need the user now."""
    asked: int = 0
    """How often the user was asked."""
    blocked: int = 0
    examples: list[TimelineEntry] = []
    """Of what was blocked, the newest first."""
    prompts: int = 0
    """Prompts that sessions were given."""
    active: int = 0
    """Sessions in which something happened."""
    usd: float = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.ended or self.waiting or self.asked or self.blocked or self.active)


# -- copies for the history of a team ---------------------------------------------------------------------


class EventCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of this host, for the others."""

    id: str
    entry: TimelineEntry
    """Its `text` is empty if it is the beginning of `text`."""
    has_ended: bool = False
    """Whether its commands have ended, so that the answer is the last one."""
    text: str = ""
    """What a search finds."""
    kind: TextKind = "call"
    agent_type: str = ""
    """The type of the subagent that it is of."""


class SessionCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session of this host with its figures, for the others."""

    session: HistorySession
    hours: dict[int, float] = {}
    """What it has cost in US dollars, by hours since 1970."""


class CopyBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be copied of a part of the journal."""

    events: list[EventCopy] = []
    sessions: list[SessionCopy] = []
    position: Position
    """Where that part ends."""
    has_more: bool = False


class CopyCount(msgspec.Struct, frozen=True):
    """How many events are to be copied of a part of the journal, and where it ends."""

    events: int
    position: Position
