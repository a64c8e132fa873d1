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
"""The kind of a text: a prompt of the user, a shell command, the file of a tool call, or another input of a call."""


class EventText(msgspec.Struct, frozen=True, gc=False):
    """The searchable text of an event."""

    event: str
    """The event's id."""
    session: str
    at: float
    """The Unix time of the event."""
    kind: TextKind
    text: str


class HistorySession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session in the history, running or ended. Its subagents' events count as its own."""

    id: str
    host: str = ""
    """The name of its host, if this host is in a team."""
    client: str = DEFAULT_CLIENT
    folder: str = ""
    """The project as the client reports it, or the working folder."""
    prompt: str = ""
    """The first prompt that the user wrote; "" if there is none."""
    started: float = 0.0
    """The Unix time of its first event."""
    last: float = 0.0
    """The Unix time of its last event."""
    ended: float | None = None
    """The Unix time of its end; `None` if none was reported."""
    end_reason: str = ""
    events: int = 0
    prompts: int = 0
    """Prompts that the user wrote."""
    tools: int = 0
    """Tool calls."""
    blocked: int = 0
    """Events that were blocked, or could not be decided."""
    asked: int = 0
    """How often the user was asked for a permission or an input."""
    failures: int = 0
    """Tool calls that failed."""
    subagents: int = 0
    """Subagents that were started."""
    cost_usd: float | None = None
    """Its cost in the requested period; `None` if it is not known, because the client has reported none."""
    total_usd: float | None = None
    """Its total cost; `None` if it is not known."""


class HistoryMatch(msgspec.Struct, frozen=True):
    """A text that contains the searched text."""

    session: str
    folder: str
    at: float
    kind: TextKind
    text: str
    host: str = ""
    """The name of the session's host, if this host is in a team."""


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query for a page of the history: for sessions, or with `search` for texts."""

    since: float = 0.0
    """Only what happened at this Unix time or later."""
    until: float = 0.0
    """Only what happened before this Unix time; 0 for no limit."""
    folder: str = ""
    """Only sessions in this folder or below it; "" for all."""
    search: str = ""
    """Return the texts that contain this one, instead of sessions; "" for sessions."""
    limit: int = 50
    """The maximum number of sessions or texts."""
    before: str = ""
    """The `next` of the previous page; "" for the first page."""


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
    """A page of the history.

    It has sessions, the most recently active first; or for a search the texts found, newest first, and their sessions.
    """

    since: float
    """The `since` of the query."""
    now: float = 0.0
    """The Unix time of the answer."""
    left: float = 0.0
    """The Unix time at which the user left; 0 if never.

    That is the last key in `watch` or the last prompt after which there was neither for ten minutes.
    """
    usd: float | None = None
    """The sum of the known costs of all requested sessions in the period, not only of those on this page.

    Of other hosts, only the sessions on this page are included, and the period in full hours. `None` for a search, and
    if there are sessions and the cost of none is known.
    """
    unknown: int = 0
    """The number of requested sessions whose cost is not known. Of other hosts, only those on this page are counted."""
    sessions: list[HistorySession] = []
    matches: list[HistoryMatch] = []
    """The texts that were found; empty without a search."""
    next: str = ""
    """The `before` of the query for the next page; "" if this is the last."""
    others: OtherHostsSummary | None = None
    """Set if the sessions of other hosts were requested, and this host is in a team."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a session."""

    at: float
    event: str
    session: str = ""
    tool: str = ""
    agent: str = ""
    """The id of the subagent that the event comes from; "" if it comes from the main session."""
    verdict: str = "none"
    """The verdict, including that of the event's commands."""
    reason: str = ""
    exit: int = 0
    seconds: float = 0.0
    """How long the decision and the commands took."""
    text: str = ""
    """The prompt, the command, the file or a summary of the call; "" if there is none."""


class SubagentHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subagent of a session, as far as its events are known."""

    id: str
    type: str = ""
    """Its type; "" if it is not known."""
    started: float = 0.0
    """The Unix time of its first known event."""
    ended: float | None = None
    """The Unix time of its stop; `None` if it is not known."""


def subagents_of(entries: Iterable[tuple[TimelineEntry, str]]) -> list[SubagentHistory]:
    """Return the subagents that appear in events, in the order of their first events.

    `entries` are pairs of an event and the type of its subagent, the oldest event first.
    """
    subagents: dict[str, SubagentHistory] = {}
    for entry, agent_type in entries:
        if entry.agent:
            known = subagents.get(entry.agent) or SubagentHistory(id=entry.agent, started=entry.at)
            ended = entry.at if entry.event == "SubagentStop" else known.ended
            subagents[entry.agent] = replace(known, type=known.type or agent_type, ended=ended)
    return list(subagents.values())


class SessionHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A session with a page of its events, and the subagents that appear in them."""

    session: HistorySession
    subagents: list[SubagentHistory] = []
    timeline: list[TimelineEntry] = []
    """The events of the page, the newest last."""
    next: str = ""
    """The cursor of the page with earlier events; "" if there are none."""


class AbsenceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What happened from `since` to `now` (Unix times), while the user was away."""

    since: float
    now: float
    ended: list[HistorySession] = []
    """The sessions that have ended, the last one first."""
    waiting: list[str] = []
    """The ids of the sessions that need the user now."""
    asked: int = 0
    """How often the user was asked."""
    blocked: int = 0
    """Events that were blocked, or could not be decided."""
    examples: list[TimelineEntry] = []
    """Some of the blocked events, the newest first."""
    prompts: int = 0
    """The number of prompts in all sessions."""
    active: int = 0
    """The number of sessions with events."""
    usd: float | None = None
    """The sum of the known costs; `None` if there are sessions, and the cost of none is known."""
    unknown: int = 0
    """The number of sessions with events whose cost is not known."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to report: no session has ended, waits, has asked, was blocked or was active."""
        return not (self.ended or self.waiting or self.asked or self.blocked or self.active)


# -- copies for the history of a team ---------------------------------------------------------------------


class EventCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of this host, as the other hosts of the team receive it."""

    id: str
    entry: TimelineEntry
    """The event. Its `text` is "" if it would only repeat the start of this copy's `text`."""
    has_ended: bool = False
    """Whether the results of its commands are included, so that its verdict is final."""
    text: str = ""
    """The searchable text; "" if there is none."""
    kind: TextKind = "call"
    """The kind of `text`."""
    agent_type: str = ""
    """The type of the subagent that the event comes from; "" if it is not known, or if it comes from none."""


class SessionCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session of this host with its costs, as the other hosts of the team receive it."""

    session: HistorySession
    hours: dict[int, float] = {}
    """Its cost in US dollars in each hour, by the number of hours since 1970."""


class CopyBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The events and sessions to copy from a part of the journal."""

    events: list[EventCopy] = []
    sessions: list[SessionCopy] = []
    position: Position
    """The end of that part. The next batch starts there."""
    has_more: bool = False
    """Whether the store has later records."""


class EventsToCopyCount(msgspec.Struct, frozen=True):
    """The number of events to copy from a part of the journal, and the end of that part."""

    events: int
    position: Position
