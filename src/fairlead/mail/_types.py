"""What agents tell each other, and who they are, as values. Nothing here knows where they are kept or shown."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Priority = Literal["urgent", "normal", "low"]
Intent = Literal["request", "inform", "ack"]
Stage = Literal["queued", "shown", "read", "answered", "bounced"]

PRIORITIES: Final[tuple[Priority, ...]] = ("urgent", "normal", "low")
INTENTS: Final[tuple[Intent, ...]] = ("request", "inform", "ack")
STAGES: Final[tuple[Stage, ...]] = ("queued", "shown", "read", "answered", "bounced")

LONGEST_BODY: Final = 1024 * 1024
"""Bytes of a body, in UTF-8."""
LONGEST_SUBJECT: Final = 500
"""Characters."""
LONGEST_KEY: Final = 200
MOST_RECIPIENTS: Final = 1000


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Who can write and be written to: a session, a subagent, the person, Fairlead itself, a program."""

    id: int
    name: str
    """Unique among all that are kept, in whatever case it is written."""
    session: str = ""
    """The client's session id; of a subagent its parent's."""
    project: str = ""
    """The project's folder."""
    parent: int = 0
    """The agent whose subagent this is."""
    agent_id: str = ""
    """The client's id of a subagent."""
    created: float = 0.0
    seen: float = 0.0
    """The last sign of life."""
    ended: float = 0.0
    """When it ended; 0 while it lives."""
    saved: str = ""
    """What it wants to be told about itself after a compaction."""


USER: Final = Agent(id=1, name="User")
"""The person."""
FAIRLEAD: Final = Agent(id=2, name="Fairlead")
"""Writes notices, and reads nothing."""
SCRIPT: Final = Agent(id=3, name="Script")
"""A program that belongs to no session and has no terminal."""
FIRST_ID: Final = 10
"""The ids of sessions and subagents begin here."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What was said. It never changes; how it fares with each recipient is told by its letters."""

    id: int
    """In the order in which messages were accepted, whatever the clock does."""
    at: float
    sender: str
    to: tuple[str, ...]
    """As it was addressed: `#build` is not replaced by those who got it."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    thread: int
    """The id of the message that began it; its own if it did."""
    reply_to: int = 0
    deadline: float = 0.0
    """When a request should be answered, as Unix time; 0 for no such time."""
    project: str = ""


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How one message fares with one recipient: a row of the ledger."""

    message: int
    recipient: str
    stage: Stage
    queued: float
    shown: float = 0.0
    event: str = ""
    """The event at which it was shown."""
    read: float = 0.0
    answered: float = 0.0
    bounced: float = 0.0
    why: str = ""
    """Why it bounced."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to say."""

    to: tuple[str, ...]
    """Names, `#topic`, `everyone`."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    reply_to: int = 0
    deadline: float = 0.0
    key: str = ""
    """Sent again with the same key by the same sender, it is not sent again."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a draft."""

    message: Message
    recipients: tuple[Agent, ...]
    """Whoever gets it. One that has ended gets it if it is resumed; until then its letter has bounced."""
    is_new: bool = True
    """False if the key was used before: the earlier message is given, and nothing was sent."""


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """What several agents listen to."""

    name: str
    """Without the `#`."""
    subscribers: tuple[str, ...]


class Standing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How much mail an agent has before it."""

    queued: int = 0
    """Not shown yet."""
    unread: int = 0
    """Not read yet, whether it was shown or not."""
    owes: int = 0
    """Requests to it that it has not answered."""
    owed: int = 0
    """Requests of its own that others have not answered, by recipient."""
