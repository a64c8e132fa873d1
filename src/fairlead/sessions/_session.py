"""The values that make up a session: an agent that runs or has ended. A subagent is a session with a parent.

They are immutable, and computed by `apply`. No value can contain itself, so the garbage collector need not track them
(`gc=False`), which matters with thousands of sessions.
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
process  the operating system, which reports that the process has ended
"""


class Idle(msgspec.Struct, frozen=True, gc=False, tag="idle", tag_field="is"):
    """The agent has finished and waits for the user. Nothing is urgent."""


class Working(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="working", tag_field="is"):
    """The agent is busy."""

    detail: str | None = None
    """What it is busy with, in a word or two: a tool, a type of subagent, "Thinking"; `None` if that is not known."""


class AttentionNeeded(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="attention", tag_field="is"):
    """The session does not continue until the user acts."""

    reason: str
    """What is needed, in a few words; never ""."""
    about: str = ""
    """The full question: the command, the file with its changes, or the question; "" if it is not known.

    Its first line is the most important. Lists and the stream of changes have its first 4 000 characters, and
    `GET /v1/sessions/ID` has all of it.
    """

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError("attention needs a reason")


State: TypeAlias = Idle | Working | AttentionNeeded

IDLE = Idle()
THINKING = Working("Thinking")


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What shows that a session is in its state."""

    event: str
    """The name of an event, or a description of what the client's file or the system reported."""
    at: float
    """The Unix time of the event."""
    tool: str = ""
    """The tool of the call that it is about; "" for none."""
    path: str = ""
    """The file of that call; "" for none."""
    source: Source = "hook"
    why: str = ""
    """Why this source was preferred, if two disagreed."""


# -- the session ------------------------------------------------------------------------------------------


class OpenCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool call that has started and not ended."""

    tool: str
    at: float
    """The Unix time of its start."""
    path: str = ""
    """The file in its input; "" if there is none."""
    asked: str = ""
    """The reason why the user is asked about it, as in `AttentionNeeded.reason`; "" if the user is not asked."""
    question: str = ""
    """The full question to the user, as in `AttentionNeeded.about`."""
    about: str = ""
    """What the subagent that it starts is asked to do, in a few words; "" if it starts none."""
    kind: str = ""
    """The type (or the name) of the subagent that it starts; "" if it starts none."""
    agent: str = ""
    """The agent id of the subagent that it started; "" for none. A guess while the call is open."""


class ActiveSubagent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A working subagent of this session."""

    type: str
    at: float
    background: bool = False
    """Whether it continues when the turn of its parent ends."""


class BackgroundTask(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A background task, as the client lists it."""

    type: str
    status: str = ""
    description: str = ""
    agent_type: str = ""


class Counters(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How often something happened in a session."""

    prompts: int = 0
    """Prompts written by the user."""
    wakes: int = 0
    """Prompts written by the client, for instance when a background task has ended."""
    tools: int = 0
    """Tool calls."""
    failures: int = 0
    """Tool calls that failed."""
    denials: int = 0
    """Tool calls that were denied."""
    agents: int = 0
    """Subagents that were started."""
    compactions: int = 0
    errors: int = 0
    """Turns that ended because of an error of the model's API."""


class SessionMemory(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What `apply` remembers of a session, so that events may come in any order. Not shown to users.

    The names in `msgspec.field` are those in saved snapshots. They stay, because earlier versions read them.
    """

    newest: float = msgspec.field(default=0.0, name="heard")
    """The Unix time of the newest event. An event with an earlier time is a delayed one."""
    delayed: int = msgspec.field(default=0, name="behind")
    """The number of events in a row that were delayed by more than `JITTER`: see `apply`."""
    recent: tuple[tuple[float, str, str], ...] = ()
    """The latest events, each as time, name and subject."""
    closed: tuple[str, ...] = ()
    """The ids of the latest tool calls and subagents that ended."""
    cleared: float = 0.0
    """The last Unix time at which all earlier calls were known to have ended."""
    process_events: int = msgspec.field(default=0, name="spoken")
    """The number of events that came from the current process."""


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One agent: its identity, where it runs, its state, and the evidence for the state."""

    id: str
    """The client's session id; for a subagent `<session id>/<agent id>`."""

    # The fields that most events change come first: msgspec searches the fields in order to replace one.
    state: State = IDLE
    evidence: Evidence | None = None
    since: float = 0.0
    """The Unix time at which the state began.

    It begins again with a new reason for attention, but not with a new detail of `Working`.
    """
    in_turn: bool = False
    """Whether the agent is between a prompt and its answer."""
    last_activity: float = 0.0
    calls: dict[str, OpenCall] = {}
    """Open tool calls by id, the oldest first."""
    counters: Counters = Counters()
    memory: SessionMemory = SessionMemory()

    client: str = DEFAULT_CLIENT
    parent: str = ""
    """The id of the session that started this subagent; "" for a main session."""
    agent_id: str = ""
    """The client's id of this subagent; "" for a main session."""
    agent_type: str = ""
    """The type of this subagent, or the agent as which the client was started; "" for none."""
    description: str = ""
    """What this subagent was asked to do, in a few words; "" if that is not known, and for a main session."""
    call: str = ""
    """The id of the tool call that started the subagent; "" if it is not known."""

    cwd: str = ""
    project: str = ""
    """The project's folder, as the client reports it to hooks; "" if it does not."""
    permission_mode: str = ""
    model: str = ""
    transcript: str = ""
    title: str = ""
    """The name that the user or the client has given the session; "" if it has none."""

    pid: int = 0
    """The client's process; 0 if it is not known, and for a subagent, which runs in its parent's process."""
    pid_start: int = 0
    """When that process started, in clock ticks since boot; 0 if it is not known."""
    others: tuple[tuple[int, int], ...] = ()
    """Other processes, as pid and start, that sent events with the same session id."""
    tmux: str = ""
    """`$TMUX` of the client; "" outside of tmux."""
    pane: str = ""
    """`$TMUX_PANE` of the client; "" outside of tmux."""

    started: float = 0.0
    """The Unix time at which it started."""
    ended: float | None = None
    """The Unix time at which it ended; `None` while it runs."""
    end_reason: str = ""
    """The reason that the client gave, or one of "completed", "process gone", "parent ended" and "stop not seen".

    "" while the session runs.
    """

    agents: dict[str, ActiveSubagent] = {}
    """Its working subagents by agent id, the oldest first."""
    tasks: dict[str, BackgroundTask] = {}
    """The background tasks that the client listed at the latest Stop, by id."""

    previous: tuple[str, ...] = ()
    """The ids that this session had before /clear or /resume, the latest last."""
    next_id: str = ""
    """The id of the session that replaced this one in the same process; "" for none."""
    first_prompt: str = ""
    """The first prompt that the user wrote."""
    last_prompt: str = ""
    """The latest prompt that the user wrote."""
    by_person: bool = False
    """Whether the user wrote the latest prompt."""
    usage: Usage | None = None
    host: str = ""
    """The host of the team that it runs on; "" for this host."""

    @property
    def folder(self) -> str:
        """The folder that determines the project: that of `project`, or else the working directory."""
        return self.project or self.cwd

    @property
    def is_child(self) -> bool:
        """Whether this is a subagent."""
        return bool(self.parent)

    def is_stale(self, now: float) -> bool:
        """Return whether there was no activity for 8 hours at the Unix time `now`. A stale session keeps its state."""
        return now - self.last_activity > STALE_AFTER

    def duration(self, now: float) -> float:
        """Return the seconds from the start of the session to its end, or to `now` (Unix time) while it runs."""
        return max(0.0, (now if self.ended is None else self.ended) - self.started)

    def in_state(self, now: float) -> float:
        """Return for how many seconds the session has been in its state, until its end, or until `now` (Unix time)."""
        return max(0.0, (now if self.ended is None else self.ended) - self.since)
