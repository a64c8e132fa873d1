"""A session: one agent that runs, or ran. A subagent is a session with a parent. Values only, computed by `apply`.

No value can contain itself, so the garbage collector does not track them (`gc=False`): there may be 10 000 sessions.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlead.clients import Usage
from fairlead.durations import HOUR
from fairlead.events import DEFAULT_CLIENT

STALE_AFTER = 8 * HOUR
"""Seconds without activity after which a session is stale."""


# -- states ---------------------------------------------------------------------------------------------

Source: TypeAlias = Literal["hook", "client", "process"]
"""Where evidence comes from.

hook     an event that the client sent
client   the client's own file about the session
process  the operating system: the process is gone
"""


class Idle(msgspec.Struct, frozen=True, gc=False, tag="idle", tag_field="is"):
    """The agent has finished and waits for the user. Nothing is urgent."""


class Working(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="working", tag_field="is"):
    """The agent is busy."""

    detail: str | None = None
    """What it is busy with, in a word or two: a tool, a type of subagent, "Thinking"."""


class AttentionNeeded(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="attention", tag_field="is"):
    """The session does not continue until the user acts."""

    reason: str
    """What is needed; never blank."""
    about: str = ""
    """The full question: the command, the file with its changes, the question. The first line says the most.
    Lists and the stream have its first 4 000 characters, `GET /v1/sessions/ID` has all of it."""

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError("attention needs a reason")


State: TypeAlias = Idle | Working | AttentionNeeded

IDLE = Idle()
THINKING = Working("Thinking")


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Why a session is in its state."""

    event: str
    """The name of an event, or a description of what the client's file or the system reported."""
    at: float
    """When, in Unix time."""
    tool: str = ""
    path: str = ""
    source: Source = "hook"
    why: str = ""
    """Why this source was believed, where two disagreed."""


# -- the session ------------------------------------------------------------------------------------------


class OpenCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool call that has started and not ended."""

    tool: str
    at: float
    path: str = ""
    asked: str = ""
    """Why the user is asked about it; "" if the user is not asked."""
    question: str = ""
    """The full question, as in `AttentionNeeded.about`."""
    about: str = ""
    """The description, if the call starts a subagent."""
    kind: str = ""
    """The type (or the name) of the subagent that it starts."""
    agent: str = ""
    """The subagent that it started. A guess while the call is open, because no event reports it."""


class ActiveSubagent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A working subagent of this session."""

    type: str
    at: float
    background: bool = False
    """It continues when the turn of its parent ends."""


class BackgroundTask(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A background task, as the client lists it."""

    type: str
    status: str = ""
    description: str = ""
    agent_type: str = ""


class Counters(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How often something happened."""

    prompts: int = 0
    """Prompts written by the user."""
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
    """What `apply` remembers to accept events in any order. Not shown to users.

    Saved under the names given here, which earlier versions read.
    """

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
    """When the state began. A new reason for attention begins a state, but a new detail of the same work does not."""
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
    """The name that the user or the client has given the session."""

    pid: int = 0
    """The client's process; 0 if it is not known, and for a subagent, which runs in its parent's process."""
    pid_start: int = 0
    others: tuple[tuple[int, int], ...] = ()
    """Other processes (pid, start) that sent events with the same session id."""
    tmux: str = ""
    pane: str = ""

    started: float = 0.0
    ended: float | None = None
    end_reason: str = ""
    """The reason that the client gave; "completed" for a subagent; "process gone", "parent ended", "stop not seen"."""

    agents: dict[str, ActiveSubagent] = {}
    """Working subagents by id, the oldest first."""
    tasks: dict[str, BackgroundTask] = {}
    """The background tasks that the client listed at its latest Stop."""

    previous: tuple[str, ...] = ()
    """The ids that this session had before /clear or /resume, the latest last."""
    next_id: str = ""
    """The id under which the same process continued."""
    first_prompt: str = ""
    last_prompt: str = ""
    """The latest prompt that the user wrote."""
    by_person: bool = False
    """Whether the user wrote the latest prompt."""
    usage: Usage | None = None
    host: str = ""
    """The host of the team that it runs on; "" for this host."""

    @property
    def folder(self) -> str:
        """The folder that determines the project. It does not change with the agent's working directory."""
        return self.project or self.cwd

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
