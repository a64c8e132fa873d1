"""A session: one agent that runs, or ran. A subagent is a session with a parent. Values only, computed by `apply`.

None of them can contain itself, so the garbage collector does not track them (`gc=False`): there may be 10 000.
"""

from __future__ import annotations

import msgspec

from fairlead.clients import Usage
from fairlead.events import DEFAULT_CLIENT
from fairlead.sessions._states import IDLE, Evidence, State

STALE_AFTER = 8 * 3600.0
"""Seconds without activity after which a session is stale."""


class OpenCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool call that has started and not ended."""

    tool: str
    at: float
    path: str = ""
    asked: str = ""
    """What the user is asked about it; "" if nothing."""
    question: str = ""
    """What exactly is asked, as in `AttentionNeeded.about`."""
    about: str = ""
    """The description, if the call starts a subagent."""
    kind: str = ""
    """The type (or the name) of the subagent that it starts."""
    agent: str = ""
    """The subagent that it started. A guess while the call is open: no event tells."""


class Agent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A working subagent of this session."""

    type: str
    at: float
    background: bool = False
    """It continues when the turn of its parent ends."""


class Task(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A background task, as the client lists it."""

    type: str
    status: str = ""
    description: str = ""
    agent_type: str = ""


class Counters(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How often something happened."""

    prompts: int = 0
    """Written by the user."""
    wakes: int = 0
    """Prompts written by the client."""
    tools: int = 0
    failures: int = 0
    denials: int = 0
    agents: int = 0
    compactions: int = 0
    errors: int = 0
    """Turns that ended by an error of the model's API."""


class SessionMemory(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What `apply` remembers to accept events in any order. Not shown to users."""

    newest: float = msgspec.field(default=0.0, name="heard")
    """The time of the newest event: earlier events are delayed ones."""
    delayed: int = msgspec.field(default=0, name="behind")
    """The number of consecutive events that were delayed by more than the jitter: see `apply`."""
    recent: tuple[tuple[float, str, str], ...] = ()
    """The latest events: time, name, subject."""
    closed: tuple[str, ...] = ()
    """The latest tool calls and subagents that ended."""
    cleared: float = 0.0
    """When all open calls were last known to be over."""
    process_events: int = msgspec.field(default=0, name="spoken")
    """The number of events from the current process."""


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One agent: its identity, where it runs, its state, and the evidence for the state."""

    id: str
    """The client's session id; of a subagent `<session id>/<agent id>`."""

    # The fields that most events change come first: msgspec searches the fields in order to replace one.
    state: State = IDLE
    evidence: Evidence | None = None
    since: float = 0.0
    """When the state began. A new detail of the same work is no new state; a new reason for attention is."""
    in_turn: bool = False
    """The agent is between a prompt and its answer."""
    last_activity: float = 0.0
    calls: dict[str, OpenCall] = {}
    """Open tool calls by id, the oldest first."""
    counters: Counters = Counters()
    memory: SessionMemory = SessionMemory()

    client: str = DEFAULT_CLIENT
    parent: str = ""
    """The id of the session that started this subagent; "" for a main session."""
    agent_id: str = ""
    agent_type: str = ""
    description: str = ""
    """What the subagent was asked to do, in a few words."""
    call: str = ""
    """The id of the tool call that started the subagent."""

    cwd: str = ""
    project: str = ""
    """The project's folder, as the client reports it to hooks."""
    permission_mode: str = ""
    model: str = ""
    transcript: str = ""
    title: str = ""
    """What the client itself calls the session, if the user or the client has named it."""

    pid: int = 0
    """Of the client's process; 0 if it is not known, and for a subagent, which runs in its parent's process."""
    pid_start: int = 0
    others: tuple[tuple[int, int], ...] = ()
    """Other processes (pid, start) that sent events with the same session id."""
    tmux: str = ""
    pane: str = ""

    started: float = 0.0
    ended: float | None = None
    end_reason: str = ""
    """As the client said; "completed" for a subagent; "process gone", "parent ended", "stop not seen"."""

    agents: dict[str, Agent] = {}
    """Working subagents by id, the oldest first."""
    tasks: dict[str, Task] = {}
    """The background tasks that the client listed at its latest Stop."""

    previous: tuple[str, ...] = ()
    """The ids that this session had before /clear or /resume, the latest last."""
    next_id: str = ""
    """The id under which the same process continued."""
    first_prompt: str = ""
    last_prompt: str = ""
    """The latest that the user wrote."""
    by_person: bool = False
    """Whether the user wrote the latest prompt."""
    usage: Usage | None = None
    host: str = ""
    """The host of the team that it runs on; "" for this one."""

    @property
    def is_child(self) -> bool:
        """Whether this is a subagent."""
        return bool(self.parent)

    def is_stale(self, now: float) -> bool:
        """Return whether there was no activity for 8 hours. Not a state: a stale session is still idle or working."""
        return now - self.last_activity > STALE_AFTER

    def duration(self, now: float) -> float:
        """Return the seconds from the start of the session to its end, or to now."""
        return max(0.0, (now if self.ended is None else self.ended) - self.started)

    def in_state(self, now: float) -> float:
        """Return the seconds for which the session has been in its state."""
        return max(0.0, (now if self.ended is None else self.ended) - self.since)
