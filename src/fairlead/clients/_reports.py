"""The data that clients report about their sessions, in the form that all clients share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


STARTING = "starting-"
"""The prefix of the id that we give to a session in a start dialog, which has no id of its own yet."""


class ClientSessionFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A running session, read from the client's own file about it."""

    pid: int
    session_id: str
    start: int = 0
    """When the process started, in clock ticks since the machine started; 0 if that is not known."""
    status: str = ""
    """`idle`, `busy` or `waiting`. Other values are ignored."""
    waiting_for: str = ""
    """What a `waiting` session waits for, as the client names it; "" if that is not known."""
    status_at: float = 0.0
    """When the status changed, in Unix time; 0 if that is not known."""
    started: float = 0.0
    """When the session started, in Unix time; 0 if that is not known."""
    cwd: str = ""
    version: str = ""
    """The version of the client."""
    name: str = ""
    """The name of the session; "" if the client has only derived one from the folder."""
    in_terminal: bool = False
    """Whether the session runs in a terminal, which has one session at a time. Other programs may have many."""
    tmux: str = ""
    pane: str = ""
    """The tmux server and the pane in which the process was started."""
    about: str = ""
    """The question that a waiting session asks, if the client reports it."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The usage of one session. `None`: never reported."""

    model: str | None = None
    context_percent: float | None = None
    """The used part of the context window, 0 to 100."""
    context_window: int | None = None
    """The size of the context window in tokens: 200 000 or 1 000 000. It can change within a session."""
    cost_usd: float | None = None
    """The cost in US dollars, as the client estimates it."""
    lines_added: int | None = None
    lines_removed: int | None = None
    five_hour_percent: float | None = None
    """The used part of the account's five-hour limit, 0 to 100."""
    five_hour_resets: float | None = None
    """When the five-hour limit resets, in Unix time."""
    seven_day_percent: float | None = None
    seven_day_resets: float | None = None
    tokens: int | None = None
    """All input and output tokens of a subagent, summed over its messages."""
    output_tokens: int | None = None
    """The output tokens in `tokens`."""
    cached_tokens: int | None = None
    """The input tokens in `tokens` that were read from the cache."""
    context_tokens: int | None = None
    """The context tokens of the last message, which the client itself shows for a subagent."""

    def merged(self, newer: Usage) -> Usage:
        """Return this usage, updated with all values that the newer report has."""
        fields = {name: value for name in self.__struct_fields__ if (value := getattr(newer, name)) is not None}
        return msgspec.structs.replace(self, **fields)


class StatusLine(msgspec.Struct, frozen=True, kw_only=True):
    """The data that a client sends to its status line command."""

    session_id: str = ""
    model: str = ""
    """The display name of the model; "" if there is only the id in `usage`."""
    usage: Usage = Usage()
    seconds: float | None = None
    """How long the client has been running."""
    cwd: str = ""
    transcript: str = ""


class Task(msgspec.Struct, frozen=True):
    """One entry of an agent's to-do list."""

    id: str
    status: str = ""
    """`pending`, `in_progress`, `completed`, or a value of a newer client."""
    subject: str = ""

    @property
    def is_incomplete(self) -> bool:
        """Whether the task is known to be incomplete."""
        return self.status in _INCOMPLETE


_INCOMPLETE = frozenset({"pending", "in_progress"})


class SubagentResult(msgspec.Struct, frozen=True, gc=False):
    """The result of a call of a `spawn` tool."""

    agent_id: str
    is_finished: bool = False
    """Whether the subagent has finished. If not, it continues in the background."""
    model: str = ""


class TranscriptReader(Protocol):
    """Reads the transcripts of subagents, each from the end of the previous `read`. For one thread at a time."""

    unfinished: frozenset[str]
    """The names of the files that the last `read` has not read to their end."""

    def read(self, files: Mapping[str, str]) -> dict[str, Usage]:
        """Read files, given as name → path. Return the usage of each file that has any, by name. Never raises."""
