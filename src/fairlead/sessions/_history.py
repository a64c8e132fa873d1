"""The values of `fairlead history`: running and ended sessions, their events and their costs. Values, with no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from fairlead.events import DEFAULT_CLIENT
from fairlead.journal import Position

if TYPE_CHECKING:
    from collections.abc import Iterable

TextKind: TypeAlias = Literal["prompt", "command", "file", "call"]
"""The kind of a text: a person's prompt, a shell command, the file of a tool call, or another input of a call."""


class EventText(msgspec.Struct, frozen=True, gc=False):
    """The searchable text of an event."""

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
    """The name of its host, if this host is in a team."""
    client: str = DEFAULT_CLIENT
    folder: str = ""
    """The project as the client reports it, or the working folder."""
    prompt: str = ""
    """The first prompt that a person wrote."""
    started: float = 0.0
    last: float = 0.0
    """The time of its last event."""
    ended: float | None = None
    end_reason: str = ""
    events: int = 0
    prompts: int = 0
    """Prompts that a person wrote."""
    tools: int = 0
    """Tool calls."""
    blocked: int = 0
    """Events that were blocked, or could not be decided."""
    asked: int = 0
    """How often the user was asked."""
    failures: int = 0
    """Tool calls that failed."""
    subagents: int = 0
    cost_usd: float | None = None
    """Its cost since the requested time; `None` if the client has reported none, so that it is not known."""
    total_usd: float | None = None
    """Its total cost; `None` if it is not known."""


class HistoryMatch(msgspec.Struct, frozen=True):
    """A text that matches a search."""

    session: str
    folder: str
    at: float
    kind: TextKind
    text: str
    host: str = ""
    """The name of the session's host, if this host is in a team."""


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Selects sessions of the history."""

    since: float = 0.0
    until: float = 0.0
    """Only before that time; 0 for no limit."""
    folder: str = ""
    """Only sessions in this folder or below it."""
    search: str = ""
    """Only prompts, commands and files that contain this text."""
    limit: int = 50
    before: str = ""
    """The `next` of the previous page."""


class OtherHostsSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How complete the history of the team's other hosts is."""

    state: Literal["current", "old", "missing"] = "current"
    """`current`: just read from the relay. `old`: read from the relay earlier. `missing`: never read."""
    at: float = 0.0
    """When it was read from the relay; 0 if never."""
    why: str = ""
    """Why it was not read now."""
    refused: int = 0
    """Rows on the relay that are not shown, because they were not signed by the host that they name."""


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of sessions, the last active first; for a search, of matching texts, the newest first."""

    since: float
    now: float = 0.0
    left: float = 0.0
    """When the user left: the last key in `watch`, or the last prompt, before ten minutes without one; 0 if never."""
    usd: float | None = None
    """The known costs of all requested sessions since that time. Of other hosts: of those on this page, to the hour.
    `None` if there are sessions, and the cost of none is known, and for a search."""
    unknown: int = 0
    """The number of requested sessions whose cost is not known. Of other hosts: of those on this page."""
    sessions: list[HistorySession] = []
    matches: list[HistoryMatch] = []
    next: str = ""
    """The cursor of the next page; "" if there is none."""
    others: OtherHostsSummary | None = None
    """Set if the sessions of other hosts were requested, and this host is in a team."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a session."""

    at: float
    event: str
    session: str = ""
    tool: str = ""
    agent: str = ""
    """The id of the subagent that the event comes from."""
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


def subagents_of(entries: Iterable[tuple[TimelineEntry, str]]) -> list[SubagentHistory]:
    """Return the subagents that appear in events. Each event has the type of its subagent; the oldest is first."""
    subagents: dict[str, SubagentHistory] = {}
    for entry, agent_type in entries:
        if entry.agent:
            known = subagents.get(entry.agent) or SubagentHistory(id=entry.agent, started=entry.at)
            ended = entry.at if entry.event == "SubagentStop" else known.ended
            subagents[entry.agent] = replace(known, type=known.type or agent_type, ended=ended)
    return list(subagents.values())


class SessionHistory(msgspec.Struct, frozen=True, kw_only=True):
    """One session with its subagents and events."""

    session: HistorySession
    subagents: list[SubagentHistory] = []
    timeline: list[TimelineEntry] = []
    """The newest last."""
    next: str = ""
    """The cursor of the page with earlier events; "" if there are none."""


class AbsenceSummary(msgspec.Struct, frozen=True, kw_only=True):
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
    """Some of the blocked events, the newest first."""
    prompts: int = 0
    """The number of prompts in all sessions."""
    active: int = 0
    """The number of sessions with events."""
    usd: float | None = None
    """Their known costs; `None` if there are sessions, and the cost of none is known."""
    unknown: int = 0
    """The number of sessions with events whose cost is not known."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.ended or self.waiting or self.asked or self.blocked or self.active)


# -- copies for the history of a team ---------------------------------------------------------------------


class EventCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of this host, as the other hosts of the team receive it."""

    id: str
    entry: TimelineEntry
    """The event. Its `text` is empty if it would be only the start of `text` below."""
    has_ended: bool = False
    """Whether its commands have ended, so that its verdict is final."""
    text: str = ""
    """The searchable text."""
    kind: TextKind = "call"
    agent_type: str = ""
    """The type of the subagent that the event comes from."""


class SessionCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session of this host with its costs, as the other hosts of the team receive it."""

    session: HistorySession
    hours: dict[int, float] = {}
    """Its cost in US dollars, by hours since 1970."""


class CopyBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The events and sessions to copy from a part of the journal."""

    events: list[EventCopy] = []
    sessions: list[SessionCopy] = []
    position: Position
    """Where that part ends."""
    has_more: bool = False


class EventsToCopyCount(msgspec.Struct, frozen=True):
    """The number of events to copy from a part of the journal, and the end of that part."""

    events: int
    position: Position
