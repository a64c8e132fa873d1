"""What a session can be doing, and how that is known. Values only."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Source: TypeAlias = Literal["hook", "client", "process"]
"""Who says so.

hook     an event that the client sent
client   the client's own file about the session
process  the operating system: the process is gone
"""


class Idle(msgspec.Struct, frozen=True, gc=False, tag="idle", tag_field="is"):
    """Nothing is happening: the agent has finished and waits for the person, who can take their time."""


class Working(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="working", tag_field="is"):
    """The agent is busy; the person just waits."""

    detail: str | None = None
    """With what, in a word or two: a tool, a type of subagent, "Thinking"."""


class AttentionNeeded(msgspec.Struct, frozen=True, gc=False, tag="attention", tag_field="is"):
    """The person must act, or the session does not go on."""

    reason: str
    """What is needed; never blank."""

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError("attention needs a reason")


State: TypeAlias = Idle | Working | AttentionNeeded

IDLE = Idle()
THINKING = Working("Thinking")


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Why a session is in its state."""

    event: str
    """What told us: an event's name, or in words what the client's file or the system said."""
    at: float
    """When that was, in Unix time."""
    tool: str = ""
    path: str = ""
    source: Source = "hook"
    why: str = ""
    """Where two witnesses disagreed: why this one was believed."""
