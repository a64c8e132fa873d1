"""The values of the mail: agents, messages, deliveries. Knows neither how they are stored nor how they are shown."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

Priority = Literal["urgent", "normal", "low"]
Intent = Literal["request", "inform", "ack"]
Stage = Literal["queued", "shown", "read", "answered", "bounced"]

PRIORITIES: Final[tuple[Priority, ...]] = ("urgent", "normal", "low")
INTENTS: Final[tuple[Intent, ...]] = ("request", "inform", "ack")
STAGES: Final[tuple[Stage, ...]] = ("queued", "shown", "read", "answered", "bounced")

MAX_BODY_BYTES: Final = 1024 * 1024
"""The size of a body in UTF-8."""
MAX_SUBJECT_LENGTH: Final = 500
MAX_KEY_LENGTH: Final = 200
MAX_RECIPIENTS: Final = 1000


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A sender or recipient: a session, a subagent, the user, Fairlead itself, or a program."""

    id: int
    name: str
    """Unique among all stored agents, ignoring case."""
    session: str = ""
    """The client's session id; for a subagent, the session id of its parent."""
    project: str = ""
    """The project's folder."""
    parent: int = 0
    """For a subagent: the id of the agent that started it."""
    agent_id: str = ""
    """The client's id of a subagent."""
    created: float = 0.0
    seen: float = 0.0
    """When it was last active."""
    ended: float = 0.0
    """When it ended; 0 while it is alive."""
    saved: str = ""
    """A text that the agent saved. The agent is reminded of the text after a compaction."""
    host: str = ""
    """The id of the agent's host; empty for this host."""
    remote: int = 0
    """For an agent of another host: its id on that host."""


USER: Final = Agent(id=1, name="User")
"""The human user."""
FAIRLEAD: Final = Agent(id=2, name="Fairlead")
"""The sender of notices; it receives no mail."""
SCRIPT: Final = Agent(id=3, name="Script")
"""A program that belongs to no session and has no terminal."""
FIRST_ID: Final = 10
"""The first id for sessions and subagents."""
FIRST_REMOTE_ID: Final = 2**40
"""The first id for agents of other hosts. Triggers of the database contain the same number."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A message as it was sent. It never changes; its state is in its deliveries."""

    id: int
    """Increases in the order in which messages were accepted, independent of the clock."""
    at: float
    sender: str
    to: tuple[str, ...]
    """The addresses as written: `#build` is not replaced by its subscribers."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    thread: int
    """The id of the first message of the thread, which may be this one."""
    reply_to: int = 0
    deadline: float = 0.0
    """Unix time by which a request should be answered; 0 for none."""
    project: str = ""
    may_repeat: bool = False
    """Whether it may have been shown before: the process that printed it was killed before it had finished."""


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
    """The reason why it bounced, or was queued again."""
    host: str = ""
    """The name of the recipient's host; empty for this host."""
    in_transit_since: float = 0.0
    """The time at which it was sent to the recipient's host; 0 once it has arrived."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be sent."""

    to: tuple[str, ...]
    """Names, `#topic` or `everyone`."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    reply_to: int = 0
    deadline: float = 0.0
    key: str = ""
    """The idempotency key: a second draft with the same key and sender is not sent."""


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """The message that was made from a draft, and its recipients."""

    message: Message
    recipients: tuple[Agent, ...]
    """The deliveries to recipients that have ended bounce, and are queued when these are resumed."""
    is_new: bool = True
    """False if the idempotency key was used before. `message` is then the earlier message, and nothing was sent."""


class QueueSummary(msgspec.Struct, frozen=True):
    """A count of messages that are too many to be shown one by one."""

    senders: tuple[tuple[str, int], ...]
    """Each sender with its number of messages, the highest number first."""
    requests: int = 0
    """How many of the messages are requests."""

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(number for _, number in self.senders)


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and the names of its subscribers."""

    name: str
    """Without the `#`."""
    subscribers: tuple[str, ...]


class MailCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many messages and requests are open for an agent."""

    queued: int = 0
    """Messages that were not shown yet."""
    unread: int = 0
    """Messages that were not read yet, shown or not."""
    owes: int = 0
    """Requests to the agent that it has not answered."""
    owed: int = 0
    """Requests of the agent that others have not answered, counted per recipient."""


class WaitingMail(NamedTuple):
    """An agent, and the mail that waits for it."""

    agent: Agent
    queued: int
    """Deliveries that were not shown yet."""
    urgent: int
    """How many of these are urgent."""
    may_owe_reply: bool
    """Whether the agent may have seen a request that it has not answered."""
