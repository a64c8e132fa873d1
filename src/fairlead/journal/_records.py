"""What is written down: one record per event, one when its commands have ended, one for each turn of the daemon."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlead.events import DEFAULT_CLIENT

Road: TypeAlias = Literal["daemon", "cold"]
"""Who decided: the daemon, or the caller's own process because there was none."""

Verdict: TypeAlias = Literal["none", "said", "asked", "allowed", "blocked", "failed"]
"""What the client was told.

none     nothing
said     context, a message, a rewritten input
asked    the person is to be asked
allowed  permission was granted
blocked  no (or, at Stop, go on)
failed   the event could not be decided; a gate was blocked
"""


class Caller(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who asked: what the launcher saw of the client that started it."""

    pid: int = 0
    """Of the client; 0 if it is not known."""
    start: int = 0
    """When that process began, in clock ticks since the machine's start: a pid is used again, this is not."""
    pane: str = ""
    """`TMUX_PANE`."""
    tmux: str = ""
    """`TMUX`: the server's socket, its pid, the session's number."""
    project: str = ""
    """The project's folder, as the client tells its hooks."""
    env_file: str = ""
    """The file of variables that the client's commands read."""
    version: str = ""
    """Of the launcher."""


class EventRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="event", tag_field="kind"):
    """An event, and what was answered."""

    id: str
    """Made by the launcher, one for each event of this machine; by it the same event is never taken twice."""
    at: float
    """Unix time, in seconds, at which the launcher began."""
    event: str
    client: str = DEFAULT_CLIENT
    session: str = ""
    agent: str = ""
    tool: str = ""
    cwd: str = ""
    road: Road = "daemon"
    verdict: Verdict = "none"
    exit: int = 0
    reason: str = ""
    seconds: float = 0.0
    """How long the decision took."""
    steps: int = 0
    """So many commands were handed to the caller to run; `CommandsRecord` tells how they ended."""
    caller: Caller = Caller()
    payload: msgspec.Raw = msgspec.Raw(b"{}")
    """As the client sent it; of a large one, long texts are cut (`cut` says so)."""
    cut: bool = False


class CommandsRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="done", tag_field="kind"):
    """The commands of an event have ended in the caller."""

    id: str
    """Of the event."""
    at: float
    verdict: Verdict = "none"
    exit: int = 0
    reason: str = ""
    seconds: float = 0.0
    steps: tuple[CommandResult, ...] = ()


class CommandResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one command ended."""

    run: str
    status: str
    exit: int | None = None
    seconds: float = 0.0


class DaemonRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="daemon", tag_field="kind"):
    """A turn in the daemon's own life: started, stopped, or something a person should know."""

    at: float
    what: str
    pid: int = 0
    version: str = ""


Record: TypeAlias = EventRecord | CommandsRecord | DaemonRecord

LONGEST_REASON = 2000
"""Characters of a reason that are kept."""
