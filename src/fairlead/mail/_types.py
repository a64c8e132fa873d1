"""The values of the mail: agents, messages, deliveries. Knows neither where they are stored nor how they are shown."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Priority = Literal["urgent", "normal", "low"]
Intent = Literal["request", "inform", "ack"]
Stage = Literal["queued", "shown", "read", "answered", "bounced"]

PRIORITIES: Final[tuple[Priority, ...]] = ("urgent", "normal", "low")
INTENTS: Final[tuple[Intent, ...]] = ("request", "inform", "ack")
STAGES: Final[tuple[Stage, ...]] = ("queued", "shown", "read", "answered", "bounced")

MAX_BODY_BYTES: Final = 1024 * 1024
"""In UTF-8."""
MAX_SUBJECT_LENGTH: Final = 500
MAX_KEY_LENGTH: Final = 200
MAX_RECIPIENTS: Final = 1000


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A sender or recipient: a session, a subagent, the user, Fairlead itself, or a program."""

    id: int
    name: str
    """Unique among all stored agents, ignoring case."""
    session: str = ""
    """The client's session id; for a subagent, its parent's."""
    project: str = ""
    """The project's folder."""
    parent: int = 0
    """Id of the agent whose subagent this is."""
    agent_id: str = ""
    """The client's id of a subagent."""
    created: float = 0.0
    seen: float = 0.0
    """When it was last active."""
    ended: float = 0.0
    """When it ended; 0 while it is alive."""
    saved: str = ""
    """A status that the agent saved, to be reminded of after a compaction."""
    host: str = ""
    """The id of the host on which it is; empty for this one."""
    remote: int = 0
    """Its id on that host."""


USER: Final = Agent(id=1, name="User")
"""The human user."""
FAIRLEAD: Final = Agent(id=2, name="Fairlead")
"""The sender of notices; it receives no mail."""
SCRIPT: Final = Agent(id=3, name="Script")
"""A program that belongs to no session and has no terminal."""
FIRST_ID: Final = 10
"""The first id for sessions and subagents."""
FIRST_REMOTE_ID: Final = 2**40
"""The first id for agents of other hosts. Triggers of the database repeat it."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A message as it was sent. It never changes; its deliveries say what became of it."""

    id: int
    """Ascending in the order in which messages were accepted, independent of the clock."""
    at: float
    sender: str
    to: tuple[str, ...]
    """As addressed: `#build` is not replaced by its subscribers."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    thread: int
    """Id of the first message of the thread; its own if it started one."""
    reply_to: int = 0
    deadline: float = 0.0
    """Unix time by which a request should be answered; 0 for none."""
    project: str = ""
    may_repeat: bool = False
    """It may have been shown before: whoever showed it was killed, and it is not known when."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The state of one message for one recipient: a row of the ledger."""

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
    """Why it bounced, or why it is queued again."""
    host: str = ""
    """The name of the recipient's host, if that is another one."""
    on_its_way: float = 0.0
    """Since when it is on its way to that host; 0 once it is there."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be sent."""

    to: tuple[str, ...]
    """Names, `#topic`, `everyone`."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    reply_to: int = 0
    deadline: float = 0.0
    key: str = ""
    """Idempotency key: a second draft with the same key and sender is not sent."""


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """The message that a draft became, and its recipients."""

    message: Message
    recipients: tuple[Agent, ...]
    """For a recipient that has ended, the delivery has bounced until it is resumed."""
    is_new: bool = True
    """False if the idempotency key was used before: this is the earlier message, and nothing was sent."""


class QueueSummary(msgspec.Struct, frozen=True):
    """Messages that were not shown one by one, because there are too many."""

    senders: tuple[tuple[str, int], ...]
    """Each sender and how many are from it, most first."""
    requests: int = 0
    """How many of them ask for an answer."""

    @property
    def count(self) -> int:
        """How many messages there are."""
        return sum(number for _, number in self.senders)


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and the names of its subscribers."""

    name: str
    """Without the `#`."""
    subscribers: tuple[str, ...]


class MailCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many messages and requests are open for an agent."""

    queued: int = 0
    """Not shown yet."""
    unread: int = 0
    """Not read yet, whether shown or not."""
    owes: int = 0
    """Requests to it that it has not answered."""
    owed: int = 0
    """Its own requests that others have not answered, counted per recipient."""
