"""A session: one agent that runs, or ran. A subagent is a session with a parent. Values only, computed by `apply`.

None of them can hold itself, so the garbage collector need not look at them (`gc=False`): there may be 10 000.
"""

from __future__ import annotations

import msgspec

from fairlead.clients import Usage
from fairlead.events import DEFAULT_CLIENT
from fairlead.sessions._states import IDLE, Evidence, State

STALE_AFTER = 8 * 3600.0
"""Seconds without a sign of life after which a session is stale."""


class OpenCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool call that has begun and not ended."""

    tool: str
    at: float
    path: str = ""
    asked: str = ""
    """What the person is asked about it; "" if nothing."""
    about: str = ""
    """The description, where the call makes a subagent."""
    kind: str = ""
    """The type (or the name) of the subagent that it makes."""
    agent: str = ""
    """The subagent that it made: a guess while the call is open, because no event tells."""


class Agent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A subagent of this session that works."""

    type: str
    at: float
    background: bool = False
    """It goes on when the turn of its maker ends."""


class Task(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the client lists as going on in the background."""

    type: str
    status: str = ""
    description: str = ""
    agent_type: str = ""


class Counters(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How often something happened."""

    prompts: int = 0
    """By a person."""
    wakes: int = 0
    """Prompts that no person wrote."""
    tools: int = 0
    failures: int = 0
    denials: int = 0
    agents: int = 0
    compactions: int = 0
    errors: int = 0
    """Turns that ended by an error of the model's service."""


class SessionMemory(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What `apply` has to remember to take events in any order. Nothing that a person wants to see."""

    heard: float = 0.0
    """The time of the newest event: what is earlier comes late."""
    behind: int = 0
    """So many events in a row came late by far: see `apply`."""
    recent: tuple[tuple[float, str, str], ...] = ()
    """The last events: time, name, subject."""
    closed: tuple[str, ...] = ()
    """The last tool calls and subagents that ended."""
    cleared: float = 0.0
    """When all open calls were last known to be over."""
    spoken: int = 0
    """So many events came from this process."""


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One agent: who it is, where it runs, what it is doing, and how we know."""

    id: str
    """The client's session id; of a subagent `<session id>/<agent id>`."""

    # What nearly every event changes stands first: msgspec walks the fields to find one that is replaced.
    state: State = IDLE
    evidence: Evidence | None = None
    since: float = 0.0
    """When the state began. Another detail of the same work is no new state; another reason for attention is."""
    in_turn: bool = False
    """The agent is between a prompt and its answer."""
    last_activity: float = 0.0
    calls: dict[str, OpenCall] = {}
    """Tool calls that are open, by their ids, the oldest first."""
    counters: Counters = Counters()
    memory: SessionMemory = SessionMemory()

    client: str = DEFAULT_CLIENT
    parent: str = ""
    """The id of the session that made this subagent; "" for a main session."""
    agent_id: str = ""
    agent_type: str = ""
    description: str = ""
    """What the subagent was asked to do, in a few words."""
    call: str = ""
    """The id of the tool call that made the subagent."""

    cwd: str = ""
    project: str = ""
    """The project's folder, as the client tells its hooks."""
    permission_mode: str = ""
    model: str = ""
    transcript: str = ""
    title: str = ""

    pid: int = 0
    """Of the client's process; 0 if it is not known, and for a subagent, which lives in its parent's."""
    pid_start: int = 0
    others: tuple[tuple[int, int], ...] = ()
    """Further processes (pid, start) that speak for the same session id."""
    tmux: str = ""
    pane: str = ""

    started: float = 0.0
    ended: float | None = None
    end_reason: str = ""
    """As the client said; "completed" for a subagent; "process gone", "parent ended", "stop not seen"."""

    agents: dict[str, Agent] = {}
    """Subagents made by this session that work, by their ids, the oldest first."""
    tasks: dict[str, Task] = {}
    """What the client listed at its last Stop as going on in the background."""

    previous: tuple[str, ...] = ()
    """The ids that this session had before /clear or /resume, the latest last."""
    next_id: str = ""
    """The id under which the same process went on."""
    first_prompt: str = ""
    by_person: bool = False
    """Whether the last prompt was a person's."""
    usage: Usage | None = None

    @property
    def is_child(self) -> bool:
        """Whether this is a subagent."""
        return bool(self.parent)

    def is_stale(self, now: float) -> bool:
        """Tell whether there was no sign of life for 8 hours. No state: a stale session is still idle, or working."""
        return now - self.last_activity > STALE_AFTER

    def duration(self, now: float) -> float:
        """Give the seconds from its start to its end, or to now."""
        return max(0.0, (now if self.ended is None else self.ended) - self.started)

    def in_state(self, now: float) -> float:
        """Give the seconds for which it has been in its state."""
        return max(0.0, (now if self.ended is None else self.ended) - self.since)
