"""The states of a session and the evidence for them. Values only."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

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
    """With what, in a word or two: a tool, a type of subagent, "Thinking"."""


class AttentionNeeded(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="attention", tag_field="is"):
    """The session does not continue until the user acts."""

    reason: str
    """What is needed; never blank."""
    about: str = ""
    """What exactly is asked: the command, the file with what changes in it, the question. The first line says it.
    Lists and the stream have the first 4 000 characters of it, `GET /v1/sessions/ID` has all."""

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
