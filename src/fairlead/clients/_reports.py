"""What a client reports about its sessions, in the form that all clients share. Values only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


STARTING = "starting-"
"""How the id of a session begins that waits in a dialog at its start, and has no id yet."""


class ClientSessionFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A running session, as the client's own file about it says."""

    pid: int
    session_id: str
    start: int = 0
    """When the process started, in clock ticks since the machine's start; 0 if that is not known."""
    status: str = ""
    """`idle`, `busy` or `waiting`; another value is not relied upon."""
    waiting_for: str = ""
    status_at: float = 0.0
    """When the status changed, in Unix time."""
    started: float = 0.0
    cwd: str = ""
    version: str = ""
    """Of the client."""
    name: str = ""
    """What the user or the client has called the session; "" if the client only made a name up to have one."""
    in_terminal: bool = False
    """It runs in a terminal, which has one session at a time; other programs have many."""
    tmux: str = ""
    pane: str = ""
    """The tmux server and the pane that the process was started in."""
    about: str = ""
    """What exactly a waiting session asks, where the client tells."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The figures of one session. `None`: never reported."""

    model: str | None = None
    context_percent: float | None = None
    """Of the context window, 0 to 100."""
    context_window: int | None = None
    """Tokens: 200 000 or 1 000 000. It can change within a session."""
    cost_usd: float | None = None
    """The client's estimate."""
    lines_added: int | None = None
    lines_removed: int | None = None
    five_hour_percent: float | None = None
    """Used of what the account may use in five hours."""
    five_hour_resets: float | None = None
    """When these five hours end, in Unix time."""
    seven_day_percent: float | None = None
    seven_day_resets: float | None = None
    tokens: int | None = None
    """Everything that the model read and wrote for a subagent, summed over its messages."""
    output_tokens: int | None = None
    """The part that it wrote."""
    cached_tokens: int | None = None
    """The part that it read from its cache."""
    context_tokens: int | None = None
    """What the last message took of the context window: the figure that the client itself shows for a subagent."""

    def merged(self, newer: Usage) -> Usage:
        """Return these figures with those that the newer report has."""
        fields = {name: value for name in self.__struct_fields__ if (value := getattr(newer, name)) is not None}
        return msgspec.structs.replace(self, **fields)


class StatusLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sends to its status line."""

    session_id: str = ""
    model: str = ""
    """Its name for people; "" if only `usage` names it."""
    usage: Usage = Usage()
    seconds: float | None = None
    """How long the client has been running."""
    cwd: str = ""
    transcript: str = ""


class Task(msgspec.Struct, frozen=True):
    """One entry of an agent's to-do list."""

    id: str
    status: str = ""
    """`pending`, `in_progress`, `completed`, or what a newer client sends."""
    subject: str = ""

    @property
    def is_incomplete(self) -> bool:
        """Whether it is known to be not done yet."""
        return self.status in _INCOMPLETE


_INCOMPLETE = frozenset({"pending", "in_progress"})


class SubagentResult(msgspec.Struct, frozen=True, gc=False):
    """What the answer of a `spawn` tool says."""

    agent_id: str
    is_finished: bool = False
    """The subagent was done when the call was answered; else it works on in the background."""
    model: str = ""


class TranscriptReader(Protocol):
    """Reads transcripts of subagents, each on from where the last reading ended. For one thread at a time."""

    behind: frozenset[str]
    """Of the files of the last reading, those of which a part is left for the next."""

    def read(self, files: Mapping[str, str]) -> dict[str, Usage]:
        """Return the usage of each file that has some, by the caller's name of it. Raises nothing."""
